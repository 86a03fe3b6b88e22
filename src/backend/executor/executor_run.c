/*-------------------------------------------------------------------------
 *
 * executor_run.c
 *	  Plans that run, and whether all their rows are going to be wanted.
 *
 * Our standard_ExecutorRun() stands in for upstream's, which a seam gives
 * another name.  Every plan passes here, whatever hooks extensions have, in
 * whatever order they come; ExecutorRun_hook stays theirs.
 *
 * Tests: src/test/aio/foreign/t/002_scan.pl, src/test/aio/lookup,
 *		  src/test/aio/hooks/t/001_hooks.pl, src/test/depth/run.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "aio/executor_run.h"
#include "aio/parallel_insert.h"
#include "executor/executor.h"
#include "guard.h"

/* among the keys of a parallel query's shared memory */
#define PARALLEL_KEY_TO_END		UINT64CONST(0xA100000000000003)

/*
 * The plans that run, the innermost last.  They are not linked on the stack,
 * with a PG_TRY to unlink each: functions that call themselves in queries come
 * as deep as in PostgreSQL only if a run adds little to it (INVARIANT-112).
 * After an error, the end of the subtransaction or transaction takes the
 * entries away.  Whoever catches an error of a plan without either, and goes
 * on, breaks PostgreSQL's rules; then the end of the plan's memory does, or
 * that of the plan outside of it.
 */
static AioExecutorRun *runs = NULL;
static int	nruns = 0;
static int	runs_max = 0;
#define RUNS_MIN	8

/* this is a worker of a parallel plan, whose leader wants all of its rows */
static bool leader_wants_all = false;

#ifdef USE_ASSERT_CHECKING
/* what is told of each plan before it runs */
void		(*aio_before_run) (QueryDesc *query);
#endif

/* The plan that runs, or NULL.  Good until the next one begins. */
AioExecutorRun *
AioRunning(void)
{
	return nruns == 0 ? NULL : &runs[nruns - 1];
}

/* The same if it is that of this statement, else NULL. */
static AioExecutorRun *
run_of(const EState *estate)
{
	return nruns > 0 && runs[nruns - 1].estate == estate ? &runs[nruns - 1] : NULL;
}

/* Does a join give rows of its left input that match nothing? */
static bool
fills_left(const Join *join)
{
	return join->jointype == JOIN_LEFT || join->jointype == JOIN_ANTI ||
		join->jointype == JOIN_FULL;
}

/*
 * Is this node read to its end whenever it is executed, if 'root' is or is not,
 * as 'to_end' says?  Or, if 'begun', whenever more than its first row is
 * wanted?  False also if it is not below there.
 */
static bool
reads_to_end(const Plan *root, const Plan *node, bool to_end, bool begun)
{
	bool		left = to_end;
	bool		right = false;

	if (root == NULL)
		return false;
	if (root == node)
		return to_end;
	switch (nodeTag(root))
	{
		case T_Append:
			foreach_ptr(Plan, child, ((const Append *) root)->appendplans)
			{
				if (reads_to_end(child, node, to_end, begun))
					return true;
			}
			return false;
		case T_MergeAppend:
			foreach_ptr(Plan, child, ((const MergeAppend *) root)->mergeplans)
			{
				if (reads_to_end(child, node, to_end, begun))
					return true;
			}
			return false;
		case T_SubqueryScan:
			return reads_to_end(((const SubqueryScan *) root)->subplan, node,
								to_end, begun);
		case T_Sort:
		case T_Hash:
			/* all of the input before the first row of the output */
			left = true;
			break;
		case T_Agg:
			left = to_end || ((const Agg *) root)->aggstrategy == AGG_PLAIN ||
				((const Agg *) root)->aggstrategy == AGG_HASHED;
			break;
		case T_HashJoin:
			/* a row of the left is looked at before the right, a Hash */
			left = to_end && (begun || fills_left((const Join *) root));
			right = to_end;
			break;
		case T_WindowAgg:
			left = to_end && ((const WindowAgg *) root)->runCondition == NIL;
			break;
		case T_NestLoop:
		case T_Gather:
		case T_GatherMerge:
		case T_Group:
		case T_IncrementalSort:
		case T_Material:
		case T_ModifyTable:
		case T_ProjectSet:
		case T_Result:
		case T_Unique:
			break;
		default:
			left = false;
			break;
	}
	return reads_to_end(root->lefttree, node, left, begun) ||
		reads_to_end(root->righttree, node, right, begun);
}

/*
 * Are all rows of this node of a running plan going to be wanted?  Or, with
 * 'begun', all if more than the first one is?
 */
bool
AioAllRowsWanted(EState *estate, const Plan *node, bool begun)
{
	PlannedStmt *stmt = estate->es_plannedstmt;
	const AioExecutorRun *run = run_of(estate);

	if (reads_to_end(stmt->planTree, node, run != NULL && run->to_end, begun))
		return true;
	foreach_ptr(Plan, subplan, stmt->subplans)
	{
		if (reads_to_end(subplan, node, false, begun))
			return true;
	}
	return false;
}

/*
 * Might the leader of a parallel plan stop this worker before its end, when it
 * has enough rows of all?  The number that a worker is told is only the most
 * that it could be asked for.  One that inserts its rows is not stopped.
 */
static bool
may_be_stopped(const QueryDesc *query)
{
	return query->dest->mydest == DestTupleQueue && !leader_wants_all &&
		!AioReceiverInserts(query->dest);
}

/* Room for what AioShareRowsWanted() tells workers. */
void
AioEstimateRowsWanted(ParallelContext *pcxt)
{
	shm_toc_estimate_chunk(&pcxt->estimator, sizeof(bool));
	shm_toc_estimate_keys(&pcxt->estimator, 1);
}

