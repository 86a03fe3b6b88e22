/*-------------------------------------------------------------------------
 *
 * scope.c
 *	  Structured concurrency: no task outlives the scope that spawned it.
 *
 * AioScopeRun() runs a body that spawns tasks, and returns when all of them
 * have ended.  Spawning runs a task at once, until it ends or first has to
 * wait.  Whenever the body waits (for a free task, for one task, for all) the
 * scheduler resumes the tasks whose futures are complete, oldest first.
 *
 * Owner:     the resource owner current when the scope began.  Pins and AIO
 *            handles that tasks take belong to it.
 * Suspends:  waiting for tasks does, if the scope was begun inside a task.
 * Errors:    the first by spawn order is raised from the scope.  An error
 *            that yields (task.h) lets the tasks spawned before it finish,
 *            since theirs would come first; any other error ends the scope
 *            at once.  Tasks left over are dropped: they never run again,
 *            and their stacks are not reused before the owner has released
 *            what they took.  Their reads are completed first.
 * Locks:     a scope is begun only while no page is locked, and no LWLock held.
 * Tests:     src/test/aio/core.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"
#include "storage/ipc.h"
#include "task_internal.h"
#include "utils/memutils.h"

AioScope   *aio_current_scope = NULL;

/* aio.max_tasks */
int			aio_max_tasks = 64;

/* scopes are kept for reuse, as a dropped one lives until its owner's end */
static dlist_head scope_pool = DLIST_STATIC_INIT(scope_pool);

/* number of the scope that was begun last */
static uint64 last_number = 0;

/* holds the argument of a task for which there is no stack */
static AioTask stackless;

static void release_scope(Datum res);
static char *print_scope(Datum res);
static bool any_ready(AioFuture *future);
static void any_wait(AioFuture *future);
static bool my_turn(AioFuture *future);
static bool siblings_idle(AioFuture *future);

/*
 * Released after buffer pins and AIO handles, hence "after locks".
 */
static const ResourceOwnerDesc scope_resowner_desc = {
	.name = "scope of tasks",
	.release_phase = RESOURCE_RELEASE_AFTER_LOCKS,
	.release_priority = RELEASE_PRIO_FIRST,
	.ReleaseResource = release_scope,
	.DebugPrint = print_scope,
};

static const AioFutureOps any_ops = {
	.name = "tasks",
	.poll = any_ready,
	.wait = any_wait,
};

static const AioFutureOps turn_ops = {
	.name = "turn",
	.holds_nothing = true,
	.poll = my_turn,
};

static const AioFutureOps idle_ops = {
	.name = "siblings",
	.holds_nothing = true,
	.poll = siblings_idle,
};

/*
 * Complete when a task is the oldest of its scope's ordered tasks, or when its
 * siblings are idle
 */
typedef struct TaskFuture
{
	AioFuture	future;			/* must be first */
	AioTask    *task;
} TaskFuture;

/* ------------------------------------------------------------------------
 * Life of a scope
 * ------------------------------------------------------------------------
 */

/*
 * May a scope begin here?  Not where its tasks could never suspend.
 */
bool
AioScopeAllowed(void)
{
	return CritSectionCount == 0 && aio_task_port.scope_allowed != NULL &&
		aio_task_port.scope_allowed();
}

static AioScope *
scope_begin(AioScopeBody body, void *arg, AioErrorYields yields)
{
	AioScope   *scope;

	Assert(AioScopeAllowed());
	Assert(CurrentResourceOwner != NULL);
	Assert(aio_current_task == NULL || aio_current_scope != NULL);

	if (dlist_is_empty(&scope_pool))
		scope = MemoryContextAlloc(TopMemoryContext, sizeof(AioScope));
	else
		scope = dlist_container(AioScope, pool_node,
								dlist_pop_head_node(&scope_pool));

	scope->parent = aio_current_scope;
	scope->number = ++last_number;
	scope->body = body;
	scope->arg = arg;
	scope->yields = yields;
	scope->owner = CurrentResourceOwner;
	scope->memory_context = CurrentMemoryContext;
	scope->error_context = error_context_stack;
	scope->any.ops = &any_ops;
	dlist_init(&scope->suspended);
	dlist_init(&scope->ordered);
	dlist_init(&scope->dropped);
	scope->nsuspended = 0;
	scope->remote_awaited = false;
	scope->stackless = false;
	scope->last_id = 0;
	scope->failed_id = 0;
	scope->turn_limit = PG_UINT64_MAX;
	scope->remembered = false;
	scope->holdoff = InterruptHoldoffCount;
	scope->cancel_holdoff = QueryCancelHoldoffCount;
	aio_task_port.scope_begins(&scope->held);
	aio_current_scope = scope;
	aio_task_counters.scopes++;
	return scope;
}

