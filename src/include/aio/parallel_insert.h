/*-------------------------------------------------------------------------
 *
 * parallel_insert.h
 *	  Workers of a parallel plan that insert the rows they find.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AIO_PARALLEL_INSERT_H
#define AIO_PARALLEL_INSERT_H

#include "access/parallel.h"
#include "executor/executor.h"
#include "nodes/execnodes.h"
#include "nodes/parsenodes.h"
#include "nodes/plannodes.h"
#include "storage/dsm.h"
#include "storage/shm_toc.h"
#include "tcop/dest.h"
#include "utils/rel.h"

/* aio.parallel_insert */
extern PGDLLIMPORT bool aio_parallel_insert;

/* the table into which a receiver inserts, and how */
typedef struct AioInsertTarget
{
	Relation	rel;
	CommandId	cid;
	int			options;		/* of table_tuple_insert() */
} AioInsertTarget;

/* parallel_query.c, called by seams */
extern void AioInitializeParallelDSM(ParallelContext *pcxt,
									 PlanState *planstate);
extern DestReceiver *AioParallelReceiver(shm_toc *toc, DestReceiver *queue);
extern void AioWorkersFinished(ParallelContext *pcxt);

/* parallel_insert.c, called by seams */
extern bool AioForbidsInsert(void);
extern CommandId AioInsertCommandId(bool used);

/* parallel_insert.c */
extern AioInsertTarget AioEstimateInsert(ParallelContext *pcxt,
										 PlanState *planstate);
extern void AioShareInsert(ParallelContext *pcxt,
						   const AioInsertTarget *target);
extern void AioCountInserted(ParallelContext *pcxt);
extern DestReceiver *AioInsertingReceiver(shm_toc *toc, DestReceiver *queue);
extern bool AioReceiverInserts(const DestReceiver *dest);
extern void AioRunInserting(ExecutorRun_hook_type run, QueryDesc *query,
							ScanDirection direction, uint64 count);
extern bool AioInsertsInParallel(const PlannedStmt *plan);
extern bool AioMayInsertInto(const IntoClause *into);

/* createas_internals.c, matview_internals.c */
extern bool AioIsIntoRel(const DestReceiver *dest);
extern bool AioIsTransientRel(const DestReceiver *dest);
extern AioInsertTarget AioIntoTarget(DestReceiver *dest);
extern AioInsertTarget AioTransientTarget(DestReceiver *dest);

#endif							/* AIO_PARALLEL_INSERT_H */
