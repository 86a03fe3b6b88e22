/*-------------------------------------------------------------------------
 *
 * io_internal.h
 *	  What the files of src/backend/aio share among themselves.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AIO_IO_INTERNAL_H
#define AIO_IO_INTERNAL_H

#include "aio/task.h"
#include "storage/aio_internal.h"
#include "utils/snapshot.h"

/* What rules.c compares. */
typedef struct AioHeld
{
	int			pins;
	bool		page_lock;
	int			lwlocks;
	int			sibling_locks;
	uint32		crit_sections;
	uint32		holdoff;
	uint32		cancel_holdoff;
	int			nest_level;
	Snapshot	snapshot;
} AioHeld;

/* The server's part of a task; see AioTaskLocal(). */
typedef struct AioServerTask
{
	int			status_slot;	/* or -1 */
#ifdef USE_ASSERT_CHECKING
	int			pins;			/* those of this task */
	AioHeld		held;			/* by the process, when it began to run */
#endif
} AioServerTask;

/* task_port.c */
extern void AioTaskPortInitialize(void);

/* rules.c */
#ifdef USE_ASSERT_CHECKING
extern void AioAssertTaskRuns(AioTask *task, bool begins);
extern void AioAssertTaskStops(AioTask *task);
#endif

/* bufmgr_internals.c */
extern bool AioHoldsPageLock(void);
extern bool AioHoldsPageLockOf(const RelFileLocator *rel);

/* likewise, for rules.c */
extern int	AioPrivatePins(void);

/* lwlock_internals.c */
extern int	AioHeldLWLocks(void);

/* stack_depth_internals.c: what the depth check uses */
extern char **const aio_stack_base;
extern ssize_t *const aio_stack_depth_max_bytes;

/* method_io_uring_internals.c */
#ifdef IOMETHOD_IO_URING_ENABLED
extern void AioUringReap(void);
extern int	AioUringDescriptor(void);
extern void AioUringWaitAny(PgAioHandle *ioh, uint64 generation);
extern bool AioUringCompletionLockHeld(void);
#ifdef USE_ASSERT_CHECKING
extern int	AioUringTestRead(int pipe);
extern void AioUringTestDamage(void);
#endif
#endif

/* read_ahead.c: a page is being asked for ahead of need */
extern bool aio_reading_ahead;

/* submit.c */
extern void AioBatchOpen(void);
extern void AioBatchConsider(void);

#endif							/* AIO_IO_INTERNAL_H */