#ifdef USE_ASSERT_CHECKING
/* Are the suspended tasks of a scope its own, all counted, in spawn order? */
static bool
suspended_in_order(AioScope *scope)
{
	uint64		last_id = 0;
	int			n = 0;
	dlist_iter	iter;

	dlist_foreach(iter, &scope->suspended)
	{
		AioTask    *task = dlist_container(AioTask, node, iter.cur);

		if (task->scope != scope || task->id <= last_id)
			return false;
		last_id = task->id;
		n++;
	}
	return last_id <= scope->last_id && n == scope->nsuspended;
}

/* May somebody look for what tasks were to have done?  Not from a task. */
bool
AioNothingIsSuspended(void)
{
	Assert(aio_current_task == NULL);
	for (AioScope *scope = aio_current_scope; scope != NULL; scope = scope->parent)
	{
		if (scope->nsuspended > 0)
			return false;
	}
	return true;
}
#endif

static void
scope_free(AioScope *scope)
{
	Assert(dlist_is_empty(&scope->suspended));
	Assert(dlist_is_empty(&scope->dropped));
	dlist_push_head(&scope_pool, &scope->pool_node);
}

/*
 * Leave a scope all of whose tasks have ended.
 */
static void
scope_end(AioScope *scope)
{
	Assert(aio_current_scope == scope);
	Assert(scope->nsuspended == 0);
	Assert(dlist_is_empty(&scope->ordered));

	aio_task_port.scope_ends();
	aio_current_scope = scope->parent;
	if (scope->remembered)
	{
		ResourceOwnerForget(scope->owner, PointerGetDatum(scope),
							&scope_resowner_desc);
	}
	scope_free(scope);
}

/* The number of suspended tasks of this process changes by so many. */
static void
count_suspended(int change)
{
	Assert(aio_task_counters.suspended + change >= 0);
	aio_task_port.count_suspended(change);
	aio_task_counters.suspended += change;
}

/*
 * The suspended tasks of a scope never run again.  One on whose stack the
 * process is exiting stays where it is.
 */
static void
drop_tasks(AioScope *scope)
{
	dlist_mutable_iter iter;

	Assert(suspended_in_order(scope));
	dlist_foreach_modify(iter, &scope->suspended)
	{
		AioTask    *task = dlist_container(AioTask, node, iter.cur);

		if (task->state == AIO_TASK_RUNNING)
		{
			Assert(proc_exit_inprogress);
			continue;
		}
		dlist_delete(&task->node);
		AioTaskDrop(task);
		dlist_push_tail(&scope->dropped, &task->node);
		aio_task_counters.tasks_dropped++;
	}
	count_suspended(-scope->nsuspended);
	scope->nsuspended = 0;
	dlist_init(&scope->ordered);
}

/*
 * Drop the tasks of a scope, and of the scopes that these tasks have begun,
 * and see to the completion of their reads.
 */
static void
abandon_tasks(AioScope *scope)
{
	dlist_iter	iter;

	/* what is waited for here must not begin the same anew */
	Assert(InterruptHoldoffCount > 0);

	drop_tasks(scope);
	dlist_foreach(iter, &scope->dropped)
	{
		AioTask    *task = dlist_container(AioTask, node, iter.cur);

		if (task->awaits->ops->abandon != NULL)
			task->awaits->ops->abandon(task->awaits);
		for (AioScope *inner = task->fiber.scope; inner != scope; inner = inner->parent)
			abandon_tasks(inner);
	}
}

