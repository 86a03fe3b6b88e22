/*-------------------------------------------------------------------------
 *
 * wal.h
 *	  Writing and flushing WAL without waiting.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AIO_WAL_H
#define AIO_WAL_H

#include "access/xlogdefs.h"
#include "aio/future.h"
#include "portability/instr_time.h"
#include "storage/aio.h"

/* aio.wal_write_ahead, in kB; 0 is never */
extern PGDLLIMPORT int aio_wal_write_ahead;

/* aio.wal_syncs */
extern PGDLLIMPORT int aio_wal_syncs;

/* upper limit of aio.wal_syncs */
#define AIO_WAL_SYNCS_LIMIT		8

/* position from which this process checks whether there is WAL to write */
extern PGDLLIMPORT XLogRecPtr aio_wal_write_at;

extern const PgAioTargetInfo aio_wal_target_info;
extern const PgAioHandleCallbacks aio_wal_cb;
extern const PgAioHandleCallbacks aio_wal_sync_cb;

extern PGDLLIMPORT bool aio_wal_flush_is_counted;

/* WAL being flushed.  Lives on the awaiting task's stack. */
typedef struct AioWalFlushFuture
{
	AioFuture	future;			/* must be first */
	XLogRecPtr	upto;
} AioWalFlushFuture;

/* wal_flush.c */
extern void AioStartWalFlush(AioWalFlushFuture *flush, XLogRecPtr upto);

/* A sync that is in flight.  Its owner's. */
typedef struct AioWalSync
{
	PgAioWaitRef wref;
	instr_time	started;		/* if that is measured */
} AioWalSync;

/* wal_target.c */
extern void AioWalSyncInitialize(void);
extern bool AioWalCanStartSync(void);
extern void AioWalStartSync(AioWalSync *sync, int fd, XLogSegNo segno,
							TimeLineID tli);
extern bool AioWalSyncIsComplete(void);
extern bool AioWalFinishSync(AioWalSync *sync);
extern int	AioPerformFsync(PgAioHandle *ioh);
extern bool AioFsyncsMetadata(PgAioHandle *ioh);

/* method_io_uring_internals.c */
struct io_uring_sqe;
extern void AioUringFsync(PgAioHandle *ioh, struct io_uring_sqe *sqe);

/* wal_end.c */
extern void AioEraseWalBehind(XLogRecPtr end, TimeLineID tli);

/* wal.c */
extern void AioWalInitialize(void);
extern void AioAssignWalWriteAhead(int newval, void *extra);
extern void AioStartWalWrites(XLogRecPtr inserted);
extern bool AioFlushWal(XLogRecPtr upto, TimeLineID tli);
extern void AioRequestWalFlush(XLogRecPtr upto);
extern bool AioFreeWalBuffers(XLogRecPtr upto, TimeLineID tli);
extern bool AioWriteWalInBackground(XLogRecPtr write, XLogRecPtr flush,
									TimeLineID tli);
extern bool AioWalWriterCycle(void);

/* XLogInsertRecord(): a record has been inserted that ends here */
static inline void
AioWalRecordInserted(XLogRecPtr end)
{
	if (unlikely(end >= aio_wal_write_at))
		AioStartWalWrites(end);
}

#endif							/* AIO_WAL_H */
