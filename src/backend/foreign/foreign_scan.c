/*-------------------------------------------------------------------------
 *
 * foreign_scan.c
 *	  Scans of foreign servers that are read ahead.
 *
 * Upstream executes the children of an Append asynchronously if they are plain
 * foreign scans.  MergeAppend executes all of its children in turn, until each
 * has given its first row, and so does Append with children that sort or
 * aggregate what a server sends, and with children that are scanned here.  As
 * all of them are going to be executed, the scans that they begin with are
 * told to send their queries first, so that the servers work at the same time.
 * That is not done if anything is done meanwhile on which their rows depend.
 *
 * An Append may also have children that are scanned here, synchronously.
 * Upstream checks for answers of servers only after such a child has returned
 * its last row, and servers that have sent their first rows would be idle
 * until then.  We check from time to time.
 *
 * Rows that have been requested must be received when the scan ends, at the
 * latest, because the connection is needed.  So rows are read ahead only if
 * all of them are going to be used: not for a cursor, nor below a node that
 * may stop early.
 *
 * An error of what has been sent ahead ends the server's transaction, and is
 * raised for whoever uses the connection next.  So nothing is sent ahead while
 * anybody but the statement itself may use it: a function or trigger that it
 * calls, which could take the error for its own, and catch it.
 *
 * Only tables that are marked as async_capable are read ahead; the wrapper
 * checks that.
 *
 * Tests: src/test/aio/foreign/t/002_scan.pl.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "aio/executor_run.h"
#include "aio/foreign.h"
#include "portability/instr_time.h"

/* rows of a child between two looks at the clock, and time between two looks */
#define LOOK_ROWS		64
#define LOOK_INTERVAL_NS	INT64CONST(1000000)

/* aio.foreign_read_ahead */
bool		aio_foreign_read_ahead = true;

/* Has it no effects, and do no other statements use its connections? */
static bool
may_read_ahead(EState *estate)
{
	PlannedStmt *stmt = estate->es_plannedstmt;

	return aio_foreign_read_ahead && estate->es_epq_active == NULL &&
		stmt != NULL && stmt->rowMarks == NIL && !stmt->hasModifyingCTE &&
		(stmt->commandType == CMD_SELECT || stmt->commandType == CMD_INSERT);
}

/*
 * For wrappers: when this scan needs rows, may more be fetched at a time than
 * it has been configured to fetch?  Not if that had an effect, as locking them
 * has, not where other statements use its connection for each of its rows, and
 * not if some may not be needed.
 */
bool
AioMayFetchMany(ForeignScanState *node)
{
	EState	   *estate = node->ss.ps.state;

	Assert(node->resultRelInfo == NULL);
	return may_read_ahead(estate) && AioAllRowsWanted(estate, node->ss.ps.plan, true);
}

/*
 * For wrappers: may rows of this scan be asked for before they are needed?
 *
 * INVARIANT-104: only where nobody but the statement can come across
 * the error that is the answer.
 */
bool
AioMayReadAhead(ForeignScanState *node)
{
	return AioMayFetchMany(node) && AioRunIsUndisturbed(node->ss.ps.state);
}

/*
 * INVARIANT-96: a server is asked before the scan's turn only if it would be
 * asked for the same then, and its tables are the same.  May scans be?
 */
typedef enum EarlyScans
{
	EARLY_UNKNOWN,
	EARLY_NONE,
	EARLY_ALL,
} EarlyScans;

static EarlyScans
early_scans(const EState *estate)
{
	if (!AioRunIsUndisturbed(estate) ||
		!AioPlanChangesNothing(AioRunning()->query->planstate))
		return EARLY_NONE;
	return EARLY_ALL;
}

static void
ask(ForeignScanState *node, EarlyScans *early)
{
	const AioFdwRoutine *routine = AioFindFdw(node->fdwroutine);

	if (node->resultRelInfo != NULL || routine == NULL)
		return;
	if (*early == EARLY_UNKNOWN)
		*early = early_scans(node->ss.ps.state);
	if (*early == EARLY_ALL)
		routine->ReadAhead(node);
}

/*
 * The scan with which the execution of this plan begins, or NULL if it begins
 * otherwise, or may not look at its input at all.
 */
static ForeignScanState *
first_scan(PlanState *plan)
{
	while (plan != NULL && plan->chgParam == NULL)
	{
		switch (nodeTag(plan))
		{
			case T_ForeignScanState:
				return plan->async_capable ? NULL : (ForeignScanState *) plan;
			case T_SubqueryScanState:
				plan = ((SubqueryScanState *) plan)->subplan;
				break;
			case T_SortState:
			case T_IncrementalSortState:
			case T_AggState:
			case T_GroupState:
			case T_MaterialState:
			case T_UniqueState:
			case T_WindowAggState:
			case T_ProjectSetState:
				plan = outerPlanState(plan);
				break;
			default:
				return NULL;
		}
	}
	return NULL;
}

/*
 * ExecAppend() has found out which children to execute.  Those of a parallel
 * Append are not all executed here.
 */
void
AioAppendBegun(AppendState *node)
{
	EState	   *estate = node->ps.state;
	EarlyScans	early = EARLY_UNKNOWN;
	bool		wanted = false;
	int			i = -1;

	if (!AioAnyFdw() || node->as_pstate != NULL ||
		!ScanDirectionIsForward(estate->es_direction) || !may_read_ahead(estate))
		return;
	Assert(node->as_valid_subplans_identified);
	while ((i = bms_next_member(node->as_valid_subplans, i)) >= 0)
	{
		ForeignScanState *scan = first_scan(node->appendplans[i]);

		if (scan == NULL)
			continue;
		if (!wanted && !AioAllRowsWanted(estate, node->ps.plan, false))
			return;
		wanted = true;
		ask(scan, &early);
	}
}

/* ExecMergeAppend() is about to take the first row of each child. */
void
AioMergeAppendBegins(MergeAppendState *node)
{
	EarlyScans	early = EARLY_UNKNOWN;
	int			i = -1;

	if (!AioAnyFdw() || !may_read_ahead(node->ps.state))
		return;
	Assert(!node->ms_initialized);
	while ((i = bms_next_member(node->ms_valid_subplans, i)) >= 0)
	{
		ForeignScanState *scan = first_scan(node->mergeplans[i]);

		if (scan != NULL)
			ask(scan, &early);
	}
}

/*
 * A child that others cannot overtake has given a row: is it time to look for
 * answers of others again?  That has more rows asked for.
 */
bool
AioAppendPoll(AppendState *node)
{
	static int	rows = 0;
	static instr_time last;
	instr_time	now;
	instr_time	passed;

	Assert(node->as_nasyncremain > 0);
	if (++rows < LOOK_ROWS)
		return false;
	rows = 0;
	INSTR_TIME_SET_CURRENT(now);
	passed = now;
	INSTR_TIME_SUBTRACT(passed, last);
	if (INSTR_TIME_GET_NANOSEC(passed) < LOOK_INTERVAL_NS)
		return false;
	last = now;
	return may_read_ahead(node->ps.state) &&
		AioAllRowsWanted(node->ps.state, node->ps.plan, true) &&
		AioRunIsUndisturbed(node->ps.state);
}
