/*-------------------------------------------------------------------------
 *
 * guard_stack.c
 *	  Which statements run in a guard, and may have rows or keys wait.
 *
 * A guard catches the error of a row, and looks whether one of the rows before
 * it fails, too (guard.c).  Rows may wait if there is a guard, and if the rows
 * that come after a failing one have no side effects (side_effects.c).
 *
 * As soon as one may, a timer has the session look at it now and then
 * (query_wait.c), until the last statement has ended of which one may.
 *
 * Guards are on the stacks of the functions that run statements, each linked to
 * the one outside of it.  Each function takes its own away, also after errors.
 *
 * Tests: src/test/aio/index/t/001_backlog.pl,
 *		  src/test/aio/index/t/002_random.pl.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "aio/backlog.h"
#include "aio/io_internal.h"
#include "aio/slots.h"
#include "guard.h"
#include "miscadmin.h"
#include "portability/instr_time.h"
#include "storage/latch.h"
#include "utils/timeout.h"

#ifdef USE_ASSERT_CHECKING
/* aio.debug_spill; also asked by who has keys wait, so it is here */
bool		aio_debug_spill = false;
#endif

volatile sig_atomic_t aio_keys_wait = false;
bool		aio_rows_are_few = false;

/* milliseconds after which statements are looked at whose rows or keys wait */
#define TIME_MIN	(aio_debug_spill ? 1.0 : 1000.0)
static TimeoutId look_timeout = MAX_TIMEOUTS;

/* when they were looked at, and when they are again if that was impossible */
static instr_time looked_at;
#define TIME_AGAIN	10

/* the statement that began last and runs still, of those in a guard */
static AioGuard *innermost = NULL;

/* nested guards */
#define GUARDS_MAX	8

static void
at_timeout(void)
{
	aio_keys_wait = true;
	InterruptPending = true;
	SetLatch(MyLatch);
}

/*
 * Have the session look at its statements after so many milliseconds, or a
 * little later.
 */
void
AioLookAfter(double ms)
{
	if (look_timeout == MAX_TIMEOUTS)
		look_timeout = RegisterTimeout(AIO_TIMEOUT_LOOK, at_timeout);
	enable_timeout_after(look_timeout, (int) Min(Max(ms, TIME_MIN), (double) PG_INT32_MAX));
	INSTR_TIME_SET_CURRENT(looked_at);
}

/*
 * It was time to look, but not the place.  Interrupts are not pending any more,
 * so the timer is needed to have that noticed again.
 */
void
AioLookSoon(void)
{
	enable_timeout_after(look_timeout, TIME_AGAIN);
}

/* Milliseconds since AioLookAfter(). */
double
AioTimeSinceLook(void)
{
	instr_time	now;

	INSTR_TIME_SET_CURRENT(now);
	INSTR_TIME_SUBTRACT(now, looked_at);
	return INSTR_TIME_GET_MILLISEC(now);
}

/* Nothing waits any more. */
static void
stop_looking(void)
{
	if (look_timeout != MAX_TIMEOUTS && get_timeout_active(look_timeout))
		disable_timeout(look_timeout, false);
	aio_keys_wait = false;
	aio_rows_are_few = false;
}

/* A statement begins: query, or COPY from cstate. */
void
AioGuardBegin(AioGuard *guard, QueryDesc *query, CopyFromState cstate)
{
	Assert((query == NULL) != (cstate == NULL));

	guard->outer = innermost;
	guard->depth = innermost == NULL ? 1 : innermost->depth + 1;
	guard->query = query;
	guard->cstate = cstate;
	guard->backlog_of = query != NULL ? query->estate : NULL;
	guard->waits = false;
	AioMarkErrorPoint(&guard->point);
	if (query != NULL)
		guard->point.memory_context = query->estate->es_query_cxt;
	guard->nest_level = GetCurrentTransactionNestLevel();
	GetUserIdAndSecContext(&guard->userid, &guard->sec_context);
	guard->scope = aio_current_scope;
	innermost = guard;
}

/*
 * Are there so many that one more does without?  Triggers that insert into what
 * they are triggered by come as deep as in PostgreSQL only if not each of them
 * has a guard on the stack.
 */
bool
AioGuardsAreDeep(void)
{
	return innermost != NULL && innermost->depth >= GUARDS_MAX;
}

/* It has ended, well or not. */
void
AioGuardEnd(AioGuard *guard)
{
	Assert(innermost == guard);
	innermost = guard->outer;
	for (const AioGuard *outer = innermost; outer != NULL; outer = outer->outer)
	{
		if (outer->waits)
			return;
	}
	stop_looking();
}

/* The guard outside of another one, or after NULL the innermost; or NULL. */
const AioGuard *
AioNextGuard(const AioGuard *guard)
{
	return guard == NULL ? innermost : guard->outer;
}

/*
 * May rows of this table, or keys that are enforced, wait in the statement that
 * is running with this EState?  They may if it runs in a guard and rows that
 * come after a failing one have no side effects.  cstate is COPY's, or NULL.
 *
 * Asked once per statement and table.
 */
bool
AioLaterRowsHaveNoSideEffects(ResultRelInfo *rri, EState *estate, CopyFromState cstate)
{
	AioGuard   *guard = innermost;

	if (guard == NULL || guard->cstate != cstate ||
		(cstate == NULL && guard->query->estate != estate) ||
		GetCurrentTransactionNestLevel() != guard->nest_level)
		return false;

	if (AioTableLeavesSomething(rri))
		return false;
	if (cstate != NULL ? AioCopyLeavesSomething(cstate) :
		AioInsertLeavesSomething(estate->es_plannedstmt,
								 guard->query->planstate))
		return false;
	Assert(guard->backlog_of == NULL || guard->backlog_of == estate);
	guard->backlog_of = estate;
	guard->waits = true;
	if (look_timeout == MAX_TIMEOUTS || !get_timeout_active(look_timeout))
		AioLookAfter(0);
	return true;
}
