/*-------------------------------------------------------------------------
 *
 * guard.c
 *	  Raise the error of the first row that fails, even if its keys are still
 *	  waiting.
 *
 * A backlog may hold keys whose uniqueness is not established yet, and INSERT
 * may have kept back rows (row_buffer.c).  If a later row of the statement
 * fails meanwhile with a data error, inserting row by row would have met a
 * duplicate among the earlier ones first.  So the statement runs in a guard,
 * which catches the error, drains the backlog, and raises the error of that
 * instead, if there is one.  Which statements may have anything wait is
 * decided in guard_stack.c.
 *
 * What has been caught is a data error, raised by code that evaluates
 * expressions, parses input or checks constraints, perhaps with locks held;
 * these are released as the transaction's abort would release them.  No row is
 * produced any more, and the transaction is rolled back in any case.  If what
 * cannot be restored here has changed, the error goes on as it is.
 *
 * Tests: src/test/aio/sql/sql/errors.sql, src/test/aio/index/t/002_random.pl.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "aio/backlog.h"
#include "aio/index_backlog.h"
#include "aio/index_insert.h"
#include "aio/task_port.h"
#include "commands/copyfrom_internal.h"
#include "executor/executor.h"
#include "guard.h"
#include "miscadmin.h"
#include "storage/ipc.h"
#include "utils/memutils.h"

/*
 * Has the guarded statement failed at a place in its rows?  What the reader of
 * COPY's input raises has: its end there, because the client gives up, breaks
 * the protocol or has gone, comes after the rows before, although its SQLSTATE
 * is that of a query that is cancelled, or of a connection that fails.
 */
static bool
failed_at_a_row(const AioGuard *guard)
{
	MemoryContext old;
	ErrorData  *error;
	bool		result;

	if (AioIsDataError(geterrcode()))
		return true;
	if (guard->cstate == NULL)
		return false;
	old = MemoryContextSwitchTo(guard->point.memory_context);
	error = CopyErrorData();
	result = error->filename != NULL &&
		strcmp(error->filename, "copyfromparse.c") == 0;
	FreeErrorData(error);
	MemoryContextSwitchTo(old);
	return result;
}

/*
 * The guarded statement has failed: raise the error of an earlier row instead,
 * if there is one.
 */
static void
settle(AioGuard *guard)
{
	ErrorContextCallback callback;

	if (guard->backlog_of == NULL || proc_exit_inprogress ||
		!AioBacklogIsChecked(guard->backlog_of) ||
		GetCurrentTransactionNestLevel() != guard->nest_level ||
		!failed_at_a_row(guard))
		return;
	Assert(guard->point.memory_context != ErrorContext);
	Assert(guard->point.owner != NULL);

	PG_TRY();
	{
		ErrorData  *error;

		MemoryContextSwitchTo(guard->point.memory_context);
		error = CopyErrorData();
		AioReturnToErrorPoint(&guard->point);
		aio_current_scope = guard->scope;
		SetUserIdAndSecContext(guard->userid, guard->sec_context);

		if (guard->cstate != NULL)
		{
			callback.callback = CopyFromErrorCallback;
			callback.arg = guard->cstate;
			callback.previous = error_context_stack;
			error_context_stack = &callback;
		}
		AioClaimKeys(guard->backlog_of);
		Assert(!AioBacklogIsChecked(guard->backlog_of));

		/* no earlier row fails; as errfinish() leaves it */
		InterruptHoldoffCount = 0;
		QueryCancelHoldoffCount = 0;
		guard->backlog_of = NULL;
		ReThrowError(error);
	}
	PG_CATCH();
	{
		/* a row that was kept back: keys of those before it may still wait */
		settle(guard);
		PG_RE_THROW();
	}
	PG_END_TRY();
}

static pg_noinline uint64
copy_in_guard(CopyFromState cstate)
{
	AioGuard	guard;
	uint64		processed = 0;

	AioGuardBegin(&guard, NULL, cstate);
	PG_TRY();
	{
		processed = upstream_CopyFrom(cstate);
	}
	PG_CATCH();
	{
		AioGuardEnd(&guard);
		settle(&guard);
		PG_RE_THROW();
	}
	PG_END_TRY();
	AioGuardEnd(&guard);
	return processed;
}

/*
 * CopyFrom(), in a guard.  A seam gives upstream's another name, so that every
 * caller comes here.
 */
uint64
CopyFrom(CopyFromState cstate)
{
	if (aio_index_batch_memory == 0 || !aio_await_index_inserts ||
		AioGuardsAreDeep())
		return upstream_CopyFrom(cstate);
	return copy_in_guard(cstate);
}

/* Does a plan insert the one row of a VALUES list? */
static inline bool
inserts_one_row(PlanState *plan)
{
	return IsA(plan, ModifyTableState) && IsA(outerPlanState(plan), ResultState) &&
		outerPlanState(outerPlanState(plan)) == NULL;
}

static pg_noinline void
run_in_guard(ExecutorRun_hook_type run, QueryDesc *query,
			 ScanDirection direction, uint64 count)
{
	AioGuard	guard;

	AioGuardBegin(&guard, query, NULL);
	PG_TRY();
	{
		run(query, direction, count);
	}
	PG_CATCH();
	{
		AioGuardEnd(&guard);
		settle(&guard);
		PG_RE_THROW();
	}
	PG_END_TRY();
	AioGuardEnd(&guard);
}

/*
 * Run a plan by that function, in a guard if rows or keys of the statement may
 * wait.
 */
void
AioRunGuarded(ExecutorRun_hook_type run, QueryDesc *query,
			  ScanDirection direction, uint64 count)
{
	if (query->operation != CMD_INSERT || aio_index_batch_memory == 0 ||
		!aio_await_index_inserts || inserts_one_row(query->planstate) ||
		AioGuardsAreDeep())
		run(query, direction, count);
	else
		run_in_guard(run, query, direction, count);
}
