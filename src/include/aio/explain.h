/*-------------------------------------------------------------------------
 *
 * explain.h
 *	  EXPLAIN (ANALYZE, AIO).
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AIO_EXPLAIN_H
#define AIO_EXPLAIN_H

#include "commands/trigger.h"
#include "executor/instrument.h"
#include "nodes/execnodes.h"
#include "nodes/plannodes.h"
#include "nodes/primnodes.h"

struct ExplainState;

extern void AioExplainInitialize(void);

/* called by seams */
extern void AioExplainOptions(struct ExplainState *es);
extern void AioExplainNode(PlanState *planstate, struct ExplainState *es);
extern void AioExplainPlan(PlannedStmt *plan, IntoClause *into,
						   struct ExplainState *es);
extern void AioExplainTrigger(const ResultRelInfo *rri, const Trigger *trigger,
							  const Instrumentation *instr,
							  struct ExplainState *es);

#endif							/* AIO_EXPLAIN_H */
