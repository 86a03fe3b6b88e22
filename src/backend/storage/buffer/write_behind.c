/*-------------------------------------------------------------------------
 *
 * write_behind.c
 *	  When dirty buffers are written, by whom, and what happens after that.
 *
 * A backend that needs a buffer and meets a dirty one starts to write it, and
 * goes on to the next.  The clock hand has passed the buffers that it has
 * started to write, so these are kept in a list, and are the next victims in
 * the order in which their writes began.  With buffered I/O writes are complete
 * when they have been started; neighbours are still written together, and
 * victims whose WAL is not on disk passed over.
 *
 * Whoever has to write many buffers (checkpointer, background writer, a backend
 * that flushes a relation) starts as many writes as may be in flight, and waits
 * for the oldest one before it starts another.
 *
 * Upholds INVARIANT-39 and 41 to 44.
 *
 * Tests: src/test/aio/write/t/001_write_behind.pl,
 *		  src/test/simulate/write_behind.c.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "access/xlog.h"
#include "access/xlogrecovery.h"
#include "aio/block.h"
#include "aio/io_internal.h"
#include "aio/read.h"
#include "aio/recovery_point.h"
#include "aio/stats.h"
#include "aio/wal.h"
#include "aio/write.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "storage/aio_internal.h"
#include "storage/aio_subsys.h"
#include "storage/fd.h"
#include "storage/latch.h"

/* aio.write_behind */
int			aio_write_behind = 32;

/*
 * victims whose WAL is not on disk, or not noted in recovery, that are passed
 * over before a write of another one has begun
 */
#define PASSED_OVER_MAX	16

typedef struct TrackedWrite
{
	const void *owner;			/* a BufferAccessStrategy or BulkWriteState,
								 * or NULL; to compare, not to look into */
	int			nest_level;		/* of the transaction that started it */
	bool		from_ring;		/* its first buffer came from the owner's ring */
	int			nusable;		/* buffers that may be the next victims */
	int			nused;			/* of them */
	AioWrite	write;
} TrackedWrite;

/* in a ring, oldest first; those not in flight are at its beginning */
static TrackedWrite writes[AIO_WRITE_BEHIND_LIMIT];
static int	first = 0;
int			aio_writes_tracked = 0;
int			aio_writes_in_flight = 0;

/* pages of the tracked writes that have buffers */
static int	npages = 0;

/* the clock's next victim was looked at since one of ours was used up */
static bool looked = false;

/* and upstream has counted that as an allocation */
static bool counted = false;

static int	passed_over = 0;

/* the LSN of the last one */
static XLogRecPtr passed_over_upto;

bool		aio_victims_lack_wal = false;

/* too many have been passed over in recovery: wait for a write instead */
static bool take_oldest = false;

/* a write of buffers has failed: do the next one as upstream does */
static bool write_failed = false;

static bool waiting = false;

bool		aio_reclaiming = false;

/* the last write that was started is one of a victim, and buffered */
static bool write_back_due = false;

/* the first write without buffers that has failed, and whose it was */
static PgAioReturn failure;
static const void *failure_owner = NULL;
static int	failure_level;

/* AioBeginBufferFlush() has been called, and AioFinishBufferFlush() has not */
static bool flushing = false;

static inline TrackedWrite *
nth(int n)
{
	return &writes[(first + n) % AIO_WRITE_BEHIND_LIMIT];
}

#ifdef USE_ASSERT_CHECKING
/* Do the counts of what is remembered agree with one another? */
static bool
counts_agree(void)
{
	int			nbuffers = 0;

	for (int i = 0; i < aio_writes_tracked; i++)
	{
		const TrackedWrite *one = nth(i);

		if (one->nused > one->nusable || one->nusable > one->write.nbuffers)
			return false;
		nbuffers += one->write.nbuffers;
	}
	return nbuffers == npages && aio_writes_in_flight >= 0 &&
		aio_writes_in_flight <= aio_writes_tracked &&
		aio_writes_tracked <= AIO_WRITE_BEHIND_LIMIT;
}
#endif

/*
 * How many writes may be tracked?  Recovery makes in one process the writes of
 * all who made its WAL.
 */
static inline int
depth(void)
{
	if (io_method == IOMETHOD_SYNC)
		return 0;
	if (AmStartupProcess())
		return Min(Min(aio_write_behind * 2, AIO_WRITE_BEHIND_LIMIT),
				   io_max_concurrency * 5 / 8);
	return Min(aio_write_behind, io_max_concurrency * 3 / 8);
}

