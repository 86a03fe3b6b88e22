/*-------------------------------------------------------------------------
 *
 * commit.h
 *	  Pipelined commits: the next transaction begins while the last one's
 *	  commit is on its way to disk.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AIO_COMMIT_H
#define AIO_COMMIT_H

#include <signal.h>

#include "access/xlogdefs.h"

/* aio.pipelined_commits */
extern PGDLLIMPORT bool aio_pipelined_commits;

/* nothing is sent before WAL has been flushed up to here */
extern PGDLLIMPORT XLogRecPtr aio_held_commit;

/* replies are kept that upstream would have sent */
extern PGDLLIMPORT bool aio_replies_held;

/* and should be sent now */
extern PGDLLIMPORT volatile sig_atomic_t aio_replies_due;

extern bool AioTryHoldCommit(XLogRecPtr lsn);
extern bool AioReleaseCommits(void);
extern void AioFlushHeldCommits(void);
extern void AioSendReplies(void);
extern void AioSendRepliesIfAllowed(void);
extern void AioHoldReplies(void);
extern void AioForbidReplies(void);

/* RecordTransactionCommit(): need nobody wait for it to be on disk? */
static inline bool
AioHoldCommit(XLogRecPtr lsn)
{
	return unlikely(aio_pipelined_commits) && AioTryHoldCommit(lsn);
}

/*
 * May something be sent?  Waits until it may; false if this
 * process may not wait where it is.
 */
static inline bool
AioMaySend(void)
{
	return likely(aio_held_commit == InvalidXLogRecPtr) || AioReleaseCommits();
}

/* ReadyForQuery(): send what there is, now or later */
static inline void
AioSendOrHoldReplies(void)
{
	if (unlikely(aio_pipelined_commits || aio_held_commit != InvalidXLogRecPtr))
		AioHoldReplies();
	else
		AioSendReplies();
}

/* GetFlushRecPtr(), GetXLogWriteRecPtr() */
static inline void
AioBeforeFlushPosition(void)
{
	if (unlikely(aio_held_commit != InvalidXLogRecPtr))
		AioFlushHeldCommits();
}

#endif							/* AIO_COMMIT_H */
