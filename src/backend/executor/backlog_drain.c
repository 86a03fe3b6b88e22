/*-------------------------------------------------------------------------
 *
 * backlog_drain.c
 *	  When a backlog is inserted, and how.
 *
 * A backlog is drained when the statement's rows are in, and before a query
 * could see them (INVARIANT-32).  When its memory is used up, it is drained as
 * well, but for indexes whose entries are spilled (backlog_spill.c).  Keys that
 * are enforced come first (backlog_keys.c), and then one index after the other
 * (backlog_insert.c).
 *
 * INVARIANT-34: a drain that failed fails the statement.  A function that the
 * statement calls, and whose query caused the drain, may catch the error; then
 * the statement fails with that error when it drains again, or spills an entry.
 *
 * INVARIANT-35: the error raised is that of the first row that fails.  Nothing
 * that is collected can fail for what is in it, but keys that are enforced, as
 * duplicates; backlog_keys.c finds the first of them.  guard.c sees to that
 * when a later row fails before.
 *
 * Tests: src/test/aio/sql, src/test/aio/index/t/001_backlog.pl,
 *		  src/test/aio/index/t/002_random.pl.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "aio/error_point.h"
#include "aio/index_backlog.h"
#include "aio/sibling_locks.h"
#include "aio/stats.h"
#include "miscadmin.h"
#include "utils/injection_point.h"
#include "utils/rel.h"

/* after so many entries their order is checked */
#define ENTRIES_TO_CHECK	512

/* entries of one index, whatever the memory allows */
#define ENTRIES_MAX	(PG_INT32_MAX / 2)

/* Nothing is in memory any more. */
static void
start_anew(AioStatementBacklog *statement)
{
	Assert(statement->bytes == 0);
	Assert(statement->rows_kept == 0 && statement->nconflicts == 0);
	statement->rows = 0;
	statement->entries_max = 0;
	statement->keys = false;
	statement->keys_from = 0;
	statement->drains++;
}

/* What is inserted of a statement's backlog. */
typedef enum DrainWhat
{
	DRAIN_KEYS,					/* what others wait for */
	DRAIN_MEMORY,				/* all that is in memory */
	DRAIN_ALL,
} DrainWhat;

/*
 * Insert what a statement has collected.
 */
static void
drain(AioStatementBacklog *statement, DrainWhat what)
{
	AioCheckDrains(statement);
	if (AioBacklogIsEmpty(statement) || statement->draining)
		return;
	if (what == DRAIN_MEMORY && statement->bytes == 0 && statement->rows_kept == 0)
	{
		/* nothing else is */
		start_anew(statement);
		return;
	}

	aio_session_stats_data.batches++;
	if (what == DRAIN_KEYS)
	{
		/* tells nothing about those to come */
	}
	else if (statement->rows < AIO_ROWS_WORTH_WHILE)
		statement->short_drains++;
	else
		statement->short_drains = 0;

	Assert(AioStatementIsAlive(statement));
	PG_TRY();
	{
		statement->draining = true;
		INJECTION_POINT("aio-drain", NULL);
		AioFlushKeptRows(statement);
		AioDrainKeys(statement);
		for (AioTableBacklog *table = statement->tables;
			 table != NULL && what != DRAIN_KEYS; table = table->next)
		{
			for (int i = 0; i < table->nindexes; i++)
			{
				AioIndexBacklog *backlog = &table->indexes[i];

				if (!backlog->batch.unique &&
					(what == DRAIN_ALL || backlog->sort == NULL))
					AioDrainIndex(backlog);
			}
		}
		statement->draining = false;
	}
	PG_CATCH();
	{
		statement->draining = false;
		statement->failed = true;
		aio_earlier_errors++;
		MemoryContextSwitchTo(statement->context);
		statement->error = CopyErrorData();
		PG_RE_THROW();
	}
	PG_END_TRY();
	if (what != DRAIN_KEYS)
		start_anew(statement);
	else
	{
		Assert(statement->rows_kept == 0 && statement->nconflicts == 0);
		statement->keys = false;
		statement->keys_from = statement->rows;
		statement->client_wait_ms = 0;
		statement->drains++;
	}
}

/*
 * A statement, or one of its parts that insert rows, has come to its end:
 * insert all that it has collected.
 */
void
AioDrainStatement(EState *estate)
{
	AioStatementBacklog *statement = AioFindStatement(estate);

	if (statement == NULL)
		return;
	if (!statement->draining && !statement->failed)
		AioFlushKeptRows(statement);
	drain(statement, DRAIN_ALL);
}

/*
 * Rows of a statement are going to be inserted without a backlog, their keys
 * checked at once: those of the rows before must not wait any longer.
 */
void
AioDrainKeysBefore(EState *estate)
{
	AioStatementBacklog *statement = AioFindStatement(estate);

	if (statement != NULL && statement->keys)
		AioDrainStatement(estate);
}

/*
 * A statement is slow: insert the keys of its rows, which others wait for, or
 * take.  Or it has failed, and one of them may have failed before; if a row
 * that was kept back fails, the guard calls this again, for the rows before
 * it.  All other entries stay where they are.
 */
