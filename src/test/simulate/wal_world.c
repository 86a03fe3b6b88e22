/*-------------------------------------------------------------------------
 *
 * wal_world.c
 *	  Processes that take turns at random, a clock, latches and locks.
 *
 * Each process runs on a stack of its own until it comes to a point where
 * another one may go on, and chance has it so, or until it waits.  What is a
 * process's own variable in the server is exchanged when another one goes on.
 * Time passes as steps are taken, and where all wait, up to what comes next.
 *
 * Invariants: nobody waits with a spinlock held; a lock is released by whoever
 * has it; if all wait and nothing is to come, the seed has failed.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <stdarg.h>

#include "aio/server.h"
#include "miscadmin.h"
#include "portability/instr_time.h"
#include "storage/pmsignal.h"
#include "storage/procarray.h"
#include "wal_world.h"

/* more than any run takes that ends */
#define STEPS_MAX		400000

#define STACK_SIZE		(64 * 1024)

SimProcess *sim_me;
SimProcess	sim_processes[PROCESSES_MAX];
int			sim_nprocesses;
uint64		sim_now;
uint64		sim_steps;
uint64		sim_crash_at;
bool		sim_panicked;
bool		sim_postmaster_dead;
int			sim_switches;
bool		sim_by_priority;

Latch	   *MyLatch;

static AioContext scheduler;
static bool crashed;

static char stacks[PROCESSES_MAX][STACK_SIZE] __attribute__((aligned(64)));

/* ------------------------------------------------------------------------
 * Processes
 * ------------------------------------------------------------------------
 */

/* A line of the trace. */
void
SimTell(const char *format,...)
{
	char text[	200];
	va_list		args;

	if (!sim_trace)
		return;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	SimNote("%6" PRIu64 " %7" PRIu64 " %-12s %s", sim_steps, sim_now,
			sim_me ? sim_me->name : "", text);
}

static void
leave(void)
{
	SimProcess *me = sim_me;

	AioContextSwitch(&me->context, &scheduler);
}

/* All processes stop where they are. */
void
SimCrash(void)
{
	SimTell("the server crashes");
	crashed = true;
	if (sim_me != NULL)
	{
		leave();
		pg_unreachable();
	}
}

/* Another process may go on here. */
void
SimPoint(void)
{
	if (sim_me == NULL)
		return;
	sim_steps++;
	SIM_CHECK(sim_steps < STEPS_MAX, "it does not end");
	if (sim_steps >= sim_crash_at)
		SimCrash();
	if (!SimChance(&sim_world, sim_switches))
		return;

	sim_me->priority = -(int64) sim_steps;

	/* sometimes for long */
	if (SimChance(&sim_world, 20))
	{
		sim_me->waits_for = sim_me;
		sim_me->wake_at = sim_now + SimUpTo(&sim_world, 3 * sim_disk_time);
	}
	leave();
}

static void
end(SimProcess *process)
{
	process->ended = true;
	SimTell("ends");
	leave();
}

static void
run_body(void *arg)
{
	SimProcess *process = arg;

	AioContextEntered(&process->context);
	process->body();
	SIM_CHECK(CritSectionCount == 0 && InterruptHoldoffCount == 0 &&
			  process->nlwlocks == 0 && process->spinlock == NULL,
			  "a process ends and holds something");
	end(process);
}

SimProcess *
SimProcessMake(const char *name, int number, void (*body) (void))
{
	SimProcess *process = &sim_processes[sim_nprocesses];

	SIM_CHECK(sim_nprocesses < PROCESSES_MAX, "too many processes");
	memset(process, 0, sizeof(SimProcess));
	snprintf(process->name, sizeof(process->name), "%s %d", name, number);
	process->body = body;
	process->priority = SimUpTo(&sim_world, 100);
	AioContextInit(&process->context, stacks[sim_nprocesses], STACK_SIZE,
				   run_body, process);
	sim_nprocesses++;
	sim_me = process;
	SimLocalsInit();
	sim_me = NULL;
	return process;
}

/* Wait until somebody wakes those who wait for this, or time is up. */
void
SimWait(const void *what, uint64 until, bool notices_death)
{
	SIM_CHECK(sim_me->spinlock == NULL, "somebody waits with a spinlock held");
	sim_me->waits_for = what;
	sim_me->wake_at = until;
	sim_me->notices_death = notices_death;
	leave();
	if (notices_death && sim_postmaster_dead)
		AioExitWithoutPostmaster();
	sim_me->notices_death = false;
}

static void
set_free(SimProcess *process)
{
	process->waits_for = NULL;
	process->wake_at = 0;
}

