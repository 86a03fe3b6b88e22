/*-------------------------------------------------------------------------
 *
 * guard.c
 *	  The first row that fails decides, also if its keys are still waiting.
 *
 * A backlog may hold keys whose uniqueness is not established yet, and INSERT
 * may have kept back rows (row_buffer.c).  If a later row of the statement
 * fails meanwhile, for whatever reason that is about its data, inserting row
 * by row would have met a duplicate among the earlier ones first.  So the
 * statement runs in a guard, which catches the error, drains the backlog, and
 * raises the error of that instead, if there is one.  Which statements may have
 * anything wait is decided in guard_stack.c.
 *
 * What has been caught is an error about data, raised by code that evaluates
 * expressions, parses input or checks constraints, perhaps with locks held;
 * these are released as the transaction's abort would release them.  No row is
 * produced any more, and the transaction is rolled back in any case.  If what
 * cannot be restored here has changed, the error goes on as it is.
 *
 * Tests: src/test/aio/sql/sql/errors.sql, src/test/aio/t/008_random.pl.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "aio/backlog.h"
#include "aio/index_insert.h"
#include "aio/task_port.h"
#include "backlog.h"
#include "commands/copyfrom_internal.h"
#include "guard.h"
#include "miscadmin.h"
#include "storage/ipc.h"
#include "utils/memutils.h"

/*
 * Could this error be about a row?  Unlike AioIsDataError(), which has to
 * be right about errors of index inserts only, this says yes if in doubt.
 */
static bool
may_be_about_row(int sqlerrcode)
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
		!may_be_about_row(geterrcode()))
		return;
	Assert(guard->memory_context != ErrorContext);
	Assert(guard->owner != NULL);

	PG_TRY();
	{
		ErrorData  *error;

		MemoryContextSwitchTo(guard->memory_context);
		error = CopyErrorData();
		FlushErrorState();

		AioCleanUpAfterError();
		InterruptHoldoffCount = guard->holdoff;
		QueryCancelHoldoffCount = guard->cancel_holdoff;
		aio_current_scope = guard->scope;
		CurrentResourceOwner = guard->owner;
		SetUserIdAndSecContext(guard->userid, guard->sec_context);

		if (guard->cstate != NULL)
		{
			callback.callback = CopyFromErrorCallback;
			callback.arg = guard->cstate;
			callback.previous = error_context_stack;
			error_context_stack = &callback;
		}
		AioDrainStatement(guard->backlog_of);
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
 * CopyFrom(), in a guard.
 */
uint64
AioCopyFrom(CopyFromState cstate)
{
	AioGuard	guard;
	uint64		processed = 0;

	if (aio_index_batch_memory == 0 || !aio_await_index_inserts)
		return CopyFrom(cstate);

	AioGuardBegin(&guard, NULL, cstate);
	PG_TRY();
	{
		processed = CopyFrom(cstate);
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
 * run(arg), which runs the plan of query, in a guard.
 */
void
AioRunGuarded(QueryDesc *query, void (*run) (void *arg), void *arg)
{
	AioGuard	guard;

	AioGuardBegin(&guard, query, NULL);
	PG_TRY();
	{
		run(arg);
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
