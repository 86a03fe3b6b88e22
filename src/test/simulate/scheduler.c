/*-------------------------------------------------------------------------
 *
 * scheduler.c
 *	  Simulates tasks, scopes, errors and drops, on a fake disk and clock.
 *
 * A seed stands for a few statements.  Each runs a tree of scopes and tasks,
 * which read, wait for servers, hold locks, begin scopes, fail, and await their
 * turn.  What a task does comes from a generator of its own, so that it does
 * the same however tasks are scheduled: whether it fails, and how, is known
 * whatever the disk does.  The disk and the clock take from another one.
 *
 * Invariants: nothing is suspended that holds a lock; whatever is staged has
 * been submitted before anybody waits; a task finds its flow of control as it
 * has left it; ordered tasks go on in spawn order; no task outlives its scope;
 * of data errors, the first in spawn order is raised, and all tasks before it
 * have ended; nothing pending refers to the stack of a dropped task.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <sys/wait.h>
#include <unistd.h>

#include "aio/task_port.h"
#include "lib/ilist.h"
#include "miscadmin.h"
#include "server.h"
#include "storage/ipc.h"
#include "task_internal.h"
#include "utils/wait_event.h"

#define DEPTH_MAX	3			/* of scopes within scopes */

/* bounds of what is generated, lower ones for a smaller case */
static int	most_statements = 3;
static int	most_tasks = 12;
static int	most_steps = 6;

static uint64 now;				/* of the fake clock */
static uint64 last_number;		/* of tasks and scopes, which seeds them */
static bool cancelled_or_worse; /* other errors than those of data were raised */

/* ------------------------------------------------------------------------
 * The disk, and what else completes
 * ------------------------------------------------------------------------
 */

typedef enum Where
{
	ON_DISK,					/* staged, then submitted; our own */
	ON_SERVER,					/* remote */
	BY_WHOEVER_WAITS,
} Where;

/* What the disk, or whoever it is, has to do. */
typedef struct Request
{
	dlist_node	node;
	Where		where;
	bool		staged;
	bool		done;
	bool		abandoned;
	uint64		complete_at;
} Request;

/* On the stack of whoever awaits it. */
typedef struct Pending
{
	AioFuture	future;			/* must be first */
	Request    *request;
} Pending;

/* what the process holds */
static int	lwlocks;
static int	sibling_locks;
static int	pins;

static dlist_head disk = DLIST_STATIC_INIT(disk);
static int	nstaged;

static void
complete(Request *request)
{
	request->done = true;
	dlist_delete(&request->node);
}

/* All that is due, in any order. */
static void
complete_due(void)
{
	dlist_mutable_iter iter;

	dlist_foreach_modify(iter, &disk)
	{
		Request    *request = dlist_container(Request, node, iter.cur);

		if (!request->staged && request->complete_at <= now)
			complete(request);
	}
}

/* Sleep until something may be complete; false if nothing is pending. */
static bool
sleep_until_next(void)
{
	uint64		next = PG_UINT64_MAX;
	dlist_iter	iter;

	SIM_CHECK(nstaged == 0, "somebody sleeps while I/O is staged");
	SIM_CHECK(CritSectionCount == 0, "somebody sleeps in a critical section");
	dlist_foreach(iter, &disk)
		next = Min(next, dlist_container(Request, node, iter.cur)->complete_at);
	if (next == PG_UINT64_MAX)
		return false;
	now = Max(now, next);
	complete_due();
	return true;
}

static void
submit(void)
{
	dlist_iter	iter;

	dlist_foreach(iter, &disk)
		dlist_container(Request, node, iter.cur)->staged = false;
	nstaged = 0;
}

static void
reap(void)
{
	now += SimUpTo(&sim_world, 3);
	complete_due();
}

static bool
pending_poll(AioFuture *future)
{
	Request    *request = ((Pending *) future)->request;

	SIM_CHECK(!request->abandoned, "somebody looks at what was abandoned");
	return request->done;
}

static void
pending_wait(AioFuture *future)
{
	Request    *request = ((Pending *) future)->request;

	if (request->where == BY_WHOEVER_WAITS && !request->done)
		complete(request);
	if (!request->done)
	{
		SIM_CHECK(!request->staged, "somebody waits for I/O that is only staged");
		SIM_CHECK(sleep_until_next(), "somebody waits, and nothing is pending");
	}
}

