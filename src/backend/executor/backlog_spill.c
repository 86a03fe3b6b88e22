/*-------------------------------------------------------------------------
 *
 * backlog_spill.c
 *	  Index entries of a backlog that do not fit into its memory.
 *
 * When the memory is used up, the entries of an index can be inserted, and the
 * next ones will go to the same pages; or they can be spilled: upstream's sort
 * takes them and all that follow, writes them to temporary files, and gives
 * them back in index order when the backlog is drained, in portions.  Each page
 * is visited once then.  That pays only if there are few entries for each page,
 * and if the pages do not stay in memory from one batch to the next.  So it is
 * asked over how many pages the entries are spread: keys that grow, or fall, or
 * are those of few pages, are inserted early.  Then it is seen whether there is
 * room for the pages, and whether they are there when the next batch is full.
 *
 * To everybody else a backlog whose entries are spilled is like one with more
 * memory, and is drained when any is.  Keys that are enforced are not spilled:
 * they are inserted in portions of rows (backlog_keys.c).
 *
 * INVARIANT-77: a spilled backlog fails no statement that would succeed without
 * it, as far as that can be known.  What temporary files may take is looked at
 * before it is needed, whoever fills them, and the backlog is drained early if
 * there is too little (temp_room.c).  Files belong to the resource owner of the
 * statement, and sorts to its memory: a subtransaction that begins after it
 * does not end them.
 *
 * Upstream's sort is called on the backend's own stack, by no task, and no task
 * runs meanwhile.  If an error leaves it, or if it were called again before it
 * returns, 'sorting' is set: the backlog is lost then, and so is the statement.
 *
 * Tests: src/test/aio/index/t/010_spill.pl, src/test/aio/sql.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>

#include "aio/index_backlog.h"
#include "aio/read.h"
#include "aio/stats.h"
#include "aio/temp_room.h"
#include "storage/bufmgr.h"
#include "utils/injection_point.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/resowner.h"

/*
 * Memory that a sort should have.  With less, it would have to merge many times
 * over: if there are that many indexes, they are drained early.
 */
#define SORT_MEMORY_MIN	((Size) 1024 * 1024)

/* and what upstream takes in any case */
#define SORT_MEMORY_LEAST	((Size) 64 * 1024)

/* after so many bytes, of sorts or in files, see whether there is room */
#define ROOM_STEP	(1024 * 1024)

/* portions in which spilled entries are drained, in bytes */
#define PORTION_MIN	((Size) 64 * 1024)
#define PORTION_DEBUG	((Size) 4 * 1024)

/* so many indexes are about to be spilled at most */
#define CHOSEN_MAX	256

/* pages that are looked for, to see how much of an index is in memory */
#define PAGES_SAMPLED	64

static Size
budget(void)
{
	return (Size) aio_index_batch_memory * 1024;
}

/* ------------------------------------------------------------------------
 * Whether to spill
 * ------------------------------------------------------------------------
 */

/* Can the entries that are in memory be spilled? */
static bool
may_spill(const AioIndexBacklog *backlog)
{
	return backlog->ops != NULL && backlog->ops->begin_sort != NULL &&
		!backlog->batch.unique && backlog->sort == NULL &&
		backlog->batch.nentries > 0;
}

static Size
entry_bytes(const AioIndexBacklog *backlog)
{
	Size		bytes = 0;

	for (const AioEntryChunk *chunk = backlog->first; chunk; chunk = chunk->next)
		bytes += chunk->used;
	return bytes;
}

/*
 * Would spilling the entries of this index take less than having its pages read
 * once more?  Sets *pages to how many the statement uses, about, and *visited
 * to those of a batch.
 *
 * Inserted now, a batch reads and writes each of these pages.  Spilled, its
 * entries are written and read, once or twice each, in order, at perhaps a
 * quarter of what scattered pages cost.  Nothing is gained either if the index
 * is so large that entries of many batches hardly have a page in common.
 */
static bool
spilling_pays(AioIndexBacklog *backlog, double *pages, double *visited)
{
	AioIndexBatch *batch = &backlog->batch;
	double		n = batch->nentries;
	double		spread = Max(backlog->ops->spread(batch), 1);

	*visited = spread * (1 - exp(-n / spread));

	/* with few entries for each, the next batch goes to other pages */
	*pages = n >= 3 * spread ? spread : RelationGetNumberOfBlocks(batch->index);
	return *visited * BLCKSZ >= 8.0 * entry_bytes(backlog) && n >= spread / 64;
}

/*
 * About how many pages of this index are in memory, of so many that are used?
 * Of which these are is not known, so if they are few, all are taken for there.
 */
static double
pages_here(Relation index, double pages)
{
	BlockNumber nblocks = RelationGetNumberOfBlocks(index);
	int			n = Min(nblocks, PAGES_SAMPLED);
	int			here = 0;

	if (pages < nblocks / 2)
		return pages;
	for (int i = 0; i < n; i++)
		here += AioPageIsHere(index, (BlockNumber) ((uint64) nblocks * i / n));
	return pages * here / Max(n, 1);
}

