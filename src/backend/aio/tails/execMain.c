/*-------------------------------------------------------------------------
 *
 * execMain.c
 *	  Tail of executor/execMain.c: the executor's main loop, in a guard.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "aio/index_insert.h"

typedef struct ExecutePlanArgs
{
	QueryDesc  *query;
	CmdType		operation;
	bool		sendTuples;
	uint64		numberTuples;
	ScanDirection direction;
	DestReceiver *dest;
} ExecutePlanArgs;

static void
execute_plan(void *arg)
{
	ExecutePlanArgs *args = arg;

	ExecutePlan(args->query, args->operation, args->sendTuples,
				args->numberTuples, args->direction, args->dest);
}

/* Does a plan insert the one row of a VALUES list? */
static inline bool
inserts_one_row(PlanState *plan)
{
	return IsA(plan, ModifyTableState) && IsA(outerPlanState(plan), ResultState) &&
		outerPlanState(outerPlanState(plan)) == NULL;
}

/* ExecutePlan(), in a guard if rows or keys of the statement may wait. */
static void
guard_plan(ExecutePlanArgs *args)
{
	if (args->operation != CMD_INSERT || aio_index_batch_memory == 0 ||
		!aio_await_index_inserts || inserts_one_row(args->query->planstate))
		execute_plan(args);
	else
		AioRunGuarded(args->query, execute_plan, args);
}

/*
 * In place of ExecutePlan().  While it runs it is known whether all rows are
 * wanted.
 */
void
AioExecutePlan(QueryDesc *query, CmdType operation, bool sendTuples,
			   uint64 numberTuples, ScanDirection direction,
			   DestReceiver *dest)
{
	ExecutePlanArgs args;
	EState	   *outer = aio_running_to_end;

	args.query = query;
	args.operation = operation;
	args.sendTuples = sendTuples;
	args.numberTuples = numberTuples;
	args.direction = direction;
	args.dest = dest;

	aio_running_to_end = numberTuples == 0 ? query->estate : NULL;
	if (outer == NULL)
	{
		/* if it fails, others begin by setting it */
		guard_plan(&args);
		aio_running_to_end = NULL;
		return;
	}
	PG_TRY();
	{
		guard_plan(&args);
	}
	PG_FINALLY();
	{
		aio_running_to_end = outer;
	}
	PG_END_TRY();
}