/*
 * Are pages written without waiting at all, as things are?  To write with
 * buffered I/O is to copy, and so is not worth it.
 */
bool
AioWritesBehind(void)
{
	return AioUsesDirectIO() && depth() > 0;
}

/*
 * Wait until the oldest write that is in flight is complete.  Raises nothing.
 *
 * Upstream may sleep on a condition variable meanwhile, and so come to
 * AioFinishWrites(), which must not wait for the same write: hence 'waiting'.
 */
static void
wait_for_oldest(void)
{
	TrackedWrite *one = nth(aio_writes_tracked - aio_writes_in_flight);

	Assert(aio_writes_in_flight > 0);
	Assert(!waiting);
	if (!pgaio_wref_check_done(&one->write.wref))
	{
		instr_time	start = pgstat_prepare_io_time(track_io_timing);

		HOLD_INTERRUPTS();
		waiting = true;
		pgaio_wref_wait(&one->write.wref);
		waiting = false;
		RESUME_INTERRUPTS();
		if (one->write.nbuffers > 0)
			pgstat_count_io_op_time(IOOBJECT_RELATION, one->write.io_context,
									IOOP_WRITE, start, 0, 0);
	}

	/* it is ours to collect, and nobody looks for it any more */
	Assert(one->write.ret.result.status != PGAIO_RS_UNKNOWN);
	aio_writes_in_flight--;
	if (one->write.ret.result.status != PGAIO_RS_ERROR)
		return;
	if (one->write.nbuffers > 0)
		write_failed = true;
	else if (failure_owner == NULL || one->nest_level < failure_level)
	{
		/* raising that of an outer transaction undoes the inner ones, too */
		failure_owner = one->owner;
		failure_level = one->nest_level;
		failure = one->write.ret;
	}
}

/* The oldest write is complete, or may not be waited for any longer. */
static void
forget_oldest(void)
{
	Assert(aio_writes_tracked > 0);
	if (aio_writes_in_flight == aio_writes_tracked)
		wait_for_oldest();
	npages -= nth(0)->write.nbuffers;
	first = (first + 1) % AIO_WRITE_BEHIND_LIMIT;
	aio_writes_tracked--;
	Assert(counts_agree());
}

/*
 * Wait until another write may be started.  It is to be described where the
 * result points to.
 */
AioWrite *
AioWaitForWriteSlot(void)
{
	/* otherwise there never is room */
	Assert(depth() > 0);
	while (aio_writes_tracked >= depth())
		forget_oldest();
	Assert(aio_writes_tracked < AIO_WRITE_BEHIND_LIMIT);
	return &nth(aio_writes_tracked)->write;
}

/*
 * A write has been described there and started: submit it, if it is staged,
 * and keep track of it.  The owner is a BulkWriteState or
 * BufferAccessStrategy, or NULL.
 */
void
AioSubmitWrite(const void *owner)
{
	TrackedWrite *one = nth(aio_writes_tracked);

	Assert(pgaio_wref_valid(&one->write.wref));
	if (pgaio_my_backend->num_staged_ios > 0)
		pgaio_submit_staged();

	one->owner = owner;
	one->nest_level = GetCurrentTransactionNestLevel();
	one->from_ring = false;
	one->nusable = one->write.nbuffers;
	one->nused = 0;
	npages += one->write.nbuffers;
	aio_writes_tracked++;
	aio_writes_in_flight++;
	Assert(counts_agree());
}

/*
 * Wait for all writes that this process has started.  May be called at any
 * time, and raises nothing.
 */
void
AioFinishWrites(void)
{
	/* at the end of a process upstream has waited for them */
	while (aio_writes_in_flight > 0 && !waiting && pgaio_my_backend != NULL)
		wait_for_oldest();
}

/*
 * This process is about to sleep: wait for its writes first.
 *
 * Completing an I/O may wake others, which cancels a sleep on a condition
 * variable that this process has prepared, and waiting for an I/O may be a
 * sleep in which its latch is reset.  In both cases it might sleep through what
 * it is waiting for, so it must look at its condition again.
 */
void
AioFinishWritesToSleep(void)
{
	bool		prepared = AioPreparedToSleep();
	uint64		nsleeps = aio_nsleeps;

	/* a message about a completion, to a client that is not fast enough */
	if (waiting || aio_reclaiming)
		return;
#ifdef IOMETHOD_IO_URING_ENABLED
	if (AioUringCompletionLockHeld())
		return;
#endif
	AioFinishWrites();
	if (prepared || nsleeps != aio_nsleeps)
		SetLatch(MyLatch);
}

