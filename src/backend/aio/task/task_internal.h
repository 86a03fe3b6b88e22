/*-------------------------------------------------------------------------
 *
 * task_internal.h
 *	  What the files of src/backend/aio/task share among themselves.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AIO_TASK_INTERNAL_H
#define AIO_TASK_INTERNAL_H

#include <setjmp.h>

#include "aio/task_port.h"
#include "context.h"
#include "lib/ilist.h"
#include "stack.h"
#include "utils/elog.h"
#include "utils/palloc.h"
#include "utils/resowner.h"
#include "utils/wait_event.h"

/* what the program does for tasks; set before the first scope begins */
extern AioTaskPort aio_task_port;

/*
 * What PostgreSQL keeps in globals per flow of control.  Saved and restored
 * at each switch, by AioFiberSave() and AioFiberRestore() alone.
 */
typedef struct AioFiber
{
	sigjmp_buf *exception_stack;
	ErrorContextCallback *error_context;
	MemoryContext memory_context;
	ResourceOwner resource_owner;
	AioScope   *scope;
	char	   *stack_base;
	ssize_t		stack_depth_max;
	uint32		wait_event;
} AioFiber;

/*
 * A task's life.  task.c asserts the edges.
 *
 * IDLE -> RUNNING			spawned
 * RUNNING -> SUSPENDED		awaits a future that is not complete
 * SUSPENDED -> RUNNING		the scheduler found its future complete
 * RUNNING -> IDLE			its function returned, or raised an error that the
 *							scope has taken over; the stack may be reused
 * SUSPENDED -> DROPPED		the scope failed; the task never runs again
 * DROPPED -> IDLE			its resource owner is released and its reads are
 *							complete; the stack is made anew
 */
typedef enum AioTaskState
{
	AIO_TASK_IDLE,
	AIO_TASK_RUNNING,
	AIO_TASK_SUSPENDED,
	AIO_TASK_DROPPED,
} AioTaskState;

struct AioTask
{
	AioTaskState state;
	bool		failed;			/* ended by an error */
	bool		no_suspend;		/* AioTaskForbidSuspend() was called */

	/* in the pool, or in its scope's list of suspended or dropped tasks */
	dlist_node	node;
	/* in its scope's order, until it ends; only if options.ordered */
	dlist_node	order_node;

	AioScope   *scope;
	uint64		id;				/* 1, 2, ... in spawn order within the scope */
	AioTaskOptions options;
	AioTaskBody body;
	AioFuture  *awaits;			/* while suspended */
	ErrorData  *error;			/* if failed; in the scope's memory context */

	AioFiber	fiber;			/* its globals while it does not run */
	AioContext	suspended_at;	/* where to continue it */
	AioContext	idle;			/* serves calls: see context.h */
	sigjmp_buf	handler;		/* of its outermost frame */
	AioContext *resumer;		/* whom to return to when it stops running */
	AioStack	stack;

	/* the program's; see AioTaskLocal() */
	int64		local[AIO_TASK_LOCAL_BYTES / sizeof(int64)];

	/* copy of the spawner's argument */
	int64		arg[AIO_TASK_ARG_MAX / sizeof(int64)];
};

StaticAssertDecl(AIO_TASK_LOCAL_BYTES % sizeof(int64) == 0 &&
				 AIO_TASK_ARG_MAX % sizeof(int64) == 0,
				 "a task has as many bytes as are promised");

struct AioScope
{
	AioScope   *parent;
	uint64		number;			/* of the process's scopes */
	dlist_node	pool_node;
	AioScopeBody body;
	void	   *arg;			/* of the body */
	AioErrorYields yields;
	ResourceOwner owner;		/* current when the scope began */
	MemoryContext memory_context;	/* likewise; errors are kept here */
	ErrorContextCallback *error_context;	/* likewise */
	AioFuture	any;			/* complete when any suspended task can go on */

	dlist_head	suspended;		/* AioTask.node, in spawn order */
	dlist_head	ordered;		/* AioTask.order_node, in spawn order */
	dlist_head	dropped;		/* AioTask.node */
	int			nsuspended;
	uint64		last_id;		/* of the task spawned last */
	uint64		failed_id;		/* of the task whose error is being raised */
	uint64		turn_limit;		/* tasks with a greater id come after an error */
	bool		remembered;		/* the resource owner knows this scope */
	bool		remote_awaited; /* a task has awaited what is remote */
	bool		stackless;		/* a task without a stack of its own runs */

	/* what held when the scope began; tasks suspend only under the same */
	uint32		holdoff;
	uint32		cancel_holdoff;
	AioHeldLocks held;
};

/* Note the running fiber's globals. */
static inline void
AioFiberSave(AioFiber *fiber)
{
	fiber->exception_stack = PG_exception_stack;
	fiber->error_context = error_context_stack;
	fiber->memory_context = CurrentMemoryContext;
	fiber->resource_owner = CurrentResourceOwner;
	fiber->scope = aio_current_scope;
	fiber->stack_base = *aio_task_port.stack_base;
	fiber->stack_depth_max = *aio_task_port.stack_depth_max;
	fiber->wait_event = *(volatile uint32 *) my_wait_event_info;
}

/* Make another fiber's globals current. */
static inline void
AioFiberRestore(const AioFiber *fiber)
{
	PG_exception_stack = fiber->exception_stack;
	error_context_stack = fiber->error_context;
	CurrentMemoryContext = fiber->memory_context;
	CurrentResourceOwner = fiber->resource_owner;
	aio_current_scope = fiber->scope;
	*aio_task_port.stack_base = fiber->stack_base;
	*aio_task_port.stack_depth_max = fiber->stack_depth_max;
	*(volatile uint32 *) my_wait_event_info = fiber->wait_event;
}

/* task.c */
extern AioTask *AioTaskGet(void);
extern void AioTaskPut(AioTask *task);
extern void AioTaskStart(AioTask *task);
extern void AioTaskResume(AioTask *task);
extern void AioTaskSuspend(AioFuture *future);
extern void AioTaskDrop(AioTask *task);
extern int	AioTaskPoolSize(void);

/* scope.c */
extern void AioRememberScopes(void);

#ifdef USE_ASSERT_CHECKING
#define AioCheckRuns(task, begins)	aio_task_port.check_runs(task, begins)
#define AioCheckStops(task)			aio_task_port.check_stops(task)
#else
#define AioCheckRuns(task, begins)	((void) 0)
#define AioCheckStops(task)			((void) 0)
#endif

/*
 * Is the future complete, for whoever goes on then?  The developer option that
 * delays completions can make this false for what has been true; it will be
 * true again, if it is asked again.  Futures that only siblings complete are
 * not delayed: nobody waits for those by any other means.
 */
static inline bool
AioPoll(AioFuture *future)
{
	return future->ops->poll(future) &&
		!(future->ops->external && AioRandomDelay());
}

#endif							/* AIO_TASK_INTERNAL_H */
