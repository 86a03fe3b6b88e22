/*-------------------------------------------------------------------------
 *
 * rules.c
 *	  Builds with assertions check, wherever a task stops running and wherever
 *	  the process blocks, that it may.
 *
 * A deadlock that these rules prevent happens once in many hours, if another
 * process is in the way.  A broken rule shows at once, in every run.
 *
 * Checks INVARIANT-01, 02, 04, 06 to 08, 21 and 42.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#ifdef USE_ASSERT_CHECKING

#include "access/xact.h"
#include "aio/block.h"
#include "aio/io_internal.h"
#include "aio/sibling_locks.h"
#include "aio/task_port.h"
#include "aio/task_status.h"
#include "miscadmin.h"
#include "storage/lock.h"
#include "storage/proc.h"
#include "utils/snapmgr.h"

/*
 * AioTaskLimit() reckons with two pins a task; those who descend in a GIN or
 * GiST index have one for each level
 */
#define TASK_PINS_MAX	64

/*
 * Is I/O staged that somebody else may wait for?
 *
 * Upstream may block within a batch of its own, by rules of its own; no write
 * of ours is in one.  In a critical section it may be about to submit.
 */
static bool
may_be_waited_for(void)
{
	PgAioBackend *me = pgaio_my_backend;

	if (me == NULL || me->num_staged_ios == 0 || CritSectionCount > 0)
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
	if (lock == NULL)
		return;

	/* in the lock manager's queue */
	if (aio_current_task != NULL &&
		(lock->tag.locktag_type == LOCKTAG_TRANSACTION ||
		 lock->tag.locktag_type == LOCKTAG_SPECULATIVE_TOKEN))
		Assert(AioSiblingsIdle());
}

/* What a task may not change while it runs, nor others while it does not. */
static void
note(AioHeld *held)
{
	held->pins = AioPrivatePins();
	held->page_lock = AioHoldsPageLock();
	held->lwlocks = AioHeldLWLocks();
	held->sibling_locks = aio_sibling_locks;
	held->crit_sections = CritSectionCount;
	held->holdoff = InterruptHoldoffCount;
	held->cancel_holdoff = QueryCancelHoldoffCount;
	held->nest_level = GetCurrentTransactionNestLevel();
	held->snapshot = ActiveSnapshotSet() ? GetActiveSnapshot() : NULL;
}

/* The same, but for pins? */
static void
compare(const AioHeld *before, const AioHeld *now)
{
	Assert(now->page_lock == before->page_lock);
	Assert(now->lwlocks == before->lwlocks);
	Assert(now->sibling_locks == before->sibling_locks);
	Assert(now->crit_sections == before->crit_sections);
	Assert(now->holdoff == before->holdoff);
	Assert(now->cancel_holdoff == before->cancel_holdoff);
	Assert(now->nest_level == before->nest_level);
	Assert(now->snapshot == before->snapshot);
}

/* A task begins, or goes on: other globals must be unchanged. */
void
AioAssertTaskRuns(AioTask *task, bool begins)
{
	AioServerTask *mine = AioTaskLocal(task);
	AioHeld		now;

	note(&now);
	if (begins)
		mine->pins = 0;
	else
		compare(&mine->held, &now);
	mine->held = now;
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
	AioServerTask *mine = AioTaskLocal(task);
	AioHeld		now;

	note(&now);
	mine->pins += now.pins - mine->held.pins;
	Assert(mine->pins >= -1 && mine->pins <= TASK_PINS_MAX);
	compare(&mine->held, &now);
	Assert(pgaio_my_backend->handed_out_io == NULL);
}

#endif							/* USE_ASSERT_CHECKING */