/* A (sub)transaction aborts: files of its bulk writes are about to go away. */
static void
at_abort(int nest_level)
{
	AioFinishWrites();
	if (failure_level >= nest_level)
		failure_owner = NULL;
}

static void
at_xact_event(XactEvent event, void *arg)
{
	if (event == XACT_EVENT_ABORT || event == XACT_EVENT_PARALLEL_ABORT)
		at_abort(0);
}

static void
at_subxact_event(SubXactEvent event, SubTransactionId subxact,
				 SubTransactionId parent, void *arg)
{
	if (event == SUBXACT_EVENT_ABORT_SUB)
		at_abort(GetCurrentTransactionNestLevel());
}

/* Writes without buffers are about to be started in this transaction. */
void
AioExpectBulkWrites(void)
{
	static bool registered = false;

	if (registered)
		return;
	RegisterXactCallback(at_xact_event, NULL);
	RegisterSubXactCallback(at_subxact_event, NULL);
	registered = true;
}

/*
 * Raise the error of a write without buffers of this owner, if one has failed.
 */
void
AioRaiseWriteError(const void *owner)
{
	/* NULL owns writes of buffers, whose errors are raised otherwise */
	Assert(owner != NULL);
	if (failure_owner != owner)
		return;
	Assert(failure.result.status == PGAIO_RS_ERROR);
	failure_owner = NULL;
	pgaio_result_report(failure.result, &failure.target_data, ERROR);
}

/*
 * In recovery no WAL has to be flushed before a page is written; it may have to
 * be noted in pg_control how much of it is needed from now on.  The checkpoint
 * at the end of recovery flushes as others do.
 */
static inline bool
notes_before_writes(void)
{
	return RecoveryInProgress() && !XLogInsertAllowed();
}

/*
 * AioStartWrite() of a buffer for which that has to be noted.  That goes for
 * all that has been replayed, so the next writes need not wait for it.
 */
static AioStartWriteResult
note_and_start_write(BufferDesc *buf, AioNeighbours which,
					 IOContext io_context, AioWrite *write)
{
	AioBeforeBlock();
	XLogFlush(BufferGetLSNAtomic(BufferDescriptorGetBuffer(buf)));
	return AioStartWrite(buf, which, io_context, write);
}

/* ------------------------------------------------------------------------
 * Victims
 * ------------------------------------------------------------------------
 */

/* May another write be started before one of ours is used up? */
static inline bool
more_wanted(BufferAccessStrategy strategy)
{
	/* a ring should not run into buffers that are still being written */
	if (strategy != NULL &&
		npages >= GetAccessStrategyBufferCount(strategy) / 2)
		return false;
	return aio_writes_tracked < depth();
}

/*
 * Await a future, for a victim, if the task may be suspended.  Returns whether
 * it has been; its siblings may have taken what it has seen, then.
 */
static bool
suspend_for_victim(AioFuture *future, bool may_suspend)
{
	Assert(!may_suspend || aio_current_task != NULL);

	if (!may_suspend || future->ops->poll(future) || !AioAwait(future))
		return false;
	AioReserveForPin();
	return true;
}

/*
 * Wait for the oldest write, for a victim.  Returns false if the task has been
 * suspended, and its siblings may have waited for it and used it up.
 */
static bool
wait_for_victim(bool may_suspend)
{
	AioIOFuture write;

	AioWriteFutureInit(&write, &nth(0)->write.wref, nth(0)->write.io_context);
	if (suspend_for_victim(&write.future, may_suspend))
		return false;
	wait_for_oldest();
	return true;
}

/* Wait for WAL, for the victims that come next. */
static void
wait_for_wal(bool may_suspend)
{
	AioWalFlushFuture flush;

	aio_victims_lack_wal = false;
	if (!XLogNeedsFlush(passed_over_upto))
		return;
	aio_session_stats_data.flushes_awaited++;
	AioStartWalFlush(&flush, passed_over_upto);
	if (suspend_for_victim(&flush.future, may_suspend))
		return;
	AioBeforeBlock();
	flush.future.ops->wait(&flush.future);
}

/*
 * The kernel has the last victim and its neighbours: backend_flush_after says
 * when it is asked to write them.  Not done at once because the victim is
 * locked then.
 */