/*
 * Abandon a scope because of an error, which the caller raises next.
 */
static void
scope_drop(AioScope *scope)
{
	Assert(aio_current_scope == scope);

	/* nobody else would submit what our tasks have staged */
	aio_task_port.submit();

	/* what an erring task or body has locked would be released next anyway */
	aio_task_port.begin_abandon();
	HOLD_INTERRUPTS();
	abandon_tasks(scope);
	aio_task_port.finish_abandon();
	RESUME_INTERRUPTS();

	if (dlist_is_empty(&scope->dropped))
		scope_end(scope);
	else
	{
		/* the resource owner ends it */
		Assert(scope->remembered);
		aio_current_scope = scope->parent;
	}
}

static void
remember_scope(AioScope *scope)
{
	if (scope->remembered)
		return;
	ResourceOwnerEnlarge(scope->owner);
	ResourceOwnerRemember(scope->owner, PointerGetDatum(scope),
						  &scope_resowner_desc);
	scope->remembered = true;
}

/*
 * Make resource owners know the running task's scope, and those that the task
 * itself has begun, before it suspends.  May raise (out of memory).
 */
void
AioRememberScopes(void)
{
	AioScope   *scope = aio_current_scope;

	for (; scope != aio_current_task->scope; scope = scope->parent)
		remember_scope(scope);
	remember_scope(scope);
}

/*
 * The resource owner is being released, and pins and AIO handles are gone: no
 * completion writes to the dropped tasks' stacks any more.  Reuse them.
 * Nothing is waited for here: a wait that notices that the postmaster has
 * died would exit in the middle of the transaction's abort.
 *
 * Also reached when the process exits because of a FATAL error, possibly on
 * the stack of one of these tasks; that one is left alone.
 */
static void
release_scope(Datum res)
{
	AioScope   *scope = (AioScope *) DatumGetPointer(res);
	dlist_mutable_iter iter;

	/* it has been left, by an error if by nothing else */
	Assert(aio_current_scope != scope || proc_exit_inprogress);

	Assert(scope->remembered);
	aio_task_port.submit();
	scope->remembered = false;

	/* a process that exits has not passed through scope_drop() */
	drop_tasks(scope);

	dlist_foreach_modify(iter, &scope->dropped)
	{
		AioTask    *task = dlist_container(AioTask, node, iter.cur);

		dlist_delete(&task->node);
		AioTaskPut(task);
	}
	if (!proc_exit_inprogress)
		scope_free(scope);
}

static char *
print_scope(Datum res)
{
	AioScope   *scope = (AioScope *) DatumGetPointer(res);

	return psprintf("scope of %" PRIu64 " tasks", scope->last_id);
}

/* Is any task of this backend suspended or dropped? */
bool
AioAnyTaskSuspended(void)
{
	return aio_task_counters.suspended > 0;
}

/* ------------------------------------------------------------------------
 * Scheduler
 * ------------------------------------------------------------------------
 */

#ifdef USE_ASSERT_CHECKING
/* With aio.debug_suspend: is it another one's turn? */
static bool
let_others_go_first(AioScope *scope)
{
	return aio_debug_suspend && scope->nsuspended > 1 && AioRandom(2) == 0;
}
#else
#define let_others_go_first(scope) false
#endif

static bool
any_ready(AioFuture *future)
{
	AioScope   *scope = (AioScope *)
		((char *) future - offsetof(AioScope, any));
	dlist_iter	iter;

	dlist_foreach(iter, &scope->suspended)
	{
		AioTask    *task = dlist_container(AioTask, node, iter.cur);

		if (AioPoll(task->awaits))
			return true;
	}
	return false;
}

/*
 * An error is not raised any further: bring about a state in which tasks of
 * the scope can run.
 */
static void
clean_up(AioScope *scope)
{
	aio_task_port.clean_up();
	InterruptHoldoffCount = scope->holdoff;
	QueryCancelHoldoffCount = scope->cancel_holdoff;
}

static inline bool
yields(const AioScope *scope, const ErrorData *error)
{
	return scope->yields != NULL && scope->yields(error->sqlerrcode);
}

/*
 * A task failed: raise its error, unless an earlier one's is on its way.
 */