static void
pending_abandon(AioFuture *future)
{
	Request    *request = ((Pending *) future)->request;

	SIM_CHECK(InterruptHoldoffCount > 0, "a future is abandoned without holding off interrupts");
	SIM_CHECK(lwlocks == 0, "a future is abandoned with an LWLock held");
	while (!request->done)
		pending_wait(future);
	request->abandoned = true;
}

static const AioFutureOps read_ops = {
	.name = "read",
	.kind = 1,
	.external = true,
	.poll = pending_poll,
	.wait = pending_wait,
	.abandon = pending_abandon,
};

static const AioFutureOps remote_ops = {
	.name = "remote",
	.kind = 1,
	.external = true,
	.remote = true,
	.poll = pending_poll,
	.wait = pending_wait,
	.abandon = pending_abandon,
};

static const AioFutureOps elsewhere_ops = {
	.name = "elsewhere",
	.kind = 1,
	.external = true,
	.elsewhere = true,
	.poll = pending_poll,
	.wait = pending_wait,
	.abandon = pending_abandon,
};

static void
begin(Pending *io, Where where)
{
	static const AioFutureOps *const ops[] = {
		[ON_DISK] = &read_ops,
		[ON_SERVER] = &remote_ops,
		[BY_WHOEVER_WAITS] = &elsewhere_ops,
	};

	Request    *request = calloc(1, sizeof(Request));

	io->future.ops = ops[where];
	io->request = request;
	request->where = where;
	request->staged = where == ON_DISK;
	nstaged += request->staged;
	request->complete_at = now + SimUpTo(&sim_world, SimChance(&sim_world, 100) ? 300 : 20);
	dlist_push_tail(&disk, &request->node);
}

static void
release_pin(Datum res)
{
	pins--;
}

static const ResourceOwnerDesc pin_desc = {
	.name = "pin",
	.release_phase = RESOURCE_RELEASE_BEFORE_LOCKS,
	.release_priority = 1,
	.ReleaseResource = release_pin,
};

/* ------------------------------------------------------------------------
 * The port
 * ------------------------------------------------------------------------
 */

static char *stack_base;
static ssize_t stack_depth_max = 2 * 1024 * 1024;

static bool
scope_allowed(void)
{
	return lwlocks == 0;
}

static void
scope_begins(AioHeldLocks *held)
{
	held->sibling_locks = sibling_locks;
	held->nest_level = 1;
}

static bool
held_same(const AioHeldLocks *held)
{
	return held->sibling_locks == sibling_locks;
}

static AioSuspendVerdict
may_suspend(const AioHeldLocks *held)
{
	if (lwlocks > 0)
		return AIO_SUSPEND_LWLOCK;
	if (!held_same(held))
		return AIO_SUSPEND_HEAVYWEIGHT;
	return AIO_SUSPEND_OK;
}

static int
task_limit(void)
{
	return 32;
}

static bool
wait_for_any(AioFuture *const *futures, int n)
{
	for (int i = 0; i < n; i++)
	{
		if (futures[i]->ops->poll(futures[i]))
			return true;
		if (futures[i]->ops->elsewhere)
		{
			futures[i]->ops->wait(futures[i]);
			return true;
		}
	}
	SimCheckForInterrupts();
	for (int i = 0; i < n; i++)
	{
		if (futures[i]->ops->wait != NULL)
			return sleep_until_next();
	}
	return false;
}

static void
clean_up(void)
{
	lwlocks = 0;
}

static void
finish_abandon(void)
{
	while (sleep_until_next())
		;
}

/* all tasks that exist */
#define TASKS_MAX	1000
static AioTask *tasks[TASKS_MAX];
static int	ntasks;

static void
task_made(AioTask *task)
{
	SIM_CHECK(ntasks < TASKS_MAX, "too many tasks");
	tasks[ntasks++] = task;
}

static void
task_freed(AioTask *task)
{
	for (int i = 0; i < ntasks; i++)
	{
		if (tasks[i] == task)
		{
			tasks[i] = tasks[--ntasks];
			return;
		}
	}
	SIM_CHECK(false, "a task is freed that does not exist");
}

static void
ignore_task(AioTask *task)
{
}

static void
awaits(AioTask *task, AioFuture *future)
{
	if (SimChance(&sim_world, sim_memory_fails))
		SimRaise(SIM_ERROR_MEMORY, SIM_NOBODY);
}

