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

struct ExplainState;

extern void AioExplainInitialize(void);
extern void AioExplainTrigger(const ResultRelInfo *rri, const Trigger *trigger,
							  const Instrumentation *instr,
							  struct ExplainState *es);

#endif							/* AIO_EXPLAIN_H */
