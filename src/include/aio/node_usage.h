/*-------------------------------------------------------------------------
 *
 * node_usage.h
 *	  What each node of a plan has started and waited for.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AIO_NODE_USAGE_H
#define AIO_NODE_USAGE_H

#include "access/parallel.h"
#include "aio/usage.h"
#include "executor/instrument.h"
#include "nodes/execnodes.h"

/* aio.explain */
extern PGDLLIMPORT bool aio_explain;

/* instrumented statements also count AIO */
extern PGDLLIMPORT bool aio_nodes_counted;

extern void AioNodeUsageInitialize(void);
extern void AioCountNodes(void);
extern void AioEnterNode(Instrumentation *instr);
extern void AioLeaveNode(Instrumentation *instr);
extern void AioForgetInstrumentation(Instrumentation *instr, int n);
extern Size AioSharedUsageSize(const ParallelContext *pcxt, PlanState *planstate);
extern void AioShareUsage(ParallelContext *pcxt, Size size);
extern void AioCountNodesOfWorker(shm_toc *toc);
extern void AioStartUsageOfWorker(void);
extern void AioReportNodeUsage(shm_toc *toc, PlanState *planstate);
extern void AioAddUsageOfWorkers(ParallelContext *pcxt);
extern void AioCollectNodeUsage(shm_toc *toc, PlanState *planstate);
extern const AioKindUsage *AioNodeUsage(const Instrumentation *instr);

/* InstrStartNode(): a node's time begins */
static inline void
AioStartNode(Instrumentation *instr)
{
	if (unlikely(aio_nodes_counted || aio_explain))
		AioEnterNode(instr);
}

/* InstrStopNode(): it ends */
static inline void
AioStopNode(Instrumentation *instr)
{
	if (unlikely(aio_nodes_counted || aio_explain))
		AioLeaveNode(instr);
}

/* InstrAlloc(): what was at this address before has nothing to do with it */
static inline void
AioForgetNodes(Instrumentation *instr, int n)
{
	if (unlikely(aio_nodes_counted || aio_explain))
		AioForgetInstrumentation(instr, n);
}

#endif							/* AIO_NODE_USAGE_H */