static void
suspended(AioTask *task, AioFuture *future)
{
	SIM_CHECK(lwlocks == 0, "a task is suspended with an LWLock");
	SIM_CHECK(InterruptHoldoffCount == 0, "a task is suspended with interrupts held off");
	SIM_CHECK(CritSectionCount == 0, "a task is suspended in a critical section");
}

static void
dropped(AioTask *task, AioFuture *future)
{
}

static void
count_suspended(int change)
{
	SIM_CHECK(aio_task_counters.suspended + change >= 0, "fewer than no tasks are suspended");
}

static void
check_runs(AioTask *task, bool begins)
{
	int		   *held = AioTaskLocal(task);

	SIM_CHECK(begins || *held == sibling_locks, "locks have changed while a task was suspended");
	*held = sibling_locks;
}

static void
check_stops(AioTask *task)
{
	SIM_CHECK(*(int *) AioTaskLocal(task) == sibling_locks, "a task stops, and its locks have changed");
}

static const AioTaskPort port = {
	.stack_base = &stack_base,
	.stack_depth_max = &stack_depth_max,
	.scope_allowed = scope_allowed,
	.scope_begins = scope_begins,
	.scope_ends = submit,
	.held_same = held_same,
	.may_suspend = may_suspend,
	.task_limit = task_limit,
	.submit = submit,
	.reap = reap,
	.wait_for_any = wait_for_any,
	.clean_up = clean_up,
	.begin_abandon = clean_up,
	.finish_abandon = finish_abandon,
	.task_made = task_made,
	.task_freed = task_freed,
	.awaits = awaits,
	.suspended = suspended,
	.resumed = ignore_task,
	.dropped = dropped,
	.failed = ignore_task,
	.count_suspended = count_suspended,
	.check_runs = check_runs,
	.check_stops = check_stops,
};

/* ------------------------------------------------------------------------
 * Programs
 * ------------------------------------------------------------------------
 */

typedef enum Fate
{
	RUNS,
	ENDED,
	FAILED,
} Fate;

struct Statement;

/* What is known of a task, in memory that outlives it. */
typedef struct Child
{
	struct ScopeRun *scope;
	int			position;		/* from 0, in spawn order */
	uint64		number;
	bool		ordered;
	bool		on_stack;		/* it has none of its own */
	bool		had_turn;
	Fate		fate;
	uint64		raised_by;		/* of its error */
	int			code;
} Child;

#define CHILDREN_MAX	64

/* One scope. */
typedef struct ScopeRun
{
	uint64		number;
	int			depth;
	pg_prng_state prng;
	Child		children[CHILDREN_MAX];
	int			nchildren;
} ScopeRun;

static void run_scope(int depth);

static bool
yields(int sqlerrcode)
{
	return sqlerrcode == SIM_ERROR_DATA;
}

static void
raise_error(int code, uint64 raised_by)
{
	SimNote("%" PRIu64 " raises %d", raised_by, code);
	if (code != SIM_ERROR_DATA)
		cancelled_or_worse = true;
	SimRaise(code, raised_by);
}

/* What a flow of control must find after an await. */
typedef struct Mine
{
	MemoryContext context;
	ResourceOwner owner;
	ErrorContextCallback *error_context;
	AioScope   *scope;
	AioTask    *task;
	char	   *base;
	uint32		wait_event;
	uint32		holdoff;
} Mine;

static void
remember_mine(Mine *mine)
{
	mine->context = CurrentMemoryContext;
	mine->owner = CurrentResourceOwner;
	mine->error_context = error_context_stack;
	mine->scope = aio_current_scope;
	mine->task = aio_current_task;
	mine->base = stack_base;
	mine->wait_event = *my_wait_event_info;
	mine->holdoff = InterruptHoldoffCount;
}

static void
check_mine(const Mine *mine)
{
	SIM_CHECK(mine->context == CurrentMemoryContext, "another memory context after an await");
	SIM_CHECK(mine->owner == CurrentResourceOwner, "another resource owner after an await");
	SIM_CHECK(mine->error_context == error_context_stack, "another error context after an await");
	SIM_CHECK(mine->scope == aio_current_scope, "another scope after an await");
	SIM_CHECK(mine->task == aio_current_task, "another task after an await");
	SIM_CHECK(mine->base == stack_base, "another stack base after an await");
	SIM_CHECK(mine->wait_event == *my_wait_event_info, "another wait event after an await");
	SIM_CHECK(mine->holdoff == InterruptHoldoffCount, "another count of held off interrupts after an await");
}

