/*-------------------------------------------------------------------------
 *
 * task.c
 *	  Tasks: functions that run on stacks of their own and can stop midway.
 *
 * A task's stack outlives the task: the trampoline below runs one function
 * after the other, so that spawning costs a switch and no set-up.  Tasks are
 * pooled per backend, last used first.
 *
 * Owner:     the pool owns tasks; a scope (scope.c) borrows them.
 * Suspends:  AioTaskSuspend() only.
 * Errors:    never cross stacks by a jump.  An error that leaves a task's
 *            function is copied into the scope's memory and reported by value.
 * Locks:     none; everything here is private to one backend.
 * Tests:     src/test/aio/core.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "aio/seams.h"
#include "internal.h"
#include "miscadmin.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/wait_event.h"

/* the task that runs, or NULL on the backend's own stack */
AioTask    *aio_current_task = NULL;

static dlist_head pool = DLIST_STATIC_INIT(pool);
static int	pool_size = 0;

/* idle tasks kept beyond aio.max_tasks, for scopes within scopes */
#define SPARE_TASKS 16

static void trampoline(void *arg);

static const char *
state_name(AioTaskState state)
{
	switch (state)
	{
		case AIO_TASK_IDLE:
			return "idle";
		case AIO_TASK_RUNNING:
			return "running";
		case AIO_TASK_SUSPENDED:
			return "suspended";
		case AIO_TASK_DROPPED:
			return "dropped";
	}
	return "unknown";
}

static void
set_state(AioTask *task, AioTaskState to)
{
	AioTaskState from = task->state;
	bool		legal = false;

	switch (to)
	{
		case AIO_TASK_IDLE:
			legal = from == AIO_TASK_RUNNING || from == AIO_TASK_DROPPED;
			break;
		case AIO_TASK_RUNNING:
			legal = from == AIO_TASK_IDLE || from == AIO_TASK_SUSPENDED;
			break;
		case AIO_TASK_SUSPENDED:
			legal = from == AIO_TASK_RUNNING;
			break;
		case AIO_TASK_DROPPED:
			legal = from == AIO_TASK_SUSPENDED;
			break;
	}
	if (!legal)
		elog(PANIC, "task cannot go from state %s to %s",
			 state_name(from), state_name(to));
	task->state = to;
}

/* Note the running flow's globals. */
void
AioFlowSave(AioFlow *flow)
{
	flow->exception_stack = PG_exception_stack;
	flow->error_context = error_context_stack;
	flow->memory_context = CurrentMemoryContext;
	flow->resource_owner = CurrentResourceOwner;
	flow->scope = aio_current_scope;
	AioStackLimitGet(&flow->stack_limit);
	flow->wait_event = *(volatile uint32 *) my_wait_event_info;
}

/* Make another flow's globals current. */
void
AioFlowRestore(const AioFlow *flow)
{
	PG_exception_stack = flow->exception_stack;
	error_context_stack = flow->error_context;
	CurrentMemoryContext = flow->memory_context;
	CurrentResourceOwner = flow->resource_owner;
	aio_current_scope = flow->scope;
	AioStackLimitSet(&flow->stack_limit);
	*(volatile uint32 *) my_wait_event_info = flow->wait_event;
}

/*
 * Take an idle task from the pool, or make one.  Returns NULL if there is no
 * memory for another stack.
 */
AioTask *
AioTaskGet(void)
{
	AioTask    *task;

	if (!dlist_is_empty(&pool))
		return dlist_container(AioTask, node, dlist_pop_head_node(&pool));

	task = MemoryContextAllocExtended(TopMemoryContext, sizeof(AioTask),
									  MCXT_ALLOC_NO_OOM | MCXT_ALLOC_ZERO);
	if (task == NULL)
		return NULL;
	if (!AioStackAllocate(&task->stack))
	{
		pfree(task);
		return NULL;
	}
	task->state = AIO_TASK_IDLE;
	AioContextInit(&task->context, task->stack.low, AIO_STACK_BYTES,
				   trampoline, task);
	pool_size++;
	return task;
}

/*
 * Give back a task that is idle or dropped.  A dropped task's stack holds
 * frames that will never be finished, so it starts over at its top.
 */
void
AioTaskPut(AioTask *task)
{
	Assert(task != aio_current_task);

	if (task->state == AIO_TASK_DROPPED)
	{
		AioContextInit(&task->context, task->stack.low, AIO_STACK_BYTES,
					   trampoline, task);
		set_state(task, AIO_TASK_IDLE);
	}
	Assert(task->state == AIO_TASK_IDLE);

	/* aio.max_tasks has been lowered, perhaps */
	if (unlikely(pool_size > aio_max_tasks + SPARE_TASKS))
	{
		AioStackFree(&task->stack);
		pfree(task);
		pool_size--;
		return;
	}
	dlist_push_head(&pool, &task->node);
}