void
SimWake(const void *what)
{
	for (int i = 0; i < sim_nprocesses; i++)
	{
		if (sim_processes[i].waits_for == what)
			set_free(&sim_processes[i]);
	}
}

static void
continue_process(SimProcess *process)
{
	sim_me = process;
	MyLatch = &process->latch;
	CritSectionCount = process->crit_sections;
	InterruptHoldoffCount = process->holdoff;
	SimLocalsRestore();
	AioContextSwitch(&scheduler, &process->context);
	SimLocalsSave();
	process->holdoff = InterruptHoldoffCount;
	process->crit_sections = CritSectionCount;
	sim_me = NULL;
}

/* What is due has happened; returns who may run then, in 'able'. */
static int
find_able(SimProcess **able)
{
	int			n = 0;

	if (SimDiskNextEvent() <= sim_now)
		SimDiskFire();
	for (int i = 0; i < sim_nprocesses; i++)
	{
		SimProcess *process = &sim_processes[i];

		if (process->ended)
			continue;
		if (process->waits_for != NULL &&
			(process->wake_at <= sim_now ||
			 (process->notices_death && sim_postmaster_dead)))
			set_free(process);
		if (process->waits_for == NULL)
			able[n++] = process;
	}
	return n;
}

/* All wait: have time pass. */
static void
skip_time(void)
{
	uint64		next = SimDiskNextEvent();

	for (int i = 0; i < sim_nprocesses; i++)
	{
		if (!sim_processes[i].ended)
			next = Min(next, sim_processes[i].wake_at);
	}
	if (next == NEVER && sim_panicked)
		SimCrash();				/* the postmaster ends them */
	else if (next == NEVER)
	{
		for (int i = 0; i < sim_nprocesses; i++)
		{
			if (!sim_processes[i].ended)
				SimTell("%s waits", sim_processes[i].name);
		}
		SIM_CHECK(false, "everybody waits, and nothing is to come");
	}
	else
		sim_now = Max(sim_now, next);
}

/* Who is next: anyone, or whoever has not been interrupted for longest. */
static SimProcess *
choose(SimProcess **able, int n)
{
	SimProcess *best = able[SimUpTo(&sim_world, n - 1)];

	for (int i = 0; sim_by_priority && i < n; i++)
	{
		if (able[i]->priority > best->priority)
			best = able[i];
	}
	return best;
}

/* Have processes run until it is finished, or the server crashes. */
SimEnd
SimRun(bool (*finished) (void))
{
	SimProcess *able[PROCESSES_MAX];

	while (!crashed)
	{
		int			n = find_able(able);

		sim_now += SimUpTo(&sim_world, 2);
		if (n == 0 && finished())
			return SIM_FINISHED;
		if (n == 0)
			skip_time();
		else
			continue_process(choose(able, n));
		if (finished())
			return SIM_FINISHED;
	}
	return SIM_CRASHED;
}

void
SimWorldReset(void)
{
	sim_nprocesses = 0;
	sim_me = NULL;
	sim_panicked = false;
	sim_postmaster_dead = false;
	crashed = false;
	CritSectionCount = 0;
	InterruptHoldoffCount = 0;
}

/* ------------------------------------------------------------------------
 * Errors
 * ------------------------------------------------------------------------
 */

int
errcode_for_file_access(void)
{
	return 0;
}

int
errmsg(const char *format,...)
{
	va_list		args;

	if (sim_trace)
	{
		char text[	200];

		va_start(args, format);
		vsnprintf(text, sizeof(text), format, args);
		va_end(args);
		SimTell("%s", text);
	}
	return 0;
}

/* It ends at once, with all that it has locked; the others do soon. */
void
SimReport(int level)
{
	uint64		soon = sim_steps + SimUpTo(&sim_world, SimChance(&sim_world, 300) ? 4000 : 400);

	SIM_CHECK(level == PANIC, "an error is raised that is no PANIC");
	sim_panicked = true;
	sim_crash_at = Min(sim_crash_at, soon);
	sim_me->ended = true;
	leave();
	pg_unreachable();
}

bool
PostmasterIsAlive(void)
{
	return !sim_postmaster_dead;
}

void
AioExitWithoutPostmaster(void)
{
	if (CritSectionCount > 0)
		SimCrash();
	SIM_CHECK(sim_me->nlwlocks == 0, "a process that holds locks waits outside of critical sections");
	sim_me->ended = true;
	leave();
	pg_unreachable();
}

/* ------------------------------------------------------------------------
 * Clock and latches
 * ------------------------------------------------------------------------
 */

uint64
SimClock(void)
{
	SimPoint();
	return sim_now;
}

void
pg_usleep(long microseconds)
{
	SimWait(&sim_now, sim_now + microseconds, false);
}