/* Await something; it fails, perhaps. */
static void
await_io(pg_prng_state *prng, Where where, uint64 me)
{
	bool		fails = SimChance(prng, 15);
	volatile uint64 canary[32];
	Pending		io;
	Mine		mine;

	for (int i = 0; i < (int) lengthof(canary); i++)
		canary[i] = me + i;
	remember_mine(&mine);
	begin(&io, where);
	if (SimChance(&sim_world, 300))
		submit();
	if (!AioAwait(&io.future))
	{
		submit();
		while (!io.request->done)
			pending_wait(&io.future);
	}
	SIM_CHECK(io.request->done, "a task goes on before its I/O is complete");
	check_mine(&mine);
	for (int i = 0; i < (int) lengthof(canary); i++)
		SIM_CHECK(canary[i] == me + i, "a stack has been overwritten");
	if (fails)
		raise_error(SIM_ERROR_OTHER, me);
}

static void
callback(void *arg)
{
}

/* Hold something for which no task may be suspended, and read. */
static void
hold_and_read(pg_prng_state *prng, uint64 me)
{
	int			what = SimUpTo(prng, 2);

	if (what == 0)
	{
		lwlocks++;
		HOLD_INTERRUPTS();
		await_io(prng, ON_DISK, me);
		RESUME_INTERRUPTS();
		lwlocks--;
	}
	else if (what == 1)
	{
		sibling_locks++;
		await_io(prng, ON_DISK, me);
		sibling_locks--;
	}
	else
	{
		HOLD_INTERRUPTS();
		await_io(prng, ON_DISK, me);
		RESUME_INTERRUPTS();
	}
}

static void
pin_and_read(pg_prng_state *prng, uint64 me)
{
	ResourceOwnerEnlarge(CurrentResourceOwner);
	ResourceOwnerRemember(CurrentResourceOwner, PointerGetDatum(me), &pin_desc);
	pins++;
	await_io(prng, ON_DISK, me);
	ResourceOwnerForget(CurrentResourceOwner, PointerGetDatum(me), &pin_desc);
	pins--;
}

/* A step that a task or the body of a scope takes. */
static void
step(pg_prng_state *prng, uint64 me, int depth)
{
	int			kind = SimUpTo(prng, 99);

	if (kind < 45)
		await_io(prng, ON_DISK, me);
	else if (kind < 53)
		await_io(prng, ON_SERVER, me);
	else if (kind < 59)
		await_io(prng, BY_WHOEVER_WAITS, me);
	else if (kind < 70)
		hold_and_read(prng, me);
	else if (kind < 80)
		pin_and_read(prng, me);
	else if (kind < 85)
		AioYield();
	else if (kind < 90 && aio_current_task != NULL)
		AioAwaitSiblingsIdle();
	else if (kind < 93 && aio_current_task != NULL)
		AioTaskForbidSuspend();
	else if (kind < 97 && depth < DEPTH_MAX)
		run_scope(depth + 1);
	else if (kind < 99)
		raise_error(SIM_ERROR_DATA, me);
}

/* It is this ordered task's turn: all before it have ended, well. */
static void
check_turn(Child *child)
{
	ScopeRun   *scope = child->scope;

	SimNote("%" PRIu64 " has its turn", child->number);
	child->had_turn = true;
	for (int i = 0; i < child->position; i++)
	{
		Child	   *before = &scope->children[i];

		if (before->ordered)
			SIM_CHECK(before->fate != RUNS, "an ordered task gets its turn too early");
		if (before->ordered && before->fate == FAILED && !cancelled_or_worse)
			SIM_CHECK(false, "an ordered task gets its turn after one that has failed");
	}
}

