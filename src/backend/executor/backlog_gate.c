/*-------------------------------------------------------------------------
 *
 * backlog_gate.c
 *	  Whoever looks into an index finds what this transaction has inserted.
 *
 * A query drains what it could see before it begins (backlog_drain.c).  But
 * indexes are looked into without one as well: a subscription's worker searches
 * for the rows that it changes, foreign keys are checked, and functions written
 * in C, of extensions, of triggers and our own, begin scans or read pages.  So
 * there are gates at the doors that all of these take.
 *
 * Whoever searches calls index_rescan() before anything else.  He has a
 * snapshot, which tells whether the rows of a statement that has entries for
 * the index could be seen.  A scan that a probe makes ahead of need decides
 * nothing (INVARIANT-61), and runs in a task, in which nobody else searches.
 *
 * Whoever reads pages by himself, as amcheck and pgstattuple do, opens the
 * index before.  Who opens it to insert (ExecOpenIndices()), to describe it or
 * to search it (the planner, the executor's scans) is named by a seam, and
 * calls AioOpenIndex(); everybody else is taken for one who looks.  While a
 * page of the table, or of an index whose entries are collected, is locked,
 * upstream opens indexes only to describe them, and a drain could meet that
 * page.
 *
 * Rows that are kept back are not even in the heap.  Whoever opens their table
 * finds them there.
 *
 * INVARIANT-91: an index, and its table, stay open while entries for it wait,
 * so a relcache entry to which a backlog points is neither freed nor another
 * relation's.  Whoever closes a table's indexes has them drained before.
 *
 * If a drain fails here, whoever opens or searches the index gets the error,
 * and the statement fails in any case (INVARIANT-34).
 *
 * Tests: src/test/aio/index/t/019_index_gate.pl,
 *		  src/test/aio/index/t/003_apply.pl.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/relscan.h"
#include "aio/index_backlog.h"
#include "aio/io_internal.h"
#include "aio/stats.h"
#include "utils/rel.h"

/* it is opened by AioOpenQuietly() */
static Oid	opening = InvalidOid;

/* Does an index lack entries that a statement has, or has lost? */
static bool
lacks_entries(AioStatementBacklog *statement, Oid indexid)
{
	AioIndexBacklog *backlog;

	/* what it inserts at the moment it does not look for */
	if (statement->draining || !AioStatementIsAlive(statement))
		return false;
	for (backlog = AioFindIndexBacklogs(statement, indexid);
		 backlog != NULL; backlog = backlog->same_index)
	{
		if (AioIndexLacksEntries(backlog) || statement->failed)
			return true;
	}
	return false;
}

/*
 * An index is about to be searched.
 */
void
AioDrainForSearch(IndexScanDesc scan)
{
	for (AioStatementBacklog *statement = AioNextStatement(NULL);
		 statement != NULL; statement = AioNextStatement(statement))
	{
		if (AioStatementIsVisible(statement, scan->xs_snapshot) &&
			lacks_entries(statement, RelationGetRelid(scan->indexRelation)))
		{
			aio_session_stats_data.batches_before_query++;
			AioDrainStatement(statement->estate);
		}
	}
}

/* Does a statement keep rows of a table back? */
static bool
keeps_rows_of(const AioStatementBacklog *statement, Oid relid)
{
	if (statement->rows_kept == 0 || statement->failed || statement->draining ||
		!AioStatementIsAlive(statement))
		return false;
	for (AioTableBacklog *table = statement->tables; table; table = table->next)
	{
		if (table->rows_kept != NULL &&
			RelationGetRelid(table->rri->ri_RelationDesc) == relid)
			return true;
	}
	return false;
}

/*
 * Is a page locked that a drain could meet?  An operator class may call user
 * code with a page of its index locked, but entries of such an index are not
 * collected.
 */
bool
AioPageIsInTheWay(const AioStatementBacklog *statement)
{
	if (!AioHoldsPageLock())
		return false;
	for (AioTableBacklog *table = statement->tables; table; table = table->next)
	{
		/* no longer open */
		if (!table->collects && statement->rows_kept == 0)
			continue;
		if (AioHoldsPageLockOf(&table->rri->ri_RelationDesc->rd_locator))
			return true;
		for (int i = 0; i < table->nindexes; i++)
		{
			const AioIndexBacklog *backlog = &table->indexes[i];

			if ((backlog->collects || statement->rows_kept > 0) &&
				backlog->batch.index != NULL &&
				AioHoldsPageLockOf(&backlog->batch.index->rd_locator))
				return true;
		}
	}
	return false;
}

/*
 * A relation has been opened, which was open before.
 */
void
AioDrainOpened(Relation rel)
{
	Oid			relid = RelationGetRelid(rel);
	bool		is_index = rel->rd_rel->relkind == RELKIND_INDEX;

	if ((!is_index && rel->rd_rel->relkind != RELKIND_RELATION) ||
		relid == opening)
		return;
	for (AioStatementBacklog *statement = AioNextStatement(NULL);
		 statement != NULL; statement = AioNextStatement(statement))
	{
		if (AioPageIsInTheWay(statement))
			continue;
		if (is_index && lacks_entries(statement, relid))
		{
			aio_session_stats_data.batches_before_query++;
			AioDrainStatement(statement->estate);
		}
		else if (!is_index && keeps_rows_of(statement, relid))
			AioFlushKeptRows(statement);
	}
}

/*
 * index_open(), or a function like it, for one who does not look into the
 * relation, or does so only by searches.
 */
Relation
AioOpenQuietly(Relation (*open) (Oid, LOCKMODE), Oid relid, LOCKMODE lockmode)
{
	Oid			outer = opening;
	Relation	rel = NULL;

	if (!aio_backlogs_exist)
		return open(relid, lockmode);
	PG_TRY();
	{
		opening = relid;
		rel = open(relid, lockmode);
	}
	PG_FINALLY();
	{
		opening = outer;
	}
	PG_END_TRY();
	return rel;
}

/* The indexes of a result relation are going to be closed. */
void
AioDrainBeforeClosing(ResultRelInfo *rri)
{
	for (AioStatementBacklog *statement = AioNextStatement(NULL);
		 statement != NULL; statement = AioNextStatement(statement))
	{
		AioTableBacklog *table = AioFindTableBacklog(statement, rri);

		if (table == NULL || statement->failed || statement->draining ||
			!AioStatementIsAlive(statement))
			continue;
		for (int i = 0; i < table->nindexes; i++)
		{
			if (AioIndexLacksEntries(&table->indexes[i]))
			{
				AioDrainStatement(statement->estate);
				break;
			}
		}
	}
}