static void
task_failed(AioScope *scope, AioTask *task)
{
	ErrorData  *error;

	aio_task_counters.tasks_failed++;
	aio_task_port.failed(task);
	if (task->id > scope->turn_limit && yields(scope, task->error))
	{
		/* an earlier one's error is on its way already */
		FreeErrorData(task->error);
		AioTaskPut(task);
		clean_up(scope);
		return;
	}
	scope->failed_id = task->id <= scope->turn_limit ? task->id : 0;
	error = task->error;
	AioTaskPut(task);
	ReThrowError(error);
}

/*
 * A task has ended.  Raises its error if it failed.
 */
static inline void
task_ended(AioScope *scope, AioTask *task)
{
	Assert(task->scope == scope);
	if (task->options.ordered)
		dlist_delete(&task->order_node);
	if (unlikely(task->failed))
		task_failed(scope, task);
	else
		AioTaskPut(task);
}

/*
 * Resume every task whose future is complete, oldest first.  Returns how
 * many; raises the error of the first that fails.
 */
static int
run_ready(AioScope *scope)
{
	dlist_mutable_iter iter;
	int			resumed = 0;

	Assert(suspended_in_order(scope));
	dlist_foreach_modify(iter, &scope->suspended)
	{
		AioTask    *task = dlist_container(AioTask, node, iter.cur);

		if (!AioPoll(task->awaits))
			continue;
		if (let_others_go_first(scope))
			continue;
		AioTaskResume(task);
		resumed++;
		if (task->state != AIO_TASK_SUSPENDED)
		{
			dlist_delete(&task->node);
			scope->nsuspended--;
			count_suspended(-1);
			task_ended(scope, task);
		}
	}
	return resumed;
}

/*
 * What the tasks of a scope await, and those of scopes within them.  'futures'
 * may be NULL.  Returns how many these are.
 */
static int
collect_awaited(AioScope *scope, AioFuture **futures)
{
	dlist_iter	iter;
	int			n = 0;

	dlist_foreach(iter, &scope->suspended)
	{
		AioFuture  *future = dlist_container(AioTask, node, iter.cur)->awaits;

		if (future->ops == &any_ops)
			n += collect_awaited((AioScope *)
								 ((char *) future - offsetof(AioScope, any)),
								 futures == NULL ? NULL : futures + n);
		else
		{
			if (futures != NULL)
				futures[n] = future;
			n++;
		}
	}
	return n;
}

/* Wait for all of that at once.  Returns false if that is not possible. */
static bool
block_for_all(AioScope *scope)
{
	int			n = collect_awaited(scope, NULL);
	AioFuture **futures = palloc(n * sizeof(AioFuture *));
	bool		possible;

	collect_awaited(scope, futures);
	possible = aio_task_port.wait_for_any(futures, n);
	pfree(futures);
	return possible;
}

/*
 * Block until a task may go on.  Returns false if none ever can.
 */
static bool
block_for_any(AioScope *scope)
{
	AioFuture  *elsewhere = NULL;
	dlist_iter	iter;

	if (unlikely(scope->remote_awaited) && scope->nsuspended > 0)
		return block_for_all(scope);
	dlist_foreach(iter, &scope->suspended)
	{
		AioTask    *task = dlist_container(AioTask, node, iter.cur);
		AioFuture  *future = task->awaits;

		if (future->ops->elsewhere)
			elsewhere = future;
		else if (future->ops->wait != NULL)
		{
			future->ops->wait(future);
			return true;
		}
		else if (future->ops->poll(future))
			return true;
	}
	if (elsewhere == NULL)
		return false;
	elsewhere->ops->wait(elsewhere);
	return true;
}

static void
any_wait(AioFuture *future)
{
	AioScope   *scope = (AioScope *)
		((char *) future - offsetof(AioScope, any));

	if (!block_for_any(scope))
		elog(ERROR, "%d tasks wait for one another", scope->nsuspended);
}

/*
 * No task can go on: wait until one can.  Returns false if that will never
 * be.
 */