void
AioClaimKeys(EState *estate)
{
	AioStatementBacklog *statement = AioFindStatement(estate);

	Assert(AioBacklogIsChecked(estate));
	AioFlushKeptRows(statement);
	if (statement->keys)
		drain(statement, DRAIN_KEYS);
}

/*
 * A query is about to run with this snapshot: drain the backlogs of statements
 * whose rows it could see.
 */
void
AioDrainVisibleTo(Snapshot snapshot)
{
	for (AioStatementBacklog *statement = AioNextStatement(NULL);
		 statement != NULL; statement = AioNextStatement(statement))
	{
		if ((!AioBacklogIsEmpty(statement) || statement->failed) &&
			AioStatementIsVisible(statement, snapshot) &&
			AioStatementIsAlive(statement))
		{
			aio_session_stats_data.batches_before_query++;
			AioDrainStatement(statement->estate);
		}
	}
}

/*
 * A lock on a relation is about to be got, by a function that a statement
 * calls, perhaps.  Others insert the keys that wait, if that has to be waited
 * for.  It is got where AioDrainOpened() could drain as well: no page is
 * locked.
 *
 * Others than those of relations are got by those who have rows locked.
 */
void
AioDrainKeysBeforeLock(const LOCKTAG *tag, LOCKMODE mode, bool session)
{
	if (tag->locktag_type != LOCKTAG_RELATION || mode == AccessExclusiveLock ||
		!AioMayDrainBeforeLock(tag))
		return;
	for (AioStatementBacklog *statement = AioNextStatement(NULL);
		 statement != NULL; statement = AioNextStatement(statement))
	{
		if (!AioBacklogIsChecked(statement->estate) || !AioStatementIsAlive(statement))
			continue;
		if (AioLockIsToBeHad(tag, mode, session))
			return;
		AioDrainStatement(statement->estate);
	}
}

/*
 * A subtransaction is about to begin, in a function that a statement calls.
 * Rows that have been kept back until now do not belong to it.
 */
void
AioInsertKeptRows(void)
{
	for (AioStatementBacklog *statement = AioNextStatement(NULL);
		 statement != NULL; statement = AioNextStatement(statement))
	{
		if (!statement->failed && !statement->draining && AioStatementIsAlive(statement))
			AioFlushKeptRows(statement);
	}
}

/* Have the tasks end that insert entries of rows. */
static void
join(AioScope *scope)
{
	if (scope != NULL)
		AioScopeJoin(scope);
}

/*
 * Do entries of all indexes of this table whose keys are enforced come in
 * order, as far as any are collected?  They are inserted together, or else in
 * the order of rows.
 */
static bool
keys_in_order(const AioTableBacklog *table)
{
	bool		result = false;

	for (int i = 0; i < table->nindexes; i++)
	{
		const AioIndexBacklog *backlog = &table->indexes[i];

		if (!backlog->collects || !backlog->batch.unique)
			continue;
		if (!backlog->in_order)
			return false;
		result = true;
	}
	return result;
}

/*
 * Keys that are enforced and grow from row to row need not wait: inserted row
 * by row they are near each other as well, and nobody is kept from the table
 * meanwhile.  Called by the statement itself: if it fails here, nobody can
 * catch that error on the way.
 */
static void
check_order(AioTableBacklog *table, AioScope *scope)
{
	for (int i = 0; i < table->nindexes; i++)
	{
		AioIndexBacklog *backlog = &table->indexes[i];

		if (!backlog->collects || backlog->order_checked ||
			backlog->batch.nentries < ENTRIES_TO_CHECK)
			continue;
		backlog->order_checked = true;
		backlog->in_order = backlog->ops->in_order(&backlog->batch);
	}

	/* what is drained already is not drained again */
	if (keys_in_order(table) && !table->statement->draining)
	{
		join(scope);
		drain(table->statement, DRAIN_ALL);
		for (int i = 0; i < table->nindexes; i++)
		{
			if (table->indexes[i].batch.unique)
			{
				Assert(table->indexes[i].batch.nentries == 0);
				table->indexes[i].collects = false;
			}
		}
	}
	AioSumUpTable(table);
}

/*
 * The entries of one more row have been collected: see whether to drain.
 * Before that, the tasks of the scope in which rows are inserted end: they
 * would hold pins until then.  scope is NULL if there are none.
 */
void
AioBacklogConsider(AioTableBacklog *table, AioScope *scope)
{
	AioStatementBacklog *statement = table->statement;

	Assert(statement->entries_max <= ENTRIES_MAX);

	statement->rows++;
	if (statement->rows % ENTRIES_TO_CHECK == 0)
		check_order(table, scope);
	if (aio_debug_spill)
		AioSpill(statement);
	if (AioSpillMustEnd(statement) || statement->rows >= ENTRIES_MAX ||
		statement->entries_max >= ENTRIES_MAX)
	{
		join(scope);
		drain(statement, DRAIN_ALL);
	}
	else if (AioMemoryNeeded(statement) >= (Size) aio_index_batch_memory * 1024)
	{
		bool		spilled;

		join(scope);
		spilled = AioSpill(statement);
		if (!spilled || statement->bytes > 0 || statement->rows_kept > 0)
			aio_session_stats_data.batches_full++;
		drain(statement, spilled ? DRAIN_MEMORY : DRAIN_ALL);
	}
}
