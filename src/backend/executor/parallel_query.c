/*-------------------------------------------------------------------------
 *
 * parallel_query.c
 *	  What the leader of a parallel plan and its workers tell each other.
 *
 * It is in the plan's shared memory, beside what upstream has there, by keys of
 * ours: where workers insert their rows (parallel_insert.c), whether all of
 * their rows are wanted (executor_run.c), and what they use (node_usage.c).
 *
 * Tests: src/test/aio/index/t/005_parallel_insert.pl,
 *		  src/test/aio/lookup/t/001_lookups.pl.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "aio/executor_run.h"
#include "aio/node_usage.h"
#include "aio/parallel_insert.h"

/*
 * ExecInitParallelPlan(): tell the workers that they are to insert, whether all
 * of their rows are wanted, and where to say what they use.
 */
void
AioInitializeParallelDSM(ParallelContext *pcxt, PlanState *planstate)
{
	Size		usage_size = AioSharedUsageSize(pcxt, planstate);
	AioInsertTarget target = AioEstimateInsert(pcxt, planstate);

	if (usage_size > 0)
	{
		shm_toc_estimate_chunk(&pcxt->estimator, usage_size);
		shm_toc_estimate_keys(&pcxt->estimator, 1);
	}
	AioEstimateRowsWanted(pcxt);
	InitializeParallelDSM(pcxt);
	AioShareUsage(pcxt, usage_size);
	AioShareRowsWanted(pcxt, planstate);
	AioShareInsert(pcxt, &target);
}

/* ExecParallelFinish(): all workers have ended. */
void
AioWorkersFinished(ParallelContext *pcxt)
{
	AioAddUsageOfWorkers(pcxt);
	AioCountInserted(pcxt);
}

/* ParallelQueryMain(): where this worker's rows go instead of to its queue */
DestReceiver *
AioParallelReceiver(shm_toc *toc, DestReceiver *queue)
{
	AioCountNodesOfWorker(toc);
	AioGetRowsWanted(toc);
	return AioInsertingReceiver(toc, queue);
}
