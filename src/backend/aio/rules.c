/*-------------------------------------------------------------------------
 *
 * rules.c
 *	  Builds with assertions check, wherever a task stops running and wherever
 *	  the process blocks, that it may.
 *
 * A deadlock that these rules prevent happens once in many hours, if somebody
 * else is in the way.  That a rule is broken shows at once, in every run that
 * comes by.
 *
 * Checks INVARIANT-01, 02, 04, 06 to 08, 21, 26 and 42.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#ifdef USE_ASSERT_CHECKING

#include "access/xact.h"
#include "aio/seams.h"
#include "internal.h"
#include "miscadmin.h"
#include "storage/lock.h"
#include "storage/proc.h"
#include "utils/snapmgr.h"

/*
 * AioTaskLimit() reckons with two pins a task; those who descend in a GIN index
 * have one for each level
 */
#define TASK_PINS_MAX	8

/*
 * Is I/O staged that somebody else may wait for?
 *
 * Upstream may block within a batch of its own, by rules of its own; no write
 * of ours is in one.  Methods other than io_uring take a lock in order to
 * submit, in a critical section.
 */
static bool
may_be_waited_for(void)
{
	PgAioBackend *me = pgaio_my_backend;

	if (me == NULL || me->num_staged_ios == 0 ||
		(io_method != IOMETHOD_IO_URING && CritSectionCount > 0))
		return false;
	if (aio_batch_open || !me->in_batchmode)
		return true;
	for (int i = 0; i < me->num_staged_ios; i++)
	{
		if (me->staged_ios[i]->op == PGAIO_OP_WRITEV)
			return true;
	}
	return false;
}

/* This process is about to wait for another one. */
void
AioAssertMayBlock(void)
{
	Assert(!may_be_waited_for());
}

/*
 * It is about to sleep, until somebody sets its latch or something happens at
 * a socket.
 */
void
AioAssertMaySleep(void)
{
	LOCK	   *lock = MyProc != NULL ? MyProc->waitLock : NULL;

	AioAssertMayBlock();

#ifdef IOMETHOD_IO_URING_ENABLED
	/* all who wait for an I/O in that ring would wait for us */
	Assert(!AioUringCompletionLockHeld());
#endif
	if (lock == NULL)
		return;

	/*
	 * In the lock manager's queue.  Only for these two are there rules of how
	 * they go together with LWLocks.
	 */
	Assert(AioHeldLWLocks() == 0 ||
		   lock->tag.locktag_type == LOCKTAG_RELATION_EXTEND ||
		   lock->tag.locktag_type == LOCKTAG_PAGE);
	if (aio_current_task != NULL &&
		(lock->tag.locktag_type == LOCKTAG_TRANSACTION ||
		 lock->tag.locktag_type == LOCKTAG_SPECULATIVE_TOKEN))
		Assert(AioQuiet(aio_current_task));
}

/* What must be at the end of a piece of a task's run as it was before it. */
static void
note(AioHeld *held)
{
	held->pins = AioPrivatePins();
	held->lwlocks = AioHeldLWLocks();
	held->sibling_locks = aio_sibling_locks;
	held->crit_sections = CritSectionCount;
	held->holdoff = InterruptHoldoffCount;
	held->cancel_holdoff = QueryCancelHoldoffCount;
	held->nest_level = GetCurrentTransactionNestLevel();
	held->snapshot = ActiveSnapshotSet() ? GetActiveSnapshot() : NULL;
}

/* A task begins, or goes on. */
void
AioAssertTaskRuns(AioTask *task)
{
	note(&task->held);
}

/*
 * A task is about to stop running: it ends well, or is suspended.  Pins are
 * all that it may hold then.
 *
 * One that ends may have given back a pin that its creator has taken, or leave
 * one in the index's ii_AmCache.
 */
void
AioAssertTaskStops(AioTask *task)
{
	AioHeld		now;

	note(&now);
	task->pins += now.pins - task->held.pins;
	Assert(task->pins >= -1 && task->pins <= TASK_PINS_MAX);
	Assert(now.lwlocks == task->held.lwlocks);
	Assert(now.sibling_locks == task->held.sibling_locks);
	Assert(now.crit_sections == task->held.crit_sections);
	Assert(now.holdoff == task->held.holdoff);
	Assert(now.cancel_holdoff == task->held.cancel_holdoff);
	Assert(now.nest_level == task->held.nest_level);
	Assert(now.snapshot == task->held.snapshot);
	Assert(pgaio_my_backend->handed_out_io == NULL);
}

#endif							/* USE_ASSERT_CHECKING */
