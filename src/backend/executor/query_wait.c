/*-------------------------------------------------------------------------
 *
 * query_wait.c
 *	  INSERT does not keep keys back while its query computes.
 *
 * PostgreSQL inserts the keys of a row before it asks the query for the next
 * one.  Keys of a backlog, and rows that are kept back, wait for more of their
 * kind; as long as others cannot see them, others can insert the same keys, and
 * the INSERT fails.  So they do not wait for long if few rows come: a timer has
 * the session look at its statements, and those that are slow insert what they
 * have when the next node of their plan is executed, or has left out a row that
 * its conditions filter.  That is INVARIANT-106.
 *
 * The timer costs a statement nothing while its plan runs: only for those that
 * are slow, a function of ours stands before the ExecProcNode of each node,
 * until it is called.  That is between two steps of the plan, where nothing is
 * locked that a drain could want, as when a function begins to search an index
 * (backlog_gate.c).  Plans whose rows may wait have no nodes of extensions, and
 * call no code of users (side_effects.c).
 *
 * Inserting few keys at a time costs more, so they wait ten times as long as
 * inserting them took the last time.  What has been spilled stays where it is:
 * nobody waits for that.
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

#include "aio/index_backlog.h"
#include "aio/io_internal.h"
#include "aio/slots.h"
#include "executor/executor.h"
#include "guard.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "portability/instr_time.h"
#include "storage/latch.h"
#include "utils/timeout.h"

volatile sig_atomic_t aio_keys_wait = false;
bool		aio_rows_are_few = false;

/* milliseconds after which the statements are looked at */
#define TIME_MIN	(aio_debug_spill ? 1.0 : 1000.0)

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

static TimeoutId look_timeout = MAX_TIMEOUTS;

/* milliseconds between two looks */
static double interval;

static TupleTableSlot *execute_watched(PlanState *node);

static void
at_timeout(void)
{
	aio_keys_wait = true;
	InterruptPending = true;
	SetLatch(MyLatch);
}

static void
look_after(double ms)
{
	interval = Min(ms, (double) PG_INT32_MAX);
	enable_timeout_after(look_timeout, (int) interval);
}

/*
 * A statement begins of which rows or keys may wait, in a guard.
 */
void
AioWatchQueries(void)
{
	if (look_timeout == MAX_TIMEOUTS)
		look_timeout = RegisterTimeout(AIO_TIMEOUT_LOOK, at_timeout);
	if (!get_timeout_active(look_timeout))
		look_after(TIME_MIN);
}

/* One has ended. */
void
AioUnwatchQueries(void)
{
	for (const AioGuard *guard = AioNextGuard(NULL); guard != NULL;
		 guard = AioNextGuard(guard))
	{
		if (guard->query != NULL)
			return;
	}
	if (look_timeout != MAX_TIMEOUTS && get_timeout_active(look_timeout))
		disable_timeout(look_timeout, false);
	aio_keys_wait = false;
	aio_rows_are_few = false;
}

/* Nodes are executed as before. */
static void
unwatch(AioStatementBacklog *statement)
{
	HASH_SEQ_STATUS scan;
	WatchedNode *watched;

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
	statement->slow = false;
	aio_rows_are_few = false;
}

/* Insert what a statement keeps back. */
static void
drain(AioStatementBacklog *statement)
{
	int			short_drains = statement->short_drains;
	instr_time	begin;
	instr_time	time;

	if (!AioBacklogIsChecked(statement->estate) || !AioStatementIsAlive(statement) ||
		aio_current_task != NULL)
		return;
	INSTR_TIME_SET_CURRENT(begin);
	AioDrainChecked(statement->estate);
	INSTR_TIME_SET_CURRENT(time);
	INSTR_TIME_SUBTRACT(time, begin);
	statement->client_drain_ms = Min(INSTR_TIME_GET_MILLISEC(time),
									 AIO_DRAIN_MS_MAX);
	/* the next rows may come faster */
	statement->short_drains = short_drains;
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
 * the last look, and inserted the keys of none?
 */
static void
look(AioStatementBacklog *statement, PlanState *root)
{
	uint64		rows = statement->estate->es_processed;

	if (AioBacklogIsChecked(statement->estate) &&
		statement->drains == statement->drains_seen &&
		(rows - statement->rows_seen) * 1000.0 < ROWS_PER_SECOND * interval)
	{
		if (statement->watched == NULL)
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
	double		ms = TIME_MIN;

	aio_keys_wait = false;
	aio_rows_are_few = false;
	for (const AioGuard *guard = AioNextGuard(NULL); guard != NULL;
		 guard = AioNextGuard(guard))
	{
		AioStatementBacklog *statement;

		if (guard->query == NULL)
			continue;
		/* one that has got no row yet has none */
		statement = AioFindStatement(guard->query->estate);
		if (statement == NULL || !AioStatementIsAlive(statement))
			continue;
		look(statement, outerPlanState(guard->query->planstate));
		ms = Max(ms, statement->client_drain_ms * TIME_FACTOR);
	}
	look_after(ms);
}
