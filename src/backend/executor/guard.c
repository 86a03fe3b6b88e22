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
 * Could this be a data error?  Unlike AioIsDataError(), which has to
 * be right about errors of index inserts only, this says yes if in doubt.
 */
bool
AioMayBeDataError(int sqlerrcode)
{
	/* such as too large a result */
	if (sqlerrcode == ERRCODE_INTERNAL_ERROR)
		return true;
	switch (ERRCODE_TO_CATEGORY(sqlerrcode))
	{
		case ERRCODE_CONNECTION_EXCEPTION:
		case ERRCODE_INVALID_TRANSACTION_STATE:
		case ERRCODE_TRANSACTION_ROLLBACK:
		case ERRCODE_INSUFFICIENT_RESOURCES:
		case ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE:
		case ERRCODE_OPERATOR_INTERVENTION:
		case ERRCODE_SYSTEM_ERROR:
		case ERRCODE_INTERNAL_ERROR:
			return false;
		default:
			return true;
	}
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
		!AioMayBeDataError(geterrcode()))
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
		AioDrainChecked(guard->backlog_of);
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

/*
 * CopyFrom(), in a guard.  A seam gives upstream's another name, so that every
 * caller comes here.
 */
uint64
CopyFrom(CopyFromState cstate)
{
	AioGuard	guard;
	uint64		processed = 0;

	if (aio_index_batch_memory == 0 || !aio_await_index_inserts)
		return upstream_CopyFrom(cstate);

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

/* Does a plan insert the one row of a VALUES list? */
static inline bool
inserts_one_row(PlanState *plan)
{
	return IsA(plan, ModifyTableState) && IsA(outerPlanState(plan), ResultState) &&
		outerPlanState(outerPlanState(plan)) == NULL;
}

/*
 * Run a plan by that function, in a guard if rows or keys of the statement may
 * wait.
 */
void
AioRunGuarded(ExecutorRun_hook_type run, QueryDesc *query,
			  ScanDirection direction, uint64 count)
{
	AioGuard	guard;

	if (query->operation != CMD_INSERT || aio_index_batch_memory == 0 ||
		!aio_await_index_inserts || inserts_one_row(query->planstate))
	{
		run(query, direction, count);
		return;
	}

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
