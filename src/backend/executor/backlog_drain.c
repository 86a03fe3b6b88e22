/*-------------------------------------------------------------------------
 *
 * backlog_drain.c
 *	  When a backlog is inserted, and how.
 *
 * A backlog is drained when its memory is used up, when the statement's rows
 * are in, and before a query could see them (INVARIANT-32).  One index after
 * the other, the access method sorts the entries and inserts them, in a scope
 * of its own.  Then keys that may be duplicates are checked again.
 *
 * INVARIANT-34: a drain that failed fails the statement.  A function that the
 * statement calls, and whose query caused the drain, may catch the error; then
 * the statement fails at its end.
 *
 * INVARIANT-35: the error raised is that of the first row that fails.  Nothing
 * that is collected can fail for what is in it.  Keys that are enforced are
 * inserted first, with a check that neither waits nor fails
 * (backlog_recheck.c).  guard.c sees to that when a later row fails before.
 *
 * Tests: src/test/aio/sql, src/test/aio/index/t/001_backlog.pl,
 *		  src/test/aio/index/t/002_random.pl.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "aio/index_backlog.h"
#include "aio/index_insert.h"
#include "aio/pgstat_aio.h"
#include "aio/stats.h"
#include "storage/aio.h"
#include "utils/injection_point.h"
#include "utils/memutils.h"
#include "utils/rel.h"

/* after so many entries their order is checked */
#define ENTRIES_TO_CHECK	512

/* entries of one index, whatever the memory allows */
#define ENTRIES_MAX	(PG_INT32_MAX / 2)

/* AioScopeBody: insert the entries of one index. */
static void
insert_sorted(AioScope *scope, void *arg)
{
	AioIndexBacklog *backlog = arg;
	AioIndexBatch *batch = &backlog->batch;
	const AioIndexAmOps *ops = backlog->ops;
	AioEntry   *entries = ops->sort != NULL ? ops->sort(batch) : NULL;

	if (io_method == IOMETHOD_SYNC || !AioTasksCanSuspend() ||
		AioTaskLimit() < 2)
		scope = NULL;
	ops->drain(batch, entries, scope);
}

/* Insert the entries of one index, and count what that took. */
static void
drain_index(AioIndexBacklog *backlog)
{
	AioIndexBatch *batch = &backlog->batch;
	AioBacklogCounts *counts = &backlog->counts;
	uint64		leaf_visits = aio_session_stats_data.leaf_visits;
	uint64		watched = aio_reads_watched;
	uint32		nentries = batch->nentries;
	PgStat_Counter reads = 0;
	AioIndexStats *stats;
	MemoryContext context;
	MemoryContext old;

	if (batch->nentries == 0)
		return;

	Assert(nentries <= counts->entries);
	Assert(backlog->table->statement->entries_max > 0);

	stats = AioPendingIndexStats(batch->index);
	if (stats != NULL)
		reads = stats->reads;
	AioWatchReads(&batch->index->rd_locator);

	counts->batches++;
	counts->suspended -= aio_task_counters.tasks_suspended;

	context = AllocSetContextCreate(batch->context, "index backlog drain",
									ALLOCSET_DEFAULT_SIZES);
	old = MemoryContextSwitchTo(context);
	AioScopeRun(insert_sorted, backlog, AioIsDataError);
	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);
	AioFreeEntries(backlog);

	leaf_visits = aio_session_stats_data.leaf_visits - leaf_visits;
	counts->leaf_visits += leaf_visits;
	AioWatchReads(NULL);
	stats = AioPendingIndexStats(batch->index);
	if (stats != NULL)
	{
		stats->entries += nentries;
		stats->batches++;
		stats->leaf_visits += leaf_visits;
		/* those of tasks have been counted, but there are others */
		stats->reads = reads + aio_reads_watched - watched;
	}
	counts->suspended += aio_task_counters.tasks_suspended;
}

/* Insert all that a statement has collected. */
static void
drain(AioStatementBacklog *statement)
{
	if (statement->failed)
		ereport(ERROR,
				(errcode(ERRCODE_IN_FAILED_SQL_TRANSACTION),
				 errmsg("index entries of rows inserted earlier by this statement are missing"),
				 errdetail("An error that occurred while they were being inserted was caught by a function that the statement called.")));
	if (AioBacklogIsEmpty(statement) || statement->draining)
		return;

	aio_session_stats_data.batches++;
	if (statement->rows < AIO_ROWS_WORTH_WHILE)
		statement->short_drains++;
	else
		statement->short_drains = 0;

	Assert(AioStatementIsAlive(statement));
	PG_TRY();
	{
		statement->draining = true;
		INJECTION_POINT("aio-drain", NULL);
		AioFlushKeptRows(statement);
		for (AioTableBacklog *table = statement->tables; table; table = table->next)
		{
			for (int i = 0; i < table->nindexes; i++)
				drain_index(&table->indexes[i]);
		}
		AioCheckConflicts(statement);
		statement->draining = false;
	}
	PG_CATCH();
	{
		statement->draining = false;
		statement->failed = true;
		PG_RE_THROW();
	}
	PG_END_TRY();
	Assert(statement->bytes == 0);
	Assert(statement->rows_kept == 0 && statement->nconflicts == 0);
	statement->rows = 0;
	statement->entries_max = 0;
	statement->keys = false;
}

/*
 * A statement, or one of its parts that insert rows, has come to its end:
 * insert all that it has collected.
 *
 * If a row that was kept back fails, the guard calls this again, for the rows
 * before it.
 */
void
AioDrainStatement(EState *estate)
{
	AioStatementBacklog *statement = AioFindStatement(estate);

	if (statement == NULL)
		return;
	if (!statement->draining && !statement->failed)
		AioFlushKeptRows(statement);
	drain(statement);
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
			(snapshot == NULL || snapshot->snapshot_type != SNAPSHOT_MVCC ||
			 snapshot->curcid > statement->cid || statement->frozen) &&
			AioStatementIsAlive(statement))
		{
			aio_session_stats_data.batches_before_query++;
			drain(statement);
		}
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
 * Keys that grow from row to row are cheapest to insert row by row.  Called by
 * the statement itself: if it fails here, nobody can catch that error on the
 * way.
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
		if (backlog->ops->in_order(&backlog->batch))
		{
			join(scope);
			drain_index(backlog);
			backlog->collects = false;
		}
	}

	AioSumUpTable(table);

	/* do not go on for long if there is a duplicate */
	if (table->statement->nconflicts > 0)
		drain(table->statement);
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
	if (AioMemoryNeeded(statement) >= (Size) aio_index_batch_memory * 1024 ||
		statement->entries_max >= ENTRIES_MAX)
	{
		join(scope);
		aio_session_stats_data.batches_full++;
		drain(statement);
	}
}
