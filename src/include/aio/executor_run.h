/*-------------------------------------------------------------------------
 *
 * executor_run.h
 *	  Plans that run, and whether all their rows are going to be wanted.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AIO_EXECUTOR_RUN_H
#define AIO_EXECUTOR_RUN_H

#include "executor/execdesc.h"
#include "nodes/execnodes.h"

/* A call of ExecutorRun() that has not returned. */
typedef struct AioExecutorRun
{
	QueryDesc  *query;
	bool		to_end;			/* whoever runs it wants all its rows, */
	uint64		count;			/* or else so many */
	bool		goes_on;		/* it has been run before, as of a cursor */
	int			nest_level;		/* of subtransactions, when it began */
	int			misses;			/* reads that somebody waited for */
	bool		undisturbed;	/* see AioRunIsUndisturbed(), */
	bool		undisturbed_known;	/* once somebody has asked */
} AioExecutorRun;

/* upstream's, for which executor_run.c and explain.c have stand-ins */
extern void upstream_standard_ExecutorRun(QueryDesc *queryDesc,
										  ScanDirection direction,
										  uint64 count);
extern void upstream_standard_ExecutorFinish(QueryDesc *queryDesc);

#ifdef USE_ASSERT_CHECKING
extern PGDLLIMPORT void (*aio_before_run) (QueryDesc *query);
#endif

extern void AioExecutorRunInitialize(void);
extern AioExecutorRun *AioRunning(void);
extern uint64 AioRowsWanted(const EState *estate, uint64 max);
extern bool AioAllRowsWanted(EState *estate, const Plan *node, bool begun);
extern bool AioSomebodyIsBetween(const EState *estate);
extern bool AioRunIsUndisturbed(const EState *estate);

/* volatility.c */
extern bool AioPlanChangesNothing(PlanState *root);
extern bool AioPlanRunsNoUserCode(PlanState *root);

#endif							/* AIO_EXECUTOR_RUN_H */