static void
task_main(void *arg)
{
	Child	   *child = *(Child **) arg;
	pg_prng_state prng;
	ErrorContextCallback context;
	MemoryContext outer = CurrentMemoryContext;
	MemoryContext own = NULL;
	int			nsteps;
	int			turn_at;

	pg_prng_seed(&prng, sim_seed * 1000003 + child->number);
	if (SimChance(&prng, 300))
		CurrentMemoryContext = own = SimContextMake();
	context.callback = callback;
	context.previous = error_context_stack;
	error_context_stack = &context;
	child->on_stack = aio_current_task == NULL;
	*my_wait_event_info = (uint32) child->number;
	nsteps = SimUpTo(&prng, most_steps);
	turn_at = child->ordered ? SimUpTo(&prng, nsteps) : -1;

	SimNote("%" PRIu64 " begins%s", child->number, child->ordered ? ", ordered" : "");
	for (int i = 0; i <= nsteps; i++)
	{
		if (i == turn_at && AioMaySuspend() == AIO_SUSPEND_OK)
		{
			AioAwaitTurn();
			check_turn(child);
		}
		else
			step(&prng, child->number, child->scope->depth);
	}
	error_context_stack = context.previous;
	CurrentMemoryContext = outer;
	if (own != NULL)
		SimContextDelete(own);
	child->fate = ENDED;
	SimNote("%" PRIu64 " ends", child->number);
}

/* Keeps account of an error that leaves a task. */
static void
task_guarded(void *arg)
{
	Child	   *child = *(Child **) arg;

	PG_TRY();
	{
		task_main(arg);
	}
	PG_CATCH();
	{
		child->fate = FAILED;
		child->raised_by = SimCurrentError()->raised_by;
		child->code = SimCurrentError()->sqlerrcode;
		SimNote("%" PRIu64 " fails", child->number);
		PG_RE_THROW();
	}
	PG_END_TRY();
}

static void
body_main(AioScope *scope, void *arg)
{
	ScopeRun   *run = arg;
	int			nspawned = 1 + SimUpTo(&run->prng, most_tasks - 1);
	bool		have_last = false;
	uint64		last = 0;

	for (int i = 0; i < nspawned; i++)
	{
		AioTaskOptions options = {0};
		Child	   *child = &run->children[run->nchildren];
		int			other = SimUpTo(&run->prng, 99);

		if (other < 5)
			AioScopeJoin(scope);
		else if (other < 12 && have_last)
			AioScopeJoinTask(scope, last);
		else if (other < 20)
			step(&run->prng, run->number, run->depth);

		child->scope = run;
		child->position = run->nchildren;
		child->number = ++last_number;
		child->ordered = options.ordered = SimChance(&run->prng, 300);
		child->fate = RUNS;
		/* a task that must wait for another may raise that one's error */
		if (SimChance(&run->prng, 500))
		{
			Child	  **copy = AioSpawnPrepare(scope);

			*copy = child;
			run->nchildren++;
			last = AioSpawnPrepared(scope, &options, task_guarded, copy);
		}
		else
		{
			run->nchildren++;
			last = AioSpawn(scope, &options, task_guarded, &child, sizeof(child));
		}
		have_last = true;
	}
}

/* An error leaves a scope: is it the right one? */
static void
check_error(const ScopeRun *run)
{
	const ErrorData *error = SimCurrentError();
	int			limit = run->nchildren;

	SimNote("scope %" PRIu64 " fails with %d of %" PRIu64, run->number,
			error->sqlerrcode, error->raised_by);
	if (error->sqlerrcode != SIM_ERROR_DATA)
	{
		cancelled_or_worse = true;
		return;
	}
	for (int i = 0; i < run->nchildren; i++)
	{
		if (run->children[i].fate == FAILED &&
			run->children[i].raised_by == error->raised_by)
			limit = i;
	}
	for (int i = 0; i < limit; i++)
	{
		SIM_CHECK(run->children[i].fate != FAILED ||
				  run->children[i].code != SIM_ERROR_DATA,
				  "the error of a later task was raised before that of an earlier one");
		SIM_CHECK(run->children[i].fate == ENDED || cancelled_or_worse,
				  "a task did not end although a later one's error is raised");
	}
}

/*
 * Run a scope with random children.  They refer to what is known of it, which
 * therefore is in memory of the statement's.
 */
static void
run_scope(int depth)
{
	ScopeRun   *run;

	if (!AioScopeAllowed())
		return;
	run = palloc(sizeof(ScopeRun));
	memset(run, 0, sizeof(ScopeRun));
	run->number = ++last_number;
	run->depth = depth;
	pg_prng_seed(&run->prng, sim_seed * 1000003 + run->number);
	SimNote("scope %" PRIu64 " begins", run->number);
	PG_TRY();
	{
		AioScopeRun(body_main, run, yields);
	}
	PG_CATCH();
	{
		check_error(run);
		PG_RE_THROW();
	}
	PG_END_TRY();
	for (int i = 0; i < run->nchildren; i++)
		SIM_CHECK(run->children[i].fate == ENDED, "a task outlives its scope");
	SimNote("scope %" PRIu64 " ends", run->number);
}

