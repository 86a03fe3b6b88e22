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

#include "access/xact.h"
#include "aio/read.h"
#include "aio/seams.h"
#include "aio/task_board.h"
#include "internal.h"
#include "miscadmin.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/wait_event.h"

/* the task that runs, or NULL on the backend's own stack */
AioTask    *aio_current_task = NULL;

static dlist_head pool = DLIST_STATIC_INIT(pool);
static int	pool_size = 0;

/* idle tasks kept beyond aio.max_tasks, for scopes within scopes */
#define SPARE_TASKS 16

static AioContext *run_body(void *arg);
static void outermost(void *arg);

/* Go from one state to another, along an edge that internal.h knows. */
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
	task->place = AioTaskBoardPlace();
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
		AioTaskBoardGiveBack(task->place);
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
	AioFlow		mine;
	AioContext	here;

	AioFlowSave(&mine);
	PG_exception_stack = &task->handler;
	error_context_stack = scope->error_context;
	CurrentMemoryContext = scope->memory_context;
	CurrentResourceOwner = scope->owner;
	*aio_stack_base = task->stack.low + AIO_STACK_BYTES;
	*aio_stack_depth_max_bytes =
		Min(mine.stack_limit.depth_max_bytes,
			AIO_STACK_BYTES - AIO_STACK_SLOP_BYTES);

	task->resumer = &here;
	aio_current_task = task;
	set_state(task, AIO_TASK_IDLE, AIO_TASK_RUNNING);

	AioContextCall(&here, &task->idle, run_body, task);

	aio_current_task = me;
	AioFlowRestore(&mine);
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
	AioFlow		mine;
	AioContext	here;

	task->awaits = NULL;
	if (task->place >= 0)
		AioTaskBoardRemove(task->place);
	AioFlowSave(&mine);
	task->resumer = &here;
	aio_current_task = task;
	set_state(task, AIO_TASK_SUSPENDED, AIO_TASK_RUNNING);
	AioFlowRestore(&task->flow);

	AioContextSwitch(&here, &task->suspended_at);

	aio_current_task = me;
	AioFlowRestore(&mine);
}

/* Say on the board what the task awaits. */
static void
post(const AioTask *task, const AioFuture *future)
{
	AioTaskNotice notice = {0};

	notice.pid = MyProcPid;
	notice.scope = task->scope->number;
	notice.task = task->id;
	notice.relation = task->options.rel == NULL ? InvalidOid :
		RelationGetRelid(task->options.rel);
	strlcpy(notice.awaits, future->ops->name, sizeof(notice.awaits));
	if (future->ops->kind == AIO_KIND_READ || future->ops->kind == AIO_KIND_WRITE)
		notice.io = ((const AioIOFuture *) future)->wref;
	else
		pgaio_wref_clear(&notice.io);
	notice.lsn = future->ops->kind == AIO_KIND_FLUSH ?
		((const AioFlushFuture *) future)->upto : InvalidXLogRecPtr;
	INSTR_TIME_SET_CURRENT(notice.since);
	AioTaskBoardPost(task->place, &notice);
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
	AioAssertTaskStops(task);
	task->awaits = future;
	if (task->place >= 0)
		post(task, future);
	set_state(task, AIO_TASK_RUNNING, AIO_TASK_SUSPENDED);
	AioFlowSave(&task->flow);
	AioContextSwitch(&task->suspended_at, task->resumer);

	Assert(aio_current_task == task);
	Assert(task->state == AIO_TASK_RUNNING);
	AioAssertTaskRuns(task, false);
}

/* Decide that a suspended task never runs again. */
void
AioTaskDrop(AioTask *task)
{
	set_state(task, AIO_TASK_SUSPENDED, AIO_TASK_DROPPED);
	if (task->place >= 0)
		AioTaskBoardRemove(task->place);
}

/* AioContextBody: run what the task is given. */
static AioContext *
run_body(void *arg)
{
	AioTask    *task = arg;

	AioAssertTaskRuns(task, true);
	task->body(task->arg);
	AioAssertTaskStops(task);
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
