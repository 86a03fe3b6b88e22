/*-------------------------------------------------------------------------
 *
 * task.c
 *	  Tasks: functions that run on stacks of their own and can stop midway.
 *
 * A task's stack outlives the task: its outermost frame stays, catches errors
 * and serves one call after the other, so that spawning costs a call and no
 * set-up.  Tasks are pooled per backend, last used first.
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

#include "task_internal.h"
#include "utils/memutils.h"

/* the task that runs, or NULL on the backend's own stack */
AioTask    *aio_current_task = NULL;

AioTaskPort aio_task_port;
AioTaskCounters aio_task_counters;

static dlist_head pool = DLIST_STATIC_INIT(pool);
static int	pool_size = 0;

/* stacks cannot be switched here: tasks run on that of whoever spawns them */
static bool no_stacks = false;

/* idle tasks kept beyond aio.max_tasks, for scopes within scopes */
#define SPARE_TASKS 16

static AioContext *run_body(void *arg);
static void outermost(void *arg);

/* Go from one state to another, along an edge that task_internal.h knows. */
static inline void
set_state(AioTask *task, AioTaskState from, AioTaskState to)
{
	Assert(task->state == from);
	task->state = to;
}

/*
 * Let a new or dropped task's stack begin at its top, ready to serve calls.
 */
static void
make_stack(AioTask *task)
{
	AioContext	here;

	AioContextInit(&task->idle, task->stack.low, AIO_STACK_BYTES,
				   outermost, task);
	task->resumer = &here;
	AioContextSwitch(&here, &task->idle);
}

/*
 * Take an idle task from the pool, or make one.  Returns NULL if there is no
 * memory for another stack, or if this process cannot switch stacks.
 */
AioTask *
AioTaskGet(void)
{
	AioTask    *task;

	if (!dlist_is_empty(&pool))
	{
		task = dlist_container(AioTask, node, dlist_pop_head_node(&pool));
		Assert(task->state == AIO_TASK_IDLE);
		return task;
	}

	if (no_stacks)
		return NULL;
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
	aio_task_port.task_made(task);
	make_stack(task);
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

	if (unlikely(task->state == AIO_TASK_DROPPED))
	{
		make_stack(task);
		set_state(task, AIO_TASK_DROPPED, AIO_TASK_IDLE);
	}
	Assert(task->state == AIO_TASK_IDLE);

	/* aio.max_tasks has been lowered, perhaps */
	if (unlikely(pool_size > aio_max_tasks + SPARE_TASKS))
	{
		aio_task_port.task_freed(task);
		AioStackFree(&task->stack);
		pfree(task);
		pool_size--;
		return;
	}
	dlist_push_head(&pool, &task->node);
}

/*
 * What the program does for tasks, which is copied.  Before the first scope
 * begins, in the postmaster if there is one.  Returns why tasks are not going
 * to be suspended in this process, in words for a message's detail, or NULL.
 */
const char *
AioTaskSetPort(const AioTaskPort *port)
{
	const char *refusal = AioContextRefusal();

	/* tasks that there are would be told of what they are not made for */
	Assert(aio_current_scope == NULL);
	Assert(pool_size == 0);
	aio_task_port = *port;
	no_stacks = refusal != NULL;
	return refusal;
}

/* Can tasks be suspended in this process?  If not, they are of no use. */
bool
AioTasksCanSuspend(void)
{
	return !no_stacks;
}

/* What is known of a task. */
void
AioTaskGetInfo(const AioTask *task, AioTaskInfo *info)
{
	info->scope = task->scope->number;
	info->id = task->id;
	info->subject = task->options.subject;
}

/* The program's own memory in a task, of AIO_TASK_LOCAL_BYTES. */
void *
AioTaskLocal(AioTask *task)
{
	return task->local;
}

/* What the running task works on, or NULL. */
void *
AioTaskSubject(void)
{
	return aio_current_task == NULL ? NULL : aio_current_task->options.subject;
}

/*
 * Tell the creator of the running task, by its hook if it has one.  What the
 * hook does is not told.
 */
void
AioTaskTell(void *event)
{
	AioTask    *task = aio_current_task;
	AioTaskHook hook = task->options.hook;

	if (hook == NULL)
		return;
	task->options.hook = NULL;
	hook(event, task->arg);
	Assert(aio_current_task == task);
	Assert(task->options.hook == NULL);
	task->options.hook = hook;
}

/* Number of tasks that exist in this backend, idle or not. */
int
AioTaskPoolSize(void)
{
	return pool_size;
}

