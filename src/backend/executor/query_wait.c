/*-------------------------------------------------------------------------
 *
 * query_wait.c
 *	  INSERT does not keep keys back while its query computes, nor COPY while it
 *	  leaves out rows.
 *
 * PostgreSQL inserts the keys of a row before it asks the query for the next
 * one.  Keys of a backlog, and rows that are kept back, wait for more of their
 * kind; as long as others cannot see them, others can insert the same keys, and
 * the INSERT fails.  So they do not wait for long if few rows come: a timer has
 * the session look at its statements, and those that are slow insert their keys
 * when the next node of their plan is executed, or has left out a row that its
 * conditions filter; or before COPY's next row.  That is INVARIANT-106.
 *
 * The timer costs a statement nothing while its plan runs: only for those that
 * are slow, a function of ours stands before the ExecProcNode of each node,
 * until it is called.  That is between two steps of the plan, where nothing is
 * locked that a drain could want, as when a function begins to search an index
 * (backlog_gate.c).  Plans whose rows may wait have no nodes of extensions, and
 * call no code of users (side_effects.c).
 *
 * Inserting few keys at a time costs more, so they wait ten times as long as
 * inserting them took the last time.  Entries of other indexes stay where they
 * are: nobody waits for these.
 *
 * Suspends:  nothing here does.
 * Errors:    as of the rows whose keys are inserted.
 * Tests:     src/test/aio/index/t/020_paused_copy.pl.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "aio/copy_wait.h"
#include "aio/index_backlog.h"
#include "aio/io_internal.h"
#include "executor/executor.h"
#include "guard.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "portability/instr_time.h"

/* how many times as long as inserting the keys took */
#define TIME_FACTOR	10

/* a statement to which fewer rows than these come in a second is slow */
#define ROWS_PER_SECOND	(aio_debug_spill ? 1e9 : 10000.0)

/* A node that has us look at its statement. */
typedef struct WatchedNode
{
	PlanState  *node;			/* hash key */
	ExecProcNodeMtd former;
} WatchedNode;

static TupleTableSlot *execute_watched(PlanState *node);

/* Its keys are about to be inserted, and nodes are executed as before. */
static void
unwatch(AioStatementBacklog *statement)
{
	HASH_SEQ_STATUS scan;
	WatchedNode *watched;

	statement->slow = false;
	aio_rows_are_few = false;
	if (statement->watched == NULL)
		return;
	hash_seq_init(&scan, statement->watched);
	while ((watched = hash_seq_search(&scan)) != NULL)
	{
		/* else an extension has put a function of its own before ours */
		if (watched->node->ExecProcNode == execute_watched)
		{
			watched->node->ExecProcNode = watched->former != NULL ?
				watched->former : watched->node->ExecProcNodeReal;
			hash_search(statement->watched, &watched->node, HASH_REMOVE, NULL);
		}
	}
}

/* Insert what a statement keeps back. */
static void
drain(AioStatementBacklog *statement)
{
	instr_time	begin;
	instr_time	time;

	if (!AioBacklogIsChecked(statement->estate) || !AioStatementIsAlive(statement) ||
		aio_current_task != NULL)
		return;
	INSTR_TIME_SET_CURRENT(begin);
	AioClaimKeys(statement->estate);
	INSTR_TIME_SET_CURRENT(time);
	INSTR_TIME_SUBTRACT(time, begin);
	statement->client_drain_ms = Min(INSTR_TIME_GET_MILLISEC(time),
									 AIO_DRAIN_MS_MAX);
}

/* A node of a plan has left out a row. */
void
AioLeftOutRow(PlanState *node)
{
	AioStatementBacklog *statement = AioFindStatement(node->state);

	/* that one is in the middle of its own row */
	if (IsA(node, ModifyTableState))
		return;
	if (statement != NULL && statement->slow)
	{
		unwatch(statement);
		drain(statement);
	}
}

/* COPY is about to read its next row, and somebody is slow. */
void
AioClaimKeysOfCopy(CopyFromState cstate)
{
	for (AioStatementBacklog *statement = AioNextStatement(NULL);
		 statement != NULL; statement = AioNextStatement(statement))
	{
		if (statement->cstate == cstate && statement->slow)
		{
			unwatch(statement);
			drain(statement);
			return;
		}
	}
}

/* ExecProcNode of a node that is watched */
static TupleTableSlot *
execute_watched(PlanState *node)
{
	AioStatementBacklog *statement = AioFindStatement(node->state);
	WatchedNode *watched = hash_search(statement->watched, &node, HASH_FIND, NULL);
	ExecProcNodeMtd former = watched != NULL ? watched->former : NULL;

	/* no longer, if an extension has kept what was there before its own */
	if (statement->slow)
	{
		unwatch(statement);
		drain(statement);
	}
	return former != NULL ? former(node) : node->ExecProcNodeReal(node);
}

/* PlanState walker */
static bool
watch(PlanState *node, void *context)
{
	AioStatementBacklog *statement = context;
	WatchedNode *watched;
	bool		found;

	if (node == NULL)
		return false;
	watched = hash_search(statement->watched, &node, HASH_ENTER, &found);
	if (!found)
	{
		/* what stands before its own function calls whatever that is by then */
		watched->former = node->ExecProcNode == node->ExecProcNodeReal ?
			NULL : node->ExecProcNode;
		node->ExecProcNode = execute_watched;
	}
	return planstate_tree_walker(node, watch, context);
}

/*
 * Look at a statement of which rows or keys may wait: has it got few rows since
 * the last look, so many milliseconds ago, and inserted the keys of none?  root
 * is the plan of its rows, or NULL.
 */
static void
look(AioStatementBacklog *statement, PlanState *root, double passed)
{
	uint64		rows = statement->rows_taken;

	if (AioBacklogIsChecked(statement->estate) &&
		statement->drains == statement->drains_seen &&
		(rows - statement->rows_seen) * 1000.0 < ROWS_PER_SECOND * passed)
	{
		if (statement->watched == NULL && root != NULL)
		{
			HASHCTL		ctl;

			ctl.keysize = sizeof(PlanState *);
			ctl.entrysize = sizeof(WatchedNode);
			ctl.hcxt = statement->context;
			statement->watched = hash_create("watched nodes", 16, &ctl,
											 HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
		}
		statement->slow = true;
		aio_rows_are_few = true;
		watch(root, statement);
	}
	statement->rows_seen = rows;
	statement->drains_seen = statement->drains;
}

/*
 * CHECK_FOR_INTERRUPTS(), after a while: look at all statements.
 */
void
AioLookAtQueries(void)
{
	double		passed = AioTimeSinceLook();
	double		ms = 0;

	/* a plan may be deeper than a task's stack */
	if (aio_current_task != NULL)
	{
		AioLookSoon();
		return;
	}
	aio_keys_wait = false;
	aio_rows_are_few = false;
	for (const AioGuard *guard = AioNextGuard(NULL); guard != NULL;
		 guard = AioNextGuard(guard))
	{
		AioStatementBacklog *statement;

		/* one that has got few rows has none */
		statement = guard->backlog_of != NULL ?
			AioFindStatement(guard->backlog_of) : NULL;
		if (statement == NULL || !AioStatementIsAlive(statement))
			continue;
		look(statement, guard->query != NULL ?
			 outerPlanState(guard->query->planstate) : NULL, passed);
		ms = Max(ms, statement->client_drain_ms * TIME_FACTOR);
	}
	AioLookAfter(ms);
}