/*
 * Choose the indexes to spill.  Returns how many these are, and sets *nothers
 * to how many are to be drained.
 */
static int
choose(AioStatementBacklog *statement, AioIndexBacklog **chosen, int *nothers)
{
	MemoryContext context = AllocSetContextCreate(statement->context,
												  "index backlog spread",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	double		pages = 0;
	double		expected = 0;
	double		here = 0;
	int			n = 0;

	*nothers = 0;
	for (AioTableBacklog *table = statement->tables; table; table = table->next)
	{
		for (int i = 0; i < table->nindexes; i++)
		{
			AioIndexBacklog *backlog = &table->indexes[i];
			double		used;
			double		visited;

			if (backlog->batch.nentries == 0)
				continue;
			if (n < CHOSEN_MAX && may_spill(backlog) &&
				(aio_debug_spill || spilling_pays(backlog, &used, &visited)))
			{
				chosen[n++] = backlog;
				if (!aio_debug_spill)
				{
					pages += used;
					if (backlog->drained_early)
					{
						expected += Min(visited, used);
						here += Min(pages_here(backlog->batch.index, used),
									Min(visited, used));
					}
				}
			}
			else
				(*nothers)++;
			MemoryContextReset(context);
		}
	}
	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);

	/*
	 * Do they stay in memory from one batch to the next?  If they take no
	 * more than half of it they should, and if so, those of the last batch
	 * are here.
	 */
	if (!aio_debug_spill && statement->nsorts == 0 &&
		pages <= NBuffers / 2 && here >= expected * 3 / 4)
	{
		for (int i = 0; i < n; i++)
			chosen[i]->drained_early = true;
		return 0;
	}
	return n;
}

/* ------------------------------------------------------------------------
 * Spilling
 * ------------------------------------------------------------------------
 */

/*
 * Upstream's sort is called from here to leave_sort(), with the statement's
 * resource owner.  Returns that which is the current one now.
 */
static inline ResourceOwner
enter_sort(AioStatementBacklog *statement)
{
	ResourceOwner save = CurrentResourceOwner;

	Assert(!statement->sorting);
	statement->sorting = true;
	CurrentResourceOwner = statement->owner;
	return save;
}

static inline void
leave_sort(AioStatementBacklog *statement, ResourceOwner save)
{
	CurrentResourceOwner = save;
	statement->sorting = false;
}

/*
 * Give an entry to the sort of its index.  The tuple, which is about that row,
 * is copied.  Raises an error if a temporary file cannot be written, or what
 * AioCheckDrains() raises.
 */
void
AioSpillEntry(AioIndexBacklog *backlog, IndexTuple tuple, ItemPointer tid)
{
	AioStatementBacklog *statement = backlog->table->statement;
	TuplesortPublic *sort = TuplesortstateGetPublic(backlog->sort);
	Size		bytes = MAXALIGN(IndexTupleSize(tuple));
	ResourceOwner save;
	IndexTuple	copy;
	SortTuple	entry;

	/* it may be a sort that has been left half way */
	AioCheckDrains(statement);
	Assert(!backlog->sorted);
	save = enter_sort(statement);
	copy = MemoryContextAlloc(sort->tuplecontext, bytes);
	memcpy(copy, tuple, IndexTupleSize(tuple));
	copy->t_tid = *tid;
	entry.tuple = copy;
	entry.datum1 = index_getattr(copy, 1, backlog->batch.desc, &entry.isnull1);
	tuplesort_puttuple_common(backlog->sort, &entry,
							  sort->sortKeys != NULL &&
							  sort->sortKeys->abbrev_converter != NULL && !entry.isnull1,
							  bytes);
	leave_sort(statement, save);

	backlog->counts.spilled += bytes;
	aio_session_stats_data.bytes_spilled += bytes;
	backlog->sort_bytes += bytes + sizeof(SortTuple);
	statement->sort_bytes += bytes + sizeof(SortTuple);
}

/* Have a sort take the entries of an index from now on, and those in memory. */
static void
begin_spill(AioIndexBacklog *backlog, Size memory)
{
	AioStatementBacklog *statement = backlog->table->statement;
	AioIndexBatch *batch = &backlog->batch;
	AioEntryPlace place = {backlog->first, 0};
	MemoryContext old = MemoryContextSwitchTo(statement->context);
	ResourceOwner save = enter_sort(statement);

	Assert(may_spill(backlog));
	backlog->sort = backlog->ops->begin_sort(batch, memory / 1024);
	leave_sort(statement, save);
	MemoryContextSwitchTo(old);
	backlog->sorted = false;
	backlog->sort_memory = memory;
	backlog->sort_bytes = 0;
	statement->sort_memory += memory;
	statement->nsorts++;

	for (; batch->nentries > 0; batch->nentries--)
	{
		IndexTuple	tuple = AioNextEntry(backlog, &place);

		while (place.chunk != backlog->first)
			AioFreeFirstChunk(backlog);
		AioSpillEntry(backlog, tuple, &tuple->t_tid);
	}
	AioFreeEntries(backlog);
}