/*
 * Run the function of a task that the caller has filled in, until it ends or
 * the task suspends.  On return the state is IDLE (see task->failed) or
 * SUSPENDED.  Raises nothing.
 *
 * The task inherits the scope's memory context, resource owner and error
 * context, as those of the caller may be gone when the task is resumed.
 */
void
AioTaskStart(AioTask *task)
{
	AioScope   *scope = task->scope;
	AioTask    *me = aio_current_task;
	AioFiber	mine;
	AioContext	here;

	AioFiberSave(&mine);
	PG_exception_stack = &task->handler;
	error_context_stack = scope->error_context;
	CurrentMemoryContext = scope->memory_context;
	CurrentResourceOwner = scope->owner;
	*aio_task_port.stack_base = task->stack.low + AIO_STACK_BYTES;
	*aio_task_port.stack_depth_max =
		Min(mine.stack_depth_max, AIO_STACK_BYTES - AIO_STACK_SLOP_BYTES);

	task->resumer = &here;
	aio_current_task = task;
	set_state(task, AIO_TASK_IDLE, AIO_TASK_RUNNING);

	AioContextCall(&here, &task->idle, run_body, task);

	Assert(aio_current_task == task);
	Assert(task->state == AIO_TASK_IDLE || task->state == AIO_TASK_SUSPENDED);
	aio_current_task = me;
	AioFiberRestore(&mine);
}

/*
 * Continue a suspended task, until it ends or suspends again.
 *
 * May not be called by the task itself.  Raises nothing.
 */
void
AioTaskResume(AioTask *task)
{
	AioTask    *me = aio_current_task;
	AioFiber	mine;
	AioContext	here;

	/* else its scope could end while it runs */
	Assert(aio_current_scope == task->scope);

	task->awaits = NULL;
	aio_task_port.resumed(task);
	AioFiberSave(&mine);
	task->resumer = &here;
	aio_current_task = task;
	set_state(task, AIO_TASK_SUSPENDED, AIO_TASK_RUNNING);
	AioFiberRestore(&task->fiber);

	AioContextSwitch(&here, &task->suspended_at);

	Assert(aio_current_task == task);
	Assert(task->state == AIO_TASK_IDLE || task->state == AIO_TASK_SUSPENDED);
	aio_current_task = me;
	AioFiberRestore(&mine);
}

/*
 * Suspend the running task until somebody resumes it, which the scheduler
 * does once 'future' is complete.  The caller has asked AioMaySuspend().
 */
void
AioTaskSuspend(AioFuture *future)
{
	AioTask    *task = aio_current_task;

	Assert(AioMaySuspend() == AIO_SUSPEND_OK);

	/* what is not switched must be as it was */
	AioCheckStops(task);
	task->awaits = future;
	aio_task_port.suspended(task, future);
	set_state(task, AIO_TASK_RUNNING, AIO_TASK_SUSPENDED);
	AioFiberSave(&task->fiber);
	AioContextSwitch(&task->suspended_at, task->resumer);

	Assert(aio_current_task == task);
	Assert(task->state == AIO_TASK_RUNNING);
	AioCheckRuns(task, false);
}

/* Decide that a suspended task never runs again. */
void
AioTaskDrop(AioTask *task)
{
	set_state(task, AIO_TASK_SUSPENDED, AIO_TASK_DROPPED);
	aio_task_port.dropped(task, task->awaits);
}

/* AioContextBody: run what the task is given. */
static AioContext *
run_body(void *arg)
{
	AioTask    *task = arg;

	AioCheckRuns(task, true);
	task->body(task->arg);

	/* frames that are gone must not be pointed to */
	Assert(PG_exception_stack == &task->handler);
	Assert(error_context_stack == task->scope->error_context);
	Assert(aio_current_scope == task->scope);
	AioCheckStops(task);
	set_state(task, AIO_TASK_RUNNING, AIO_TASK_IDLE);
	return task->resumer;
}

/*
 * The outermost function on a task's stack.  Its frame never goes away, so
 * the jump buffer is set once.
 */
static void
outermost(void *arg)
{
	AioTask    *const task = arg;

	AioContextEntered(&task->idle);

	if (sigsetjmp(task->handler, 0) != 0)
	{
		/* not another task's, which would jump across stacks */
		Assert(aio_current_task == task);

		/* the function raised an error: keep it as data */
		PG_exception_stack = NULL;
		error_context_stack = NULL;
		MemoryContextSwitchTo(task->scope->memory_context);
		task->error = CopyErrorData();
		FlushErrorState();
		task->failed = true;
		set_state(task, AIO_TASK_RUNNING, AIO_TASK_IDLE);
	}
	AioContextServe(&task->idle, task->resumer);
}
