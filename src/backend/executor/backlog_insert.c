/*-------------------------------------------------------------------------
 *
 * backlog_insert.c
 *	  Insert the entries of one index of a backlog, in the order of the index.
 *
 * The access method sorts the entries, and inserts them in a scope of its own.
 * Entries, sorted or not, are the backlog's until AioFreeEntries().
 *
 * Tests: src/test/aio/sql, src/test/aio/index/t/001_backlog.pl.
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
#include "utils/memutils.h"
#include "utils/rel.h"

/* what is inserted in a scope */
typedef struct Insertion
{
	AioIndexBacklog *backlog;
	AioEntry   *entries;
} Insertion;

/*
 * The entries of the index's batch in its order, in the current memory context;
 * or NULL if the access method does not sort them.
 */
AioEntry *
AioSortEntries(AioIndexBacklog *backlog)
{
	return backlog->ops->sort != NULL ? backlog->ops->sort(&backlog->batch) : NULL;
}

/* AioScopeBody */
static void
insert_entries(AioScope *scope, void *arg)
{
	Insertion  *insertion = arg;

	if (io_method == IOMETHOD_SYNC || !AioTasksCanSuspend() ||
		AioTaskLimit() < 2)
		scope = NULL;
	insertion->backlog->ops->drain(&insertion->backlog->batch, insertion->entries,
								   scope);
}

/*
 * Insert the entries of the index's batch, which AioSortEntries() has sorted,
 * and count what that took.
 */
void
AioInsertSorted(AioIndexBacklog *backlog, AioEntry *entries)
{
	AioIndexBatch *batch = &backlog->batch;
	AioBacklogCounts *counts = &backlog->counts;
	Insertion	insertion = {.backlog = backlog,.entries = entries};
	uint64		leaf_visits = aio_session_stats_data.leaf_visits;
	uint64		watched = aio_reads_watched;
	uint32		nentries = batch->nentries;
	PgStat_Counter reads = 0;
	AioIndexStats *stats;
	MemoryContext context;
	MemoryContext old;

	if (nentries == 0)
		return;

	Assert(nentries <= counts->entries);
	Assert(backlog->table->statement->entries_max > 0 || backlog->sort != NULL);

	stats = AioPendingIndexStats(batch->index);
	if (stats != NULL)
		reads = stats->reads;
	AioWatchReads(&batch->index->rd_locator);

	counts->batches++;
	counts->suspended -= aio_task_counters.tasks_suspended;

	context = AllocSetContextCreate(batch->context, "index backlog drain",
									ALLOCSET_DEFAULT_SIZES);
	old = MemoryContextSwitchTo(context);

	/*
	 * A query that a search in an index has called runs with a page locked,
	 * where nothing may be suspended.
	 */
	if (AioScopeAllowed())
		AioScopeRun(insert_entries, &insertion, AioIsDataError);
	else
		insert_entries(NULL, &insertion);
	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);

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

/* Insert all entries of an index that are spilled, and free them. */
static void
drain_spilled(AioIndexBacklog *backlog)
{
	AioEntry   *entries;

	while ((entries = AioNextSpilled(backlog)) != NULL)
	{
		AioInsertSorted(backlog, entries);
		MemoryContextReset(CurrentMemoryContext);
	}
	AioEndSpill(backlog);
}

/* Sort and insert all entries of one index, and free them. */
void
AioDrainIndex(AioIndexBacklog *backlog)
{
	MemoryContext context;
	MemoryContext old;

	if (backlog->batch.nentries == 0 && backlog->sort == NULL)
		return;
	context = AllocSetContextCreate(backlog->batch.context, "index backlog sort",
									ALLOCSET_DEFAULT_SIZES);
	old = MemoryContextSwitchTo(context);
	if (backlog->sort != NULL)
		drain_spilled(backlog);
	else
	{
		AioInsertSorted(backlog, AioSortEntries(backlog));
		AioFreeEntries(backlog);
	}
	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);
}
