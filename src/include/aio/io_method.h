/*-------------------------------------------------------------------------
 *
 * io_method.h
 *	  The values of io_method that are ours: libaio, and auto.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AIO_IO_METHOD_H
#define AIO_IO_METHOD_H

#include "storage/aio.h"
#include "storage/latch.h"

struct IoMethodOps;
struct io_uring;
struct io_uring_params;

/* io_method as configured; upstream's variable has the one chosen */
extern PGDLLIMPORT int aio_io_method;

/* aio.effective_io_method */
extern PGDLLIMPORT char *aio_effective_io_method;

/* io_method.c */
extern void AioAssignIoMethod(int newval, void *extra);
extern void AioChooseIoMethod(void);
extern void AioReportIoMethod(void);
extern bool AioUsesWorkers(void);

/* libaio.c */
extern int	AioLibaioProbe(void);
extern void AioWorkerPerform(PgAioHandle *ioh);
extern void AioWorkerWait(Latch *latch, int events, long timeout,
						  uint32 wait_event);

/* method_worker_internals.c */
extern PGDLLIMPORT const struct IoMethodOps aio_libaio_ops;
#ifdef USE_ASSERT_CHECKING
extern PGDLLIMPORT bool aio_debug_queue;
#endif
extern void AioWorkerInitialize(void);
extern bool AioWorkerTakeBack(PgAioHandle *ioh);

/* method_io_uring_internals.c */
#ifdef IOMETHOD_IO_URING_ENABLED
extern const char *AioUringProbe(void);
extern void AioUringBeforeSetup(void);
extern int	AioUringQueueInit(struct io_uring *ring);
extern int	AioUringQueueInitMem(struct io_uring *ring,
								 struct io_uring_params *params,
								 void *memory, size_t size);
extern void AioUringCloseRings(void);
extern uint32 AioUringInFlight(bool *damaged);
#endif

/* earlier_life.c */
extern void AioAwaitEarlierLife(void);
extern bool AioNothingInFlight(void);
extern int	AioLookAgain(void);
extern int	AioLockedFile(void);
extern void AioForgetLock(void);
extern void AioEndLife(void);

/* postmaster_internals.c */
extern int	AioPostmasterSleep(int ms);
extern bool AioPostmasterIsToStop(void);

/* SysLoggerMain(): close the rings, which it has inherited, and their lock */
static inline void
AioForgetRings(void)
{
#ifdef IOMETHOD_IO_URING_ENABLED
	AioUringCloseRings();
#endif
	AioForgetLock();
}

#endif							/* AIO_IO_METHOD_H */
