/*-------------------------------------------------------------------------
 *
 * lock_wait.c
 *	  Tasks and heavyweight locks: waiting for one, and holding one.
 *
 * A heavyweight lock is waited for by the process, so the siblings of the
 * task that waits would stay suspended, and keep their pins, for as long as
 * another transaction takes.  VACUUM could then wait for one of these pins
 * while the other transaction waits for VACUUM: a deadlock that the detector
 * cannot see.  So the task lets its siblings finish first.
 *
 * Holding a lock protects a task from other processes, not from its siblings.
 * The count of locks for which that matters is kept here; AioMaySuspend()
 * compares it.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "aio/seams.h"
#include "internal.h"

/* locks held for which AioLockExcludesSiblings() */
int			aio_sibling_locks = 0;

typedef struct QuietFuture
{
	AioFuture	future;			/* must be first */
	AioTask    *task;			/* who wants quiet */
} QuietFuture;

static bool quiet_poll(AioFuture *future);

static const AioFutureOps quiet_ops = {
	.name = "quiet",
	.holds_nothing = true,
	.poll = quiet_poll,
};

/*
 * Have all siblings of a task ended, or do those that have not hold nothing?
 */
bool
AioQuiet(AioTask *task)
{
	dlist_iter	iter;

	dlist_foreach(iter, &task->scope->suspended)
	{
		AioTask    *sibling = dlist_container(AioTask, node, iter.cur);

		if (sibling != task && !sibling->awaits->ops->holds_nothing)
			return false;
	}
	return true;
}

static bool
quiet_poll(AioFuture *future)
{
	return AioQuiet(((QuietFuture *) future)->task);
}

/*
 * Suspend until no sibling has anything more to do that does not depend on
 * the running task.
 */
void
AioQuiesce(void)
{
	QuietFuture quiet;

	quiet.future.ops = &quiet_ops;
	quiet.task = aio_current_task;
	AioAwait(&quiet.future);
}
