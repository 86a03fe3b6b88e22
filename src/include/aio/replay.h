/*-------------------------------------------------------------------------
 *
 * replay.h
 *	  Pages that recovery will need are read ahead: replay.c.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AIO_REPLAY_H
#define AIO_REPLAY_H

#include "access/rmgr.h"
#include "access/xlogreader.h"
#include "aio/preallocate.h"
#include "aio/read.h"
#include "aio/write.h"
#include "storage/bufmgr.h"
#include "storage/smgr.h"

/* this process replays WAL and reads pages ahead */
extern PGDLLIMPORT bool aio_replay_active;

/* pages are wanted whose reads have not begun */
extern PGDLLIMPORT int aio_replay_wanted;

/* the last record of an extension's that has been decoded */
extern PGDLLIMPORT XLogRecPtr aio_replay_custom;

extern int	AioReplayDepth(int concurrency);
extern bool AioReplayWant(const RelFileLocator *rlocator, BlockNumber block,
						  DecodedBkpBlock *reference, XLogRecPtr replayed,
						  XLogRecPtr lsn);
extern void AioReplayNoteMade(const DecodedBkpBlock *reference, XLogRecPtr lsn);
extern void AioReplayBegin(XLogReaderState *reader, int inflight);
extern XLogRecPtr AioReplayTryAgainAt(XLogReaderState *reader);
extern void AioReplayFinishReads(void);
extern void AioReplayForget(void);

/* xlogprefetcher_internals.c */
extern void AioReplayCountSkipped(bool made);

/*
 * XLogPrefetcherNextBlock(): a record that will be replayed refers to this
 * block; does it make the page anew?  An image that is only to be compared with
 * counts, too, as in upstream.
 */
static inline void
AioReplaySee(const DecodedBkpBlock *reference, XLogRecPtr lsn)
{
	if (unlikely(reference->has_image ||
				 (reference->flags & BKPBLOCK_WILL_INIT) != 0) &&
		aio_replay_active)
		AioReplayNoteMade(reference, lsn);
}

/* XLogPrefetcherNextBlock(): this record has been decoded */
static inline void
AioReplaySeeRecord(const DecodedXLogRecord *record)
{
	if (unlikely(RmgrIdIsCustom(record->header.xl_rmid)))
		aio_replay_custom = record->lsn;
}

/*
 * XLogPrefetcherNextBlock(), in place of PrefetchSharedBuffer(): a record that
 * will be replayed refers to this block, which exists.  Says where the page is,
 * or that it will be read, or neither.  Most pages are found here, so that this
 * costs no more than what it replaces.  Raises what AioReplayWant() raises.
 */
static inline PrefetchBufferResult
AioReplayPrefetch(SMgrRelation smgr, ForkNumber forknum, BlockNumber block,
				  DecodedBkpBlock *reference, XLogReaderState *reader,
				  XLogRecPtr lsn)
{
	const RelFileLocator *rlocator = &smgr->smgr_rlocator.locator;
	PrefetchBufferResult result = {InvalidBuffer, false};

	Assert(forknum == MAIN_FORKNUM);
	if (unlikely(!aio_replay_active || aio_replay_custom > reader->ReadRecPtr))
		return PrefetchSharedBuffer(smgr, forknum, block);
	result.recent_buffer = AioFindPage(rlocator, block);
	if (!BufferIsValid(result.recent_buffer))
		result.initiated_io = AioReplayWant(rlocator, block, reference,
											reader->ReadRecPtr, lsn);
	return result;
}

/* XLogPrefetcherReadRecord(): records are going to be read, and waited for */
static inline void
AioReplayBeforeReadAhead(XLogReaderState *reader)
{
	if (XLogReaderHasQueuedRecordOrError(reader))
		return;
	if (unlikely(aio_preallocated_in_recovery))
		AioGiveBackInRecovery(false);
	if (aio_replay_active)
		AioReplayFinishReads();
}

/*
 * XLogPrefetcherReadRecord(): the next record is about to be returned, and
 * 'inflight' pages have been said to be on their way, some of which may have
 * come; redo finds those faster that are known to have
 */
static inline void
AioReplayBeforeRecord(XLogReaderState *reader, int inflight)
{
	if (aio_replay_wanted > 0)
		AioReplayBegin(reader, inflight);
	if (inflight > 0 && aio_replay_active)
		AioReadReap();
}

/*
 * whoever replays is about to wait for something else than a page, and may not
 * look at its I/O for long
 */
static inline void
AioReplayBeforeWait(void)
{
	if (unlikely(aio_preallocated_in_recovery))
		AioGiveBackInRecovery(false);
	if (unlikely(aio_replay_active))
		AioReplayFinishReads();
	if (aio_writes_in_flight > 0)
		AioFinishWrites();
}

#endif							/* AIO_REPLAY_H */