static bool
wait_for_any(AioScope *scope)
{
	aio_task_port.submit();

	/* the siblings of the task that we are in have something to do, perhaps */
	if (aio_current_task != NULL)
	{
		if (scope->remote_awaited)
			aio_current_task->scope->remote_awaited = true;
		if (AioAwait(&scope->any))
			return true;
	}
	return block_for_any(scope);
}

/*
 * Run tasks once: those that can go on or, if there is none, wait.  Returns
 * false if none ever can.
 */
static bool
try_run_some(AioScope *scope)
{
	CHECK_FOR_INTERRUPTS();
	aio_task_port.reap();
	return run_ready(scope) > 0 || wait_for_any(scope);
}

static void
run_some(AioScope *scope)
{
	if (!try_run_some(scope))
		elog(ERROR, "%d tasks wait for one another", scope->nsuspended);
}

/* ------------------------------------------------------------------------
 * Interface of task.h
 * ------------------------------------------------------------------------
 */

/*
 * An error left the body of a scope, or one of its tasks: find out whether a
 * task spawned before it fails too, since that one's error goes first.  Tasks
 * spawned after it run on meanwhile, as they hold pins, but those that await
 * their turn never get it, as they would wait for transactions.  Returns the
 * error to raise; raises nothing itself.
 */
static ErrorData *
settle_error(AioScope *scope, ErrorData *error, const AioFiber *fiber)
{
	volatile bool stuck = false;

	/* the body's own error comes after all that it has spawned */
	if (scope->failed_id != 0)
		scope->turn_limit = scope->failed_id;

	while (!stuck && yields(scope, error) &&
		   scope->nsuspended > 0 &&
		   dlist_head_element(AioTask, node, &scope->suspended)->id < scope->turn_limit)
	{
		/* the error may have left what cannot be cleaned up here */
		if (!aio_task_port.held_same(&scope->held))
			break;
		AioFiberRestore(fiber);
		clean_up(scope);
		scope->failed_id = 0;

		PG_TRY();
		{
			stuck = !try_run_some(scope);
		}
		PG_CATCH();
		{
			MemoryContextSwitchTo(scope->memory_context);
			error = CopyErrorData();
			FlushErrorState();
			Assert(scope->failed_id <= scope->turn_limit);
			if (scope->failed_id != 0)
				scope->turn_limit = scope->failed_id;
		}
		PG_END_TRY();
	}
	return error;
}

/*
 * Run body(scope, arg) and all tasks that it spawns; return when they have
 * ended.
 *
 * May suspend if called in a task.  Raises the first error by spawn order,
 * exactly as it was raised, with the body's own error coming after all tasks
 * spawned before it.  'yields' tells which errors let earlier tasks finish;
 * NULL stands for none.  No page may be locked, no LWLock held, nor may the
 * process be in a critical section.
 */
void
AioScopeRun(AioScopeBody body, void *arg, AioErrorYields yields)
{
	AioScope   *scope = scope_begin(body, arg, yields);
	AioFiber	fiber;

	AioFiberSave(&fiber);

	PG_TRY();
	{
		body(scope, arg);
		AioScopeJoin(scope);
	}
	PG_CATCH();
	{
		if (scope->nsuspended > 0)
		{
			ErrorData  *error;

			MemoryContextSwitchTo(scope->memory_context);
			error = CopyErrorData();
			FlushErrorState();
			error = settle_error(scope, error, &fiber);
			scope_drop(scope);

			/* as errfinish() leaves it */
			InterruptHoldoffCount = 0;
			QueryCancelHoldoffCount = 0;
			ReThrowError(error);
		}
		scope_drop(scope);
		PG_RE_THROW();
	}
	PG_END_TRY();

	/* else whoever comes next could not suspend, or where it must not */
	Assert(aio_task_port.held_same(&scope->held));
	Assert(InterruptHoldoffCount == scope->holdoff);
	scope_end(scope);
}

/*
 * Begin to spawn a task: returns memory for its argument, AIO_TASK_ARG_MAX
 * bytes aligned like an int64, which lives as long as the task.  The caller
 * fills it in and calls AioSpawnPrepared(), raising and spawning nothing in
 * between.
 *
 * If the scope has as many suspended tasks as AioTaskLimit() allows, one of
 * them ends first.  Raises the errors of older tasks.
 */