/* Number of tasks that exist in this backend, idle or not. */
int
AioTaskPoolSize(void)
{
	return pool_size;
}

/*
 * Run a task's function until it ends or the task suspends.  On return the
 * state is IDLE (see task->failed) or SUSPENDED.
 *
 * May not be called by the task itself.  Raises nothing.
 */
static void
switch_to(AioTask *task)
{
	AioFlow		mine;
	AioContext	here;
	AioTask    *me = aio_current_task;

	AioFlowSave(&mine);
	task->resumer = &here;
	aio_current_task = task;
	set_state(task, AIO_TASK_RUNNING);
	AioFlowRestore(&task->flow);

	AioContextSwitch(&here, &task->context);

	aio_current_task = me;
	AioFlowRestore(&mine);
}

/*
 * Start the function of a task that the caller has filled in.  It inherits
 * the scope's memory context, resource owner and error context, as those of
 * the caller may be gone when the task is resumed.
 */
void
AioTaskStart(AioTask *task)
{
	AioFlowSave(&task->flow);
	task->flow.error_context = task->scope->error_context;
	task->flow.memory_context = task->scope->memory_context;
	task->flow.resource_owner = task->scope->owner;
	task->flow.stack_limit.base = task->stack.low + AIO_STACK_BYTES;
	task->flow.stack_limit.depth_max_bytes =
		Min(task->flow.stack_limit.depth_max_bytes,
			AIO_STACK_BYTES - AIO_STACK_SLOP_BYTES);
	switch_to(task);
}

/* Continue a suspended task. */
void
AioTaskResume(AioTask *task)
{
	Assert(task->state == AIO_TASK_SUSPENDED);
	task->awaits = NULL;
	switch_to(task);
}

/*
 * Suspend the running task until somebody resumes it, which the scheduler
 * does once 'future' is complete.  The caller has asked AioMaySuspend().
 */
void
AioTaskSuspend(AioFuture *future)
{
	AioTask    *task = aio_current_task;
#ifdef USE_ASSERT_CHECKING
	Snapshot	snapshot = ActiveSnapshotSet() ? GetActiveSnapshot() : NULL;
	int			nest_level = GetCurrentTransactionNestLevel();
	uint32		holdoff = InterruptHoldoffCount;
	int			sibling_locks = aio_sibling_locks;
#endif

	Assert(AioMaySuspend() == AIO_SUSPEND_OK);

	task->awaits = future;
	set_state(task, AIO_TASK_SUSPENDED);
	AioFlowSave(&task->flow);
	AioContextSwitch(&task->context, task->resumer);

	/* what is not switched must be as it was */
	Assert(aio_current_task == task);
	Assert(task->state == AIO_TASK_RUNNING);
	Assert(CritSectionCount == 0);
	Assert(InterruptHoldoffCount == holdoff);
	Assert(GetCurrentTransactionNestLevel() == nest_level);
	Assert((ActiveSnapshotSet() ? GetActiveSnapshot() : NULL) == snapshot);
	Assert(aio_sibling_locks == sibling_locks);
	Assert(AioHeldLWLocks() == 0);
}

/* Decide that a suspended task never runs again. */
void
AioTaskDrop(AioTask *task)
{
	set_state(task, AIO_TASK_DROPPED);
}

/*
 * The outermost function on a task's stack: run what the task is given, over
 * and over.  The jump buffer is set once, as this frame never goes away; so
 * everything that must survive a jump lives in the task.
 */
static void
trampoline(void *arg)
{
	AioTask    *const task = arg;
	sigjmp_buf	handler;

	AioContextEntered(&task->context);

	if (sigsetjmp(handler, 0) != 0)
	{
		/* the function raised an error: keep it as data */
		PG_exception_stack = NULL;
		error_context_stack = NULL;
		MemoryContextSwitchTo(task->scope->memory_context);
		task->error = CopyErrorData();
		FlushErrorState();
		task->failed = true;
		set_state(task, AIO_TASK_IDLE);
		AioContextSwitch(&task->context, task->resumer);
	}

	for (;;)
	{
		PG_exception_stack = &handler;
		task->body(task->arg);
		set_state(task, AIO_TASK_IDLE);
		AioContextSwitch(&task->context, task->resumer);
	}
}
