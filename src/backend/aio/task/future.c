/*-------------------------------------------------------------------------
 *
 * future.c
 *	  Awaiting: suspend if the rules allow it, block if they do not.
 *
 * AioMaySuspend() is the only place that knows the rules.  It returns the
 * reason, so that lost concurrency can be counted and shown.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"
#include "storage/ipc.h"
#include "task_internal.h"

static bool always_complete(AioFuture *future);

static const AioFutureOps yield_ops = {
	.name = "yield",
	.poll = always_complete,
};

/* names for AioSuspendVerdict, in its order */
static const char *const verdict_names[] = {
	[AIO_SUSPEND_OK] = "ok",
	[AIO_SUSPEND_NO_TASK] = "no task",
	[AIO_SUSPEND_PINNED_DOWN] = "forbidden",
	[AIO_SUSPEND_PAGE_LOCK] = "page locked",
	[AIO_SUSPEND_LWLOCK] = "lwlock held",
	[AIO_SUSPEND_CRITICAL] = "critical section",
	[AIO_SUSPEND_HOLDOFF] = "interrupts held off",
	[AIO_SUSPEND_HEAVYWEIGHT] = "heavyweight lock held",
	[AIO_SUSPEND_HANDED_OUT] = "aio handle handed out",
	[AIO_SUSPEND_EXITING] = "exiting",
};

StaticAssertDecl(lengthof(verdict_names) == AIO_SUSPEND_VERDICTS,
				 "a name for each verdict");

/*
 * May the running code suspend here, and if not, why not?
 *
 * A task suspends only in a state in which any sibling may run: with nothing
 * held that protects a half-done change, and nothing held that would exclude
 * another process but not a sibling.
 */
AioSuspendVerdict
AioMaySuspend(void)
{
	AioTask    *task = aio_current_task;
	AioScope   *scope;
	AioSuspendVerdict verdict;

	if (task == NULL)
		return AIO_SUSPEND_NO_TASK;
	Assert(task->state == AIO_TASK_RUNNING);
	if (task->no_suspend)
		return AIO_SUSPEND_PINNED_DOWN;
	if (proc_exit_inprogress)
		return AIO_SUSPEND_EXITING;
	if (CritSectionCount > 0)
		return AIO_SUSPEND_CRITICAL;
	scope = task->scope;
	verdict = aio_task_port.may_suspend(&scope->held);

	/* these locks, which hold off interrupts themselves, are better reasons */
	if (verdict != AIO_SUSPEND_PAGE_LOCK && verdict != AIO_SUSPEND_LWLOCK &&
		(InterruptHoldoffCount != scope->holdoff ||
		 QueryCancelHoldoffCount != scope->cancel_holdoff))
		verdict = AIO_SUSPEND_HOLDOFF;
	return verdict;
}

/* A verdict in words, for views and debug output. */
const char *
AioSuspendVerdictName(AioSuspendVerdict verdict)
{
	Assert(verdict < AIO_SUSPEND_VERDICTS);
	return verdict_names[verdict];
}

/*
 * Await a future: return at once if it is complete, suspend the running task
 * until it is if the rules allow that, and otherwise leave the waiting to the
 * caller's own, blocking, way.
 *
 * Returns whether the future is complete.  False means that nothing was
 * waited for, because suspending is not allowed here.  May raise: memory for
 * the resource owner's note, and after a suspension whatever the future's
 * owner makes of its result.
 */
bool
AioAwait(AioFuture *future)
{
	AioSuspendVerdict verdict;
	AioTask    *task = aio_current_task;

	/* who waits for it relies on these */
	Assert(future->ops->wait != NULL || !future->ops->elsewhere);
	Assert((future->ops->configure == NULL) == (future->ops->notify == NULL));

	if (AioPoll(future))
		return true;

	verdict = AioMaySuspend();
	if (verdict != AIO_SUSPEND_OK)
	{
		if (task != NULL)
			aio_task_counters.blocked[verdict]++;
		return false;
	}

	AioRememberScopes();
	if (future->ops->remote)
		task->scope->remote_awaited = true;
	aio_task_port.awaits(task, future);
	do
	{
		aio_task_counters.suspensions++;
		AioTaskSuspend(future);
	} while (!AioPoll(future));
	return true;
}

/*
 * Let the siblings run, if the rules allow it.  Used where progress of others
 * is wanted although nothing is awaited.
 */
void
AioYield(void)
{
	AioFuture	future = {.ops = &yield_ops};

	if (AioMaySuspend() != AIO_SUSPEND_OK)
		return;
	AioRememberScopes();
	aio_task_counters.suspensions++;
	AioTaskSuspend(&future);
}

static bool
always_complete(AioFuture *future)
{
	return true;
}