void *
AioSpawnPrepare(AioScope *scope)
{
	AioTask    *task;

	Assert(aio_current_scope == scope);

	if (unlikely(scope->nsuspended > 0))
	{
		int			limit = AioTaskLimit();

		while (scope->nsuspended >= limit)
			run_some(scope);
	}

	task = AioTaskGet();
	return task != NULL ? task->arg : stackless.arg;
}

/*
 * Where no stack can be had for a task, its function runs on the caller's.  If
 * that is another task's, that one may not be forbidden to suspend for longer.
 * (After an error the scope spawns nothing any more.)
 */
static pg_noinline void
run_without_stack(AioScope *scope, const AioTaskOptions *options,
				  AioTaskBody body)
{
	AioTask    *outer = aio_current_task;
	bool		no_suspend = outer != NULL && outer->no_suspend;
	int64		arg[AIO_TASK_ARG_MAX / sizeof(int64)];

	/* others may need it before this one has ended */
	memcpy(arg, stackless.arg, sizeof(arg));

	/* it cannot await its turn */
	if (options->ordered)
		AioScopeJoin(scope);
	scope->stackless = true;
	body(arg);
	scope->stackless = false;
	if (outer != NULL)
		outer->no_suspend = no_suspend;
}

/*
 * Spawn a task that runs body(arg), arg being what AioSpawnPrepare() returned
 * last.  The task starts at once; on return it has ended or is suspended.
 * Where no stack can be had, body runs on the caller's stack, and blocks.
 *
 * Returns the task's number in spawn order.  Raises the errors of tasks, of
 * this one or of older ones.
 */
uint64
AioSpawnPrepared(AioScope *scope, const AioTaskOptions *options,
				 AioTaskBody body, void *arg)
{
	AioTask    *task = (AioTask *) ((char *) arg - offsetof(AioTask, arg));
	uint64		id = ++scope->last_id;

	Assert(aio_current_scope == scope);

	/* after an error nobody is to come that has no turn */
	Assert(scope->turn_limit == PG_UINT64_MAX);

	aio_task_counters.tasks++;
	if (unlikely(task == &stackless))
	{
		run_without_stack(scope, options, body);
		return id;
	}

	task->scope = scope;
	task->id = id;
	task->options = *options;
	task->body = body;
	task->failed = false;
	task->no_suspend = false;
	if (options->ordered)
		dlist_push_tail(&scope->ordered, &task->order_node);

	AioTaskStart(task);

	if (task->state == AIO_TASK_SUSPENDED)
	{
		dlist_push_tail(&scope->suspended, &task->node);
		scope->nsuspended++;
		count_suspended(1);
		aio_task_counters.tasks_suspended++;
	}
	else
		task_ended(scope, task);
	return id;
}

/*
 * Both of the above, for an argument of arg_size bytes that is to be copied.
 */
uint64
AioSpawn(AioScope *scope, const AioTaskOptions *options,
		 AioTaskBody body, const void *arg, size_t arg_size)
{
	void	   *copy;

	Assert(arg_size <= AIO_TASK_ARG_MAX);

	copy = AioSpawnPrepare(scope);
	memcpy(copy, arg, arg_size);
	return AioSpawnPrepared(scope, options, body, copy);
}

/*
 * Wait until all tasks of the scope have ended.  Raises their errors.
 */
void
AioScopeJoin(AioScope *scope)
{
	while (scope->nsuspended > 0)
		run_some(scope);
}

/*
 * Wait until one task of the scope, given by AioSpawn()'s result, has ended.
 */
void
AioScopeJoinTask(AioScope *scope, uint64 task_id)
{
	Assert(task_id <= scope->last_id);
	for (;;)
	{
		dlist_iter	iter;
		bool		found = false;

		dlist_foreach(iter, &scope->suspended)
		{
			if (dlist_container(AioTask, node, iter.cur)->id == task_id)
			{
				found = true;
				break;
			}
		}
		if (!found)
			return;
		run_some(scope);
	}
}

