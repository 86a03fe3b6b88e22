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

#include "access/parallel.h"
#include "executor/execdesc.h"
#include "nodes/execnodes.h"
#include "storage/shm_toc.h"

/* A call of ExecutorRun() that has not returned. */
typedef struct AioExecutorRun
{
	QueryDesc  *query;
	EState	   *estate;			/* its state */
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
extern bool AioRowsGoToExtension(const EState *estate);

/* for parallel_query.c */
extern void AioEstimateRowsWanted(ParallelContext *pcxt);
extern void AioShareRowsWanted(ParallelContext *pcxt,
							   const PlanState *planstate);
extern void AioGetRowsWanted(shm_toc *toc);

/*
 * Is this a function of the server, and of no library that it has loaded?  What
 * a node, a receiver or a source calls itself says nothing about that.
 */
static inline bool
AioIsOwnFunction(const void *function)
{
	/* of the linker: where the program begins, and where its code ends */
	extern const char __executable_start[];
	extern const char etext[];

	return (uintptr_t) function >= (uintptr_t) __executable_start &&
		(uintptr_t) function < (uintptr_t) etext;
}

/* volatility.c */
extern bool AioPlanChangesNothing(PlanState *root);
extern bool AioPlanRunsNoUserCode(PlanState *root);

#endif							/* AIO_EXECUTOR_RUN_H */