/*
 * Tell the workers that are going to execute this node of the leader's plan
 * whether all of their rows are wanted, and nobody is between two of them.
 */
void
AioShareRowsWanted(ParallelContext *pcxt, const PlanState *planstate)
{
	bool	   *all = shm_toc_allocate(pcxt->toc, sizeof(bool));

	*all = AioAllRowsWanted(planstate->state, planstate->plan, false) &&
		!AioSomebodyIsBetween(planstate->state);
	shm_toc_insert(pcxt->toc, PARALLEL_KEY_TO_END, all);
}

/* A worker begins. */
void
AioGetRowsWanted(shm_toc *toc)
{
	leader_wants_all = *(bool *) shm_toc_lookup(toc, PARALLEL_KEY_TO_END, false);
}

/*
 * Of the rows that the topmost node of this statement is going to return, how
 * many more will be asked for until the plan has been run?  At most 'max', and
 * 1 if that is not known.
 */
uint64
AioRowsWanted(const EState *estate, uint64 max)
{
	const AioExecutorRun *run = run_of(estate);

	if (run == NULL)
		return Min(max, 1);
	if (run->to_end)
		return max;
	if (run->query->operation != CMD_SELECT || may_be_stopped(run->query))
		return Min(max, 1);
	Assert(estate->es_processed < run->count);
	return Min(max, run->count - estate->es_processed);
}

/* Do rows go to code of an extension? */
static bool
is_of_extension(const DestReceiver *dest)
{
	return !AioIsOwnFunction(dest->receiveSlot);
}

/* Do those of this statement? */
bool
AioRowsGoToExtension(const EState *estate)
{
	const AioExecutorRun *run = run_of(estate);

	return run != NULL && is_of_extension(run->query->dest);
}

/*
 * May somebody do something between two rows that this statement returns: a
 * client, or a procedure, that asks for the next ones when it likes?
 */
bool
AioSomebodyIsBetween(const EState *estate)
{
	const AioExecutorRun *run = run_of(estate);

	return run == NULL || !run->to_end || is_of_extension(run->query->dest);
}

/*
 * Does the plan of this statement run, and does nobody's code that may do
 * anything, until ExecutorRun() returns, neither in the plan nor where its rows
 * go?
 */
bool
AioRunIsUndisturbed(const EState *estate)
{
	AioExecutorRun *run = run_of(estate);

	if (run == NULL)
		return false;
	if (!run->undisturbed_known)
	{
		run->undisturbed = !is_of_extension(run->query->dest) &&
			AioPlanRunsNoUserCode(run->query->planstate);
		run->undisturbed_known = true;
	}
	return run->undisturbed;
}

static void
run_plan(QueryDesc *query, ScanDirection direction, uint64 count)
{
#ifdef USE_ASSERT_CHECKING
	aio_before_run(query);
#endif
	upstream_standard_ExecutorRun(query, direction, count);
}

/* The memory of this plan goes. */
static void
forget_runs_of(void *estate)
{
	for (int i = 0; i < nruns; i++)
	{
		if (runs[i].estate == estate)
			runs[i].estate = NULL;
	}
	while (nruns > 0 && runs[nruns - 1].estate == NULL)
		nruns--;
}

static void
note_end_of_memory(EState *estate)
{
	MemoryContextCallback *at_end =
		MemoryContextAlloc(estate->es_query_cxt, sizeof(MemoryContextCallback));

	at_end->func = forget_runs_of;
	at_end->arg = estate;
	MemoryContextRegisterResetCallback(estate->es_query_cxt, at_end);
}

static pg_noinline void
begin_run(QueryDesc *query, uint64 count)
{
	AioExecutorRun *run;

	if (nruns == runs_max)
	{
		int			size = Max(RUNS_MIN, 2 * runs_max);

		if (runs == NULL)
			runs = MemoryContextAlloc(TopMemoryContext,
									  size * sizeof(AioExecutorRun));
		else
			runs = repalloc_array(runs, AioExecutorRun, size);
		runs_max = size;
	}
	if (!query->already_executed)
		note_end_of_memory(query->estate);
	run = &runs[nruns++];
	run->query = query;
	run->estate = query->estate;
	run->to_end = count == 0 && !may_be_stopped(query);
	run->count = count;
	run->goes_on = query->already_executed;
	run->nest_level = GetCurrentTransactionNestLevel();
	run->misses = 0;
	run->undisturbed_known = false;
}

static void
run_noted(QueryDesc *query, ScanDirection direction, uint64 count)
{
	int			place = nruns;

	begin_run(query, count);
	AioRunGuarded(run_plan, query, direction, count);
	/* with any that errors have left */
	nruns = place;
}

/* In place of upstream's: whoever runs a plan calls it, or a hook that does. */
void
standard_ExecutorRun(QueryDesc *query, ScanDirection direction, uint64 count)
{
	AioRunInserting(run_noted, query, direction, count);
}

static void
at_xact_event(XactEvent event, void *arg)
{
	if (event == XACT_EVENT_ABORT || event == XACT_EVENT_PARALLEL_ABORT)
		nruns = 0;
}

/* Statements that began outside of the subtransaction go on. */
static void
at_subxact_event(SubXactEvent event, SubTransactionId mySubid,
				 SubTransactionId parentSubid, void *arg)
{
	if (event != SUBXACT_EVENT_ABORT_SUB)
		return;
	while (nruns > 0 &&
		   runs[nruns - 1].nest_level >= GetCurrentTransactionNestLevel())
		nruns--;
}

/* While libraries are preloaded. */
void
AioExecutorRunInitialize(void)
{
	RegisterXactCallback(at_xact_event, NULL);
	RegisterSubXactCallback(at_subxact_event, NULL);
}
