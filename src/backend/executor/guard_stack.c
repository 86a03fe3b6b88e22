/*-------------------------------------------------------------------------
 *
 * guard_stack.c
 *	  Which statements run in a guard, and may have rows or keys wait.
 *
 * A guard catches the error of a row, and looks whether one of the rows before
 * it fails, too (guard.c).  Rows may wait if there is a guard, and if the rows
 * that come after a failing one have no side effects (side_effects.c).
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
#include "guard.h"
#include "miscadmin.h"

/* the statement that began last and runs still */
static AioGuard *innermost = NULL;

/* A statement begins: query, or COPY from cstate. */
void
AioGuardBegin(AioGuard *guard, QueryDesc *query, CopyFromState cstate)
{
	Assert((query == NULL) != (cstate == NULL));

	guard->outer = innermost;
	guard->query = query;
	guard->cstate = cstate;
	guard->backlog_of = query != NULL ? query->estate : NULL;
	AioMarkErrorPoint(&guard->point);
	if (query != NULL)
		guard->point.memory_context = query->estate->es_query_cxt;
	guard->nest_level = GetCurrentTransactionNestLevel();
	GetUserIdAndSecContext(&guard->userid, &guard->sec_context);
	guard->scope = aio_current_scope;
	innermost = guard;
}

/* It has ended, well or not. */
void
AioGuardEnd(AioGuard *guard)
{
	Assert(innermost == guard);
	innermost = guard->outer;
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
	return true;
}