/*
 * The memory of a backlog is used up: spill those indexes for which that pays.
 * Returns whether any are spilled now, such that it is enough to drain the
 * others.
 */
bool
AioSpill(AioStatementBacklog *statement)
{
	AioIndexBacklog *chosen[CHOSEN_MAX];
	Size		most = budget() / 8 * 7;
	Size		least = aio_debug_spill ? SORT_MEMORY_LEAST : SORT_MEMORY_MIN;
	Size		memory;
	int			nothers;
	int			n;

	if (statement->failed || statement->draining || statement->sorting)
		return false;
	if (aio_debug_spill)
		most = Max(most, statement->sort_memory + CHOSEN_MAX * SORT_MEMORY_LEAST);
	/* somebody may have lowered the limit */
	if (statement->sort_memory > most)
		return false;

	n = choose(statement, chosen, &nothers);
	if (n > 0)
	{
		/* those that are drained each time need some, too */
		memory = (most - statement->sort_memory) / (n + nothers);
		if (memory < least || !AioTempHasRoom(budget()))
			return false;
		if (aio_debug_spill)
			memory = least;
		for (int i = 0; i < n; i++)
			begin_spill(chosen[i], memory);
		INJECTION_POINT("aio-spill", NULL);
	}
	Assert(statement->sort_memory <= most);
	return statement->nsorts > 0;
}

/*
 * Have sorts been given as much as they should be?  They merge at most twice,
 * and leave room in temporary files, which others may fill while they get
 * little: the statement's own sorts, transition tables, and functions.
 */
bool
AioSpillMustEnd(AioStatementBacklog *statement)
{
	uint64		temp_bytes;

	if (statement->nsorts == 0)
		return false;
	temp_bytes = AioTempBytes();
	/* files end, too */
	if (temp_bytes < statement->temp_bytes_checked)
		statement->temp_bytes_checked = temp_bytes;
	if (statement->sort_bytes - statement->sort_bytes_checked < ROOM_STEP &&
		temp_bytes - statement->temp_bytes_checked < ROOM_STEP)
		return false;
	statement->sort_bytes_checked = statement->sort_bytes;
	statement->temp_bytes_checked = temp_bytes;
	for (AioTableBacklog *table = statement->tables; table; table = table->next)
	{
		for (int i = 0; i < table->nindexes; i++)
		{
			const AioIndexBacklog *backlog = &table->indexes[i];
			uint64		order;

			if (backlog->sort == NULL)
				continue;
			order = tuplesort_merge_order(backlog->sort_memory);
			if (backlog->sort_bytes > backlog->sort_memory * order * order)
				return true;
		}
	}
	return !AioTempHasRoom(budget());
}

/* ------------------------------------------------------------------------
 * Draining
 * ------------------------------------------------------------------------
 */

/*
 * The next portion of the entries of a spilled index in its order, in the
 * current memory context: they are the index's batch now.  NULL if there are no
 * more.
 */
AioEntry *
AioNextSpilled(AioIndexBacklog *backlog)
{
	AioStatementBacklog *statement = backlog->table->statement;
	Size		size = aio_debug_spill ? PORTION_DEBUG : Max(budget() / 16, PORTION_MIN);
	char	   *tuples = MemoryContextAllocHuge(CurrentMemoryContext, size + BLCKSZ);
	Size		used = 0;
	uint32		max = size / 32;
	uint32		n = 0;
	AioEntry   *entries = MemoryContextAllocHuge(CurrentMemoryContext,
												 sizeof(AioEntry) * max);
	ResourceOwner save = enter_sort(statement);

	if (!backlog->sorted)
		tuplesort_performsort(backlog->sort);
	backlog->sorted = true;
	while (used < size)
	{
		IndexTuple	tuple = tuplesort_getindextuple(backlog->sort, true);
		Size		bytes;

		if (tuple == NULL)
			break;
		if (n == max)
		{
			max *= 2;
			entries = repalloc_huge(entries, sizeof(AioEntry) * max);
		}
		bytes = IndexTupleSize(tuple);
		Assert(bytes <= BLCKSZ);
		entries[n].key = (Datum) 0;
		entries[n].tuple = memcpy(tuples + used, tuple, bytes);
		used += MAXALIGN(bytes);
		n++;
	}
	leave_sort(statement, save);
	backlog->batch.nentries = n;
	return n > 0 ? entries : NULL;
}

/* All entries of a spilled index have been inserted: close its files. */
void
AioEndSpill(AioIndexBacklog *backlog)
{
	AioStatementBacklog *statement = backlog->table->statement;
	ResourceOwner save = enter_sort(statement);

	tuplesort_end(backlog->sort);
	leave_sort(statement, save);
	backlog->sort = NULL;
	Assert(statement->nsorts > 0);
	statement->nsorts--;
	statement->sort_memory -= backlog->sort_memory;
	statement->sort_bytes -= backlog->sort_bytes;
	statement->sort_bytes_checked = statement->sort_bytes;
	backlog->sort_memory = 0;
	backlog->sort_bytes = 0;
	backlog->batch.nentries = 0;
}