static void
write_back(void)
{
	const AioWrite *write = &nth(aio_writes_tracked - 1)->write;

	Assert(aio_writes_tracked > 0);
	write_back_due = false;
	for (int i = 0; i < write->nbuffers; i++)
	{
		BufferTag	tag = write->tag;

		tag.blockNum += i;
		ScheduleBufferTagForWriteback(&BackendWritebackContext,
									  write->io_context, &tag);
	}
}

/*
 * In place of StrategyGetBuffer() while writes are tracked, or too many
 * victims have been passed over: a buffer without pins, its header locked.
 *
 * Each search first looks at one more victim of the clock or the ring, so that
 * for each buffer that is used up the write of another one begins.
 */
BufferDesc *
AioNextVictim(BufferAccessStrategy strategy, uint32 *buf_state, bool *from_ring,
			  bool may_suspend)
{
	if (write_back_due)
		write_back();
	while (aio_writes_tracked > 0 &&
		   (looked || aio_victims_lack_wal || take_oldest))
	{
		TrackedWrite *oldest = nth(0);

		if (aio_writes_in_flight == aio_writes_tracked && !take_oldest &&
			(more_wanted(strategy) || oldest->owner != strategy) &&
			(!pgaio_wref_check_done(&oldest->write.wref) || AioRandomDelay()))
			break;
		if (oldest->owner == strategy)
		{
			if (aio_writes_in_flight == aio_writes_tracked &&
				!wait_for_victim(may_suspend))
				continue;
			while (oldest->nused < oldest->nusable)
			{
				int			n = oldest->nused++;
				BufferTag	tag = oldest->write.tag;

				tag.blockNum += n;
				if (AioIsVictim(GetBufferDescriptor(oldest->write.buffers[n] - 1),
								&tag, strategy != NULL ? 1 : 0, buf_state))
				{
					*from_ring = strategy != NULL && (n > 0 || oldest->from_ring);
					if (strategy == NULL && !counted)
						AioCountBufferAlloc();
					looked = counted = aio_victims_lack_wal = take_oldest = false;
					Assert(*buf_state & BM_LOCKED);
					return GetBufferDescriptor(oldest->write.buffers[n] - 1);
				}
			}
		}
		else if (strategy != NULL)
			break;				/* for others; those of a ring come round
								 * again */
		forget_oldest();
	}
	if (aio_victims_lack_wal)
		wait_for_wal(may_suspend);
	looked = true;
	return StrategyGetBuffer(strategy, buf_state, from_ring);
}

/*
 * A victim is dirty; it is pinned and share-locked.  Returns true if the caller
 * should look for another one, and false if it has to write this one itself.
 */
bool
AioWriteVictim(BufferDesc *buf, BufferAccessStrategy strategy,
			   IOContext io_context, bool from_ring)
{
	TrackedWrite *one;
	AioNeighbours which;
	AioWrite   *write;
	AioStartWriteResult result;

	if (write_failed || depth() == 0)
	{
		write_failed = false;
		AioBeforeBlock();
		return false;
	}

	counted = strategy == NULL;
	which = strategy != NULL ? AIO_NEIGHBOURS_RING : AIO_NEIGHBOURS_UNUSED;
	write = AioWaitForWriteSlot();
	result = AioStartWrite(buf, which, io_context, write);
	if (result == AIO_WRITE_WAL_FIRST && notes_before_writes())
	{
		/*
		 * A ring comes back to this one at once.  A damaged LSN cannot be
		 * noted, and is written as in upstream.
		 */
		passed_over_upto = BufferGetLSNAtomic(BufferDescriptorGetBuffer(buf));
		if (strategy == NULL && passed_over_upto <= GetCurrentReplayRecPtr(NULL))
		{
			if (++passed_over >= PASSED_OVER_MAX)
				take_oldest = true;
			if (!take_oldest || aio_writes_tracked > 0)
			{
				AioRequestRecoveryPoint();
				return true;
			}
		}
		passed_over = 0;
		take_oldest = false;
		result = note_and_start_write(buf, which, io_context, write);
	}
	switch (result)
	{
		case AIO_WRITE_STARTED:
			AioSubmitWrite(strategy);
			write_back_due = !AioUsesDirectIO();
			passed_over = 0;
			take_oldest = false;
			if (strategy != NULL)
			{
				one = nth(aio_writes_tracked - 1);
				one->from_ring = from_ring;
				one->nusable = 1 + AioPassOverInRing(strategy,
													 &one->write.buffers[1],
													 one->write.nbuffers - 1);
			}
			return true;
		case AIO_WRITE_NOT_NOW:
			return true;
		case AIO_WRITE_WAL_FIRST:

			/*
			 * A ring comes back to this one at once.  In recovery there is
			 * nothing to flush.  And an LSN may be damaged, so that flushing
			 * raises an error.
			 */
			passed_over_upto = BufferGetLSNAtomic(BufferDescriptorGetBuffer(buf));
			if (strategy != NULL || RecoveryInProgress() ||
				passed_over_upto > GetXLogInsertRecPtr())
				break;
			passed_over++;
			if (passed_over < PASSED_OVER_MAX / 2)
				XLogSetAsyncXactLSN(passed_over_upto);
			else if (passed_over < PASSED_OVER_MAX)
				AioRequestWalFlush(passed_over_upto);
			else
			{
				passed_over = 0;
				aio_victims_lack_wal = true;
			}
			return true;
		case AIO_WRITE_IMPOSSIBLE:
			break;
	}
	AioBeforeBlock();
	return false;
}