static uint64
order_in(const AioScope *scope)
{
	if (aio_current_task != NULL && aio_current_task->scope == scope)
		return 2 * aio_current_task->id;
	return 2 * scope->last_id + 1;
}

/*
 * The place of what runs now: that of its task, or of the scope's body, which
 * comes after the tasks that it has spawned so far.  May be called anywhere.
 */
AioSpawnPlace
AioPlaceInSpawnOrder(void)
{
	AioSpawnPlace place = {0};

	if (aio_current_scope != NULL)
	{
		place.scope = aio_current_scope->number;
		place.order = order_in(aio_current_scope);
	}
	return place;
}

/*
 * Had all that a scope does been done one after the other, would what was done
 * there come after what runs now?  Of the scopes that the running task is in,
 * those are known that it has begun, and its own.  May be called anywhere.
 */
bool
AioIsLaterPlace(const AioSpawnPlace *place)
{
	for (AioScope *scope = aio_current_scope; scope != NULL; scope = scope->parent)
	{
		if (scope->number == place->scope)
			return place->order > order_in(scope);
		if (aio_current_task == NULL || aio_current_task->scope == scope)
			break;
	}
	return false;
}

/*
 * How many tasks of a scope may be suspended at a time: aio.max_tasks, or what
 * the program has room for.
 */
int
AioTaskLimit(void)
{
	int			limit = Min(aio_max_tasks, AIO_MAX_TASKS_LIMIT);

	return Max(Min(limit, aio_task_port.task_limit()), 1);
}

/*
 * Is a task the oldest of its scope's ordered tasks, and not later than an
 * error that is going to be raised?
 */
static bool
has_turn(const AioTask *task)
{
	return dlist_head_node(&task->scope->ordered) == &task->order_node &&
		task->id <= task->scope->turn_limit;
}

static bool
my_turn(AioFuture *future)
{
	return has_turn(((TaskFuture *) future)->task);
}

/*
 * Is it the turn of the running, ordered, task?  It is where there is none, and
 * for one without a stack of its own, which runs when all others have ended.
 */
bool
AioTaskHasTurn(void)
{
	AioTask    *task = aio_current_task;

	if (task == NULL ||
		(aio_current_scope->stackless && task->scope != aio_current_scope))
		return true;
	Assert(task->options.ordered);
	return has_turn(task);
}

/*
 * Suspend the running task until all ordered tasks spawned before it have
 * ended.
 */
void
AioAwaitTurn(void)
{
	TaskFuture	turn;

	if (AioTaskHasTurn())
		return;
	turn.future.ops = &turn_ops;
	turn.task = aio_current_task;
	if (!AioAwait(&turn.future))
		elog(ERROR, "task cannot await its turn here: %s",
			 AioSuspendVerdictName(AioMaySuspend()));
	Assert(AioTaskHasTurn());
}

/*
 * Have all tasks of a scope but this one ended, or do those that have not hold
 * nothing that another process may wait for?
 */
static bool
idle_but(AioScope *scope, const AioTask *task)
{
	dlist_iter	iter;

	dlist_foreach(iter, &scope->suspended)
	{
		AioTask    *sibling = dlist_container(AioTask, node, iter.cur);

		if (sibling != task && !sibling->awaits->ops->holds_nothing)
			return false;
	}
	return true;
}

static bool
siblings_idle(AioFuture *future)
{
	AioTask    *task = ((TaskFuture *) future)->task;

	return idle_but(task->scope, task);
}

/* The same, of the running task; or of all tasks, where none runs. */
bool
AioSiblingsIdle(void)
{
	AioTask    *task = aio_current_task;

	return idle_but(task != NULL ? task->scope : aio_current_scope, task);
}

/*
 * Suspend the running task until no sibling has anything more to do that does
 * not depend on it.
 */
void
AioAwaitSiblingsIdle(void)
{
	TaskFuture	idle;

	idle.future.ops = &idle_ops;
	idle.task = aio_current_task;
	AioAwait(&idle.future);
}

/*
 * From here on the running task blocks where it would suspend.  For code
 * that must not be interrupted by its siblings.
 */
void
AioTaskForbidSuspend(void)
{
	if (aio_current_task != NULL)
		aio_current_task->no_suspend = true;
}