/* The linker has the core ask here whether stacks can be switched. */
extern const char *__wrap_AioContextRefusal(void);
static bool refuse_stacks;

const char *
__wrap_AioContextRefusal(void)
{
	return refuse_stacks ? "refused" : NULL;
}

static void
run_statement(void)
{
	volatile bool committed = true;
	MemoryContext context = SimContextMake();
	dlist_iter	iter;

	CurrentMemoryContext = context;
	CurrentResourceOwner = SimOwnerMake();
	cancelled_or_worse = false;
	PG_TRY();
	{
		run_scope(0);
	}
	PG_CATCH();
	{
		committed = false;
		clean_up();
		sibling_locks = 0;
		FlushErrorState();

		/* of a body that has failed, which nobody knows any more */
		submit();
		finish_abandon();
	}
	PG_END_TRY();

	SIM_CHECK(aio_current_scope == NULL, "a scope is open after its statement");
	SIM_CHECK(aio_current_task == NULL, "a task runs after its statement");
	SIM_CHECK(nstaged == 0, "I/O is staged after its statement");
	dlist_foreach(iter, &disk)
		SIM_CHECK(false, "I/O is pending after its statement");
	SimOwnerRelease(CurrentResourceOwner, committed);
	SIM_CHECK(pins == 0 && lwlocks == 0 && sibling_locks == 0, "something is held after its transaction");
	SIM_CHECK(aio_task_counters.suspended == 0, "a task is suspended after its transaction");
	SIM_CHECK(!refuse_stacks || ntasks == 0, "a stack is made where stacks cannot be switched");
	for (int i = 0; i < ntasks; i++)
		SIM_CHECK(tasks[i]->state == AIO_TASK_IDLE, "a task is not idle after its transaction");
	CurrentMemoryContext = TopMemoryContext;
	SimContextDelete(context);
}

/* All of one seed. */
static void
simulate(uint64 seed)
{
	pg_prng_state shape;
	int			nstatements;

	pg_prng_seed(&shape, seed);
	pg_prng_seed(&sim_world, ~seed);
	pg_prng_uint64(&shape);
	sim_memory_fails = SimChance(&shape, 300) ? SimUpTo(&shape, 60) : 0;
	sim_cancels = SimChance(&shape, 200) ? SimUpTo(&shape, 30) : 0;
	aio_max_tasks = 1 + SimUpTo(&shape, most_tasks);
	aio_debug_suspend = SimChance(&shape, 300);
	aio_debug_delay_completions = SimChance(&shape, 300) ? SimUpTo(&shape, 2) : 0;
	aio_debug_seed = (int) (1 + seed % 1000000);
	AioAssignDebugSeed(aio_debug_seed, NULL);
	refuse_stacks = SimChance(&shape, 20);
	SIM_CHECK((AioTaskSetPort(&port) != NULL) == refuse_stacks, "a refusal to switch stacks is not told");
	SIM_CHECK(AioTasksCanSuspend() != refuse_stacks, "tasks can suspend where stacks cannot be switched");
	nstatements = 1 + SimUpTo(&shape, most_statements - 1);
	for (int i = 0; i < nstatements; i++)
		run_statement();
}

/* ------------------------------------------------------------------------
 * The program
 * ------------------------------------------------------------------------
 */

/* In a process of its own, which a failure ends; that ends this one, too. */
static void
simulate_apart(uint64 seed)
{
	pid_t		pid = fork();
	int			status;

	if (pid == 0)
	{
		alarm(20);
		simulate(seed);
		_exit(0);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
	{
		perror("scheduler");
		exit(2);
	}
	if (WIFSIGNALED(status))
		fprintf(stderr, "seed %" PRIu64 ": signal %d\n", seed, WTERMSIG(status));
	if (status != 0)
		exit(1);
}

int
main(int argc, char **argv)
{
	static const SimBound bounds[] = {
		{"statements", &most_statements},
		{"tasks", &most_tasks},
		{"steps", &most_steps},
	};

	return SimMain(argc, argv, bounds, lengthof(bounds), simulate_apart);
}