/* ------------------------------------------------------------------------
 * Flushing
 * ------------------------------------------------------------------------
 */

/* Is a write of this buffer in flight that this process has started? */
static bool
is_ours(BufferDesc *buf)
{
	uint32		buf_state = LockBufHdr(buf);
	PgAioWaitRef wref = buf->io_wref;

	UnlockBufHdr(buf, buf_state);
	return (buf_state & BM_IO_IN_PROGRESS) && pgaio_wref_valid(&wref) &&
		pgaio_ctl->io_handles[wref.aio_index].owner_procno == MyProcNumber;
}

/*
 * From here to AioFinishBufferFlush() all buffers given to AioFlushBuffer()
 * must reach the disk as they are now, or later.
 */
void
AioBeginBufferFlush(void)
{
	/* what is in flight may have been changed since it was copied */
	AioFinishWrites();
	while (aio_writes_tracked > 0)
		forget_oldest();
	Assert(npages == 0);
	write_failed = false;
	flushing = true;
}

/*
 * A buffer, pinned and share-locked, is to be written.  Returns false if the
 * caller has to do that.
 */
bool
AioFlushBuffer(BufferDesc *buf)
{
	AioNeighbours which = AIO_NEIGHBOURS_UNUSED;
	AioStartWriteResult result;
	AioWrite   *write;

	if (flushing)
		which = AmCheckpointerProcess() ? AIO_NEIGHBOURS_CHECKPOINT :
			AIO_NEIGHBOURS_DIRTY;

	if (!AioWritesBehind())
		return false;
	if (aio_writes_tracked >= depth())
	{
		if (aio_writes_in_flight == aio_writes_tracked)
			wait_for_oldest();

		/* AioFinishBufferFlush() will look after those that failed */
		if (!(flushing && write_failed))
			forget_oldest();
	}
	if (write_failed)
	{
		write_failed = flushing;
		return false;
	}

	/* aio.write_behind may have become less, but there are places for all */
	Assert(aio_writes_tracked < AIO_WRITE_BEHIND_LIMIT);
	write = &nth(aio_writes_tracked)->write;
	result = AioStartWrite(buf, which, IOCONTEXT_NORMAL, write);
	if (result == AIO_WRITE_WAL_FIRST && notes_before_writes())
		result = note_and_start_write(buf, which, IOCONTEXT_NORMAL, write);
	switch (result)
	{
		case AIO_WRITE_STARTED:
			AioSubmitWrite(NULL);
			return true;
		case AIO_WRITE_NOT_NOW:
			return !flushing || is_ours(buf);
		case AIO_WRITE_WAL_FIRST:
		case AIO_WRITE_IMPOSSIBLE:
			break;
	}
	return false;
}

/*
 * Wait until all that AioFlushBuffer() was given is written.  Raises
 * upstream's error if that is not possible.  The caller has none of these
 * pages locked.
 */
void
AioFinishBufferFlush(void)
{
	AioFinishWrites();
	while (aio_writes_tracked > 0)
	{
		AioWrite   *write = &nth(0)->write;

		if (write->ret.result.status == PGAIO_RS_ERROR)
		{
			for (int i = 0; i < write->nbuffers; i++)
			{
				BufferTag	tag = write->tag;

				tag.blockNum += i;
				AioRetryWrite(write->buffers[i], &tag);
			}
		}
		forget_oldest();
	}
	write_failed = false;
	flushing = false;
}