void
SetLatch(Latch *latch)
{
	SimPoint();
	latch->is_set = true;
	SimWake(latch);
}

/* Sleep until the process's latch is set; returns whether that was it. */
bool
SimLatchWait(uint64 timeout)
{
	uint64		until = timeout == NEVER ? NEVER : sim_now + timeout;

	SimPoint();
	while (!MyLatch->is_set && sim_now < until)
		SimWait(MyLatch, until, true);
	return MyLatch->is_set;
}

/* ------------------------------------------------------------------------
 * Locks
 * ------------------------------------------------------------------------
 */

static LWLock wal_write_lock;
LWLock	   *const WALWriteLock = &wal_write_lock;

void
SpinLockAcquire(slock_t *lock)
{
	SimPoint();
	SIM_CHECK(sim_me->spinlock == NULL, "a spinlock is taken with another one held");
	while (*lock != NULL)
		SimWait(lock, NEVER, false);
	*lock = sim_me;
	sim_me->spinlock = lock;
}

void
SpinLockRelease(slock_t *lock)
{
	SIM_CHECK(*lock == sim_me, "a spinlock is released by another process");
	*lock = NULL;
	sim_me->spinlock = NULL;
	SimWake(lock);
	SimPoint();
}

static inline uint32
my_bit(void)
{
	return (uint32) 1 << (sim_me - sim_processes);
}

static inline bool
is_free(const LWLock *lock, LWLockMode mode)
{
	return lock->owner == NULL && (mode == LW_SHARED || lock->sharers == 0);
}

static void
take(LWLock *lock, LWLockMode mode)
{
	if (mode == LW_SHARED)
		lock->sharers |= my_bit();
	else
		lock->owner = sim_me;
	SIM_CHECK(sim_me->nlwlocks < HELD_MAX, "a process has too many locks");
	sim_me->lwlocks[sim_me->nlwlocks++] = lock;
}

void
LWLockAcquire(LWLock *lock, LWLockMode mode)
{
	SimPoint();
	SIM_CHECK(!LWLockHeldByMe(lock), "a lock is taken twice");
	while (!is_free(lock, mode))
		SimWait(lock, NEVER, false);
	take(lock, mode);
}

bool
LWLockConditionalAcquire(LWLock *lock, LWLockMode mode)
{
	SimPoint();
	if (!is_free(lock, mode))
		return false;
	take(lock, mode);
	return true;
}

bool
LWLockAcquireOrWait(LWLock *lock, LWLockMode mode)
{
	SimPoint();
	SIM_CHECK(!LWLockHeldByMe(lock), "a lock is waited for by who has it");
	if (!is_free(lock, mode))
	{
		SimWait(lock, NEVER, false);
		return false;
	}
	take(lock, mode);
	return true;
}

void
LWLockRelease(LWLock *lock)
{
	int			i = sim_me->nlwlocks - 1;

	SIM_CHECK(LWLockHeldByMe(lock), "a lock is released by another process");
	while (sim_me->lwlocks[i] != lock)
		i--;
	sim_me->lwlocks[i] = sim_me->lwlocks[--sim_me->nlwlocks];
	if (lock->owner == sim_me)
		lock->owner = NULL;
	else
		lock->sharers &= ~my_bit();
	SimWake(lock);
	SimPoint();
}

void
LWLockReleaseAll(void)
{
	while (sim_me->nlwlocks > 0)
		LWLockRelease(sim_me->lwlocks[sim_me->nlwlocks - 1]);
}

bool
LWLockHeldByMe(LWLock *lock)
{
	return lock->owner == sim_me || (lock->sharers & my_bit()) != 0;
}

/* Any of several that are so far apart. */
bool
LWLockAnyHeldByMe(LWLock *lock, int nlocks, size_t stride)
{
	for (int i = 0; i < sim_me->nlwlocks; i++)
	{
		size_t		distance = (char *) sim_me->lwlocks[i] - (char *) lock;

		if (distance < nlocks * stride && distance % stride == 0)
			return true;
	}
	return false;
}

bool
LWLockHeldByMeInMode(LWLock *lock, LWLockMode mode)
{
	return mode == LW_SHARED ? (lock->sharers & my_bit()) != 0 : lock->owner == sim_me;
}

bool
LWLockWaitForVar(LWLock *lock, pg_atomic_uint64 *var, uint64 old, uint64 *now)
{
	for (;;)
	{
		SimPoint();
		if (lock->owner == NULL)
			return true;
		if (var->value != old)
		{
			*now = var->value;
			return false;
		}
		SimWait(lock, NEVER, false);
	}
}

bool
MinimumActiveBackends(int min)
{
	return SimChance(&sim_world, 500);
}
