/*-------------------------------------------------------------------------
 *
 * guard.h
 *	  Statements whose rows, or keys, may wait.  Private to
 *	  src/backend/executor.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AIO_GUARD_H
#define AIO_GUARD_H

#include "access/tableam.h"
#include "aio/error_point.h"
#include "aio/index_insert.h"
#include "aio/task.h"
#include "commands/copy.h"
#include "executor/executor.h"
#include "nodes/execnodes.h"
#include "utils/rel.h"

/* A statement that runs in a guard.  Lives on the stack. */
typedef struct AioGuard
{
	struct AioGuard *outer;
	int			depth;			/* 1 if there is none */
	QueryDesc  *query;			/* that is executed; or */
	CopyFromState cstate;		/* that is read from */
	EState	   *backlog_of;		/* whose rows or enforced keys wait */
	bool		waits;			/* they may */

	/* what held when it began */
	AioErrorPoint point;
	int			nest_level;
	Oid			userid;
	int			sec_context;
	AioScope   *scope;
} AioGuard;

/*
 * Is it a heap for PostgreSQL's own code?  What another access method does is
 * not known: it may tell of what it is asked for, or do it in other ways.
 */
static inline bool
AioIsHeap(Relation rel)
{
	return rel->rd_tableam == GetHeapamTableAmRoutine();
}

/* guard_stack.c */
extern void AioGuardBegin(AioGuard *guard, QueryDesc *query,
						  CopyFromState cstate);
extern void AioGuardEnd(AioGuard *guard);
extern bool AioGuardsAreDeep(void);
extern const AioGuard *AioNextGuard(const AioGuard *guard);
extern void AioLookAfter(double ms);
extern void AioLookSoon(void);
extern double AioTimeSinceLook(void);
extern bool AioLaterRowsHaveNoSideEffects(ResultRelInfo *rri, EState *estate,
										  CopyFromState cstate);

/* guard.c */
extern void AioRunGuarded(ExecutorRun_hook_type run, QueryDesc *query,
						  ScanDirection direction, uint64 count);

/* what evaluates ahead asks the same */
#define AioMayBeDataError(sqlerrcode) AioIsDataError(sqlerrcode)


/* what counts as a side effect, besides what leaves something */
#define AIO_NO_ERRORS	0x01	/* an error that depends on values */
#define AIO_AHEAD		0x02	/* a value that depends on the time of day */
#define AIO_FIXED		0x06	/* or on anything that may be changed
								 * meanwhile */

/* side_effects.c */
extern bool AioFunctionHasSideEffects(Oid funcid);
extern bool AioExpressionHasSideEffects(Node *node, int demands);
extern bool AioRowsHaveSideEffects(PlanState *planstate, int demands);
extern bool AioPartialRowsHaveSideEffects(PlanState *planstate, List *quals,
										  int demands);
extern bool AioTableLeavesSomething(ResultRelInfo *rri);
extern bool AioCopyLeavesSomething(CopyFromState cstate);
extern bool AioInsertLeavesSomething(PlannedStmt *stmt, PlanState *planstate);

/* unnamed.c */
extern bool AioPlanNodeCallsUnnamedCode(PlanState *state);
extern List *AioPruningExpressions(PlanState *state);

/* volatility.c */
extern bool AioNodeMayBeAhead(Node *node, bool fixed);
extern bool AioColumnsMayBeAhead(const Plan *plan);
extern bool AioScanMayBeAhead(PlanState *node, bool fixed);
extern bool AioScansHeap(PlanState *state);

#endif							/* AIO_GUARD_H */
