/*-------------------------------------------------------------------------
 *
 * gin_drain.c
 *	  Collect the keys of a GIN index, and insert each of them once.
 *
 * Keys are extracted when the row is inserted, and collected as upstream does
 * when it builds an index: for each key the rows that have it.  So a key that
 * many rows share is searched for once, and its page is written once.
 *
 * This is what the pending list of an index with fastupdate is for, too.  What
 * fits into such a list (gin_pending_list_limit) is kept as the list's tuples
 * at first, and if no more comes, is put there.  A larger batch would have the
 * list emptied by the statement itself, maybe again and again, so it goes past
 * the list.
 *
 * Upstream collects keys in a tree, and to find a place in one that is larger
 * than the processor's caches takes longer than to insert the key.  So there
 * are many small trees, runs, which are merged in the end.
 *
 * Keys that belong to one leaf are a task, which puts them there (gin_fill.c):
 * which other pages that takes, of posting trees, is known only on the way.
 * The lowest pages above the leaves, which are copied one by one, tell which
 * keys these are.  That is a forecast: by the time the task runs, a leaf may
 * have been split.
 *
 * Tests: src/test/aio/sql, src/test/aio/index/t.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "built_in_ams.h"
#include "gin_fill.h"
#include "lib/binaryheap.h"
#include "miscadmin.h"
#include "port/pg_bitutils.h"
#include "storage/bufmgr.h"
#include "utils/memutils.h"
#include "utils/rel.h"

/*
 * Keys larger than that may be too large for a page, which has to be found out
 * when their row is inserted.  Upstream's limit is larger.
 */
#define KEY_BYTES_MAX	(GinMaxItemSize / 2)

/* what each palloc() takes besides, about */
#define ALLOC_CHUNK_BYTES	16

/* The size of a run, in bytes: less than a processor's second-level cache. */
#define RUN_BYTES	((Size) 1024 * 1024)

/* A key with more rows is inserted run by run: they would be copied. */
#define MERGED_ITEMS_MAX	(RUN_BYTES / sizeof(ItemPointerData))

/*
 * Keys of a task, at most, and rows of all but the last of them; more than a
 * leaf has.
 */
#define TASK_KEYS_MAX	1024
#define TASK_ITEMS_MAX	MERGED_ITEMS_MAX

typedef struct GinRun
{
	BuildAccumulator accum;
	AioGinKey	next;			/* while runs are merged */
} GinRun;

/* What a statement has collected; batch->own. */
typedef struct AioGinBacklog
{
	MemoryContext context;		/* of the collected keys */
	MemoryContext row_context;	/* of those of one row */
	GinState	ginstate;
	int32		natts;
	List	   *runs;			/* GinRun, the current one is the last */
	GinRun	   *current;
	Size		full_bytes;		/* of runs but the current one */
	Size		counted;		/* bytes, by AioBatchAddOwn() */
	/* of an index with fastupdate, as long as the pending list would do */
	bool		listed;
	GinTupleCollector list;		/* of all rows */
	Size		list_bytes_max;
} AioGinBacklog;

typedef struct GinDrain
{
	GinState   *ginstate;
	AioScope   *scope;			/* or NULL */
	AioTaskOptions options;
	/* the copy of a page above the leaves, if there is one */
	Page		page;
	bool		copied;
	int			height;			/* of the tree, without leaves */
	OffsetNumber child;			/* on that page, of the keys at hand */
	bool		bounded;		/* has that leaf a last key? */
	AioGinKey	last;
	/* the keys of the next task */
	AioGinKey  *keys;
	uint32		nkeys;
	uint64		nitems;
} GinDrain;

/* What a task needs. */
typedef struct GinTask
{
	GinState   *ginstate;
	AioGinKey  *keys;
	uint32		nkeys;
} GinTask;

/* ------------------------------------------------------------------------
 * Collecting
 * ------------------------------------------------------------------------
 */

static void
begin_run(AioGinBacklog *gin)
{
	GinRun	   *run = palloc0(sizeof(GinRun));

	if (gin->current != NULL)
		gin->full_bytes += gin->current->accum.allocatedMemory;
	ginInitBA(&run->accum);
	run->accum.ginstate = &gin->ginstate;
	gin->runs = lappend(gin->runs, run);
	gin->current = run;
}

static AioGinBacklog *
make_backlog(Relation index, MemoryContext parent)
{
	MemoryContext context = AllocSetContextCreate(parent, "index backlog of GIN keys",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	AioGinBacklog *gin = palloc0(sizeof(AioGinBacklog));

	gin->context = context;
	gin->row_context = AllocSetContextCreate(context, "index backlog of GIN keys, one row",
											 ALLOCSET_DEFAULT_SIZES);
	initGinState(&gin->ginstate, index);
	gin->natts = gin->ginstate.origTupdesc->natts;
	gin->listed = GinGetUseFastUpdate(index);
	if (gin->listed)
		gin->list_bytes_max = GinGetPendingListCleanupSize(index) * (Size) 1024;
	else
		begin_run(gin);
	MemoryContextSwitchTo(old);
	return gin;
}

/* Is none of the keys too large? */
static bool
keys_fit(GinState *ginstate, OffsetNumber attnum, const Datum *keys,
		 const GinNullCategory *categories, int32 nkeys)
{
	/* keys have a column of their own in each index tuple */
	TupleDesc	desc = ginstate->oneCol ? ginstate->origTupdesc :
		ginstate->tupdesc[attnum - 1];
	CompactAttribute *att = TupleDescCompactAttr(desc, ginstate->oneCol ? 0 : 1);

	if (att->attlen != -1)
		return att->attlen > 0 && att->attlen <= KEY_BYTES_MAX;
	for (int32 i = 0; i < nkeys; i++)
	{
		if (categories[i] == GIN_CAT_NORM_KEY &&
			(VARATT_IS_EXTERNAL(DatumGetPointer(keys[i])) ||
			 VARSIZE_ANY(DatumGetPointer(keys[i])) > KEY_BYTES_MAX))
			return false;
	}
	return true;
}

/* Collect keys of one column of a row, in the current memory context. */
static void
add_keys(AioGinBacklog *gin, ItemPointerData tid, OffsetNumber attnum,
		 Datum *keys, GinNullCategory *categories, int32 nkeys)
{
	ginInsertBAEntries(&gin->current->accum, &tid, attnum, keys, categories, nkeys);
}

/* Keep keys as tuples of the pending list. */
static void
list_keys(AioGinBacklog *gin, ItemPointerData tid, OffsetNumber attnum,
		  const Datum *keys, const GinNullCategory *categories, int32 nkeys)
{
	GinTupleCollector *list = &gin->list;

	if (list->ntuples + nkeys > list->lentuples)
	{
		list->lentuples = pg_nextpower2_32(Max(1024, list->ntuples + nkeys));
		list->tuples = list->tuples == NULL ?
			palloc_array(IndexTuple, list->lentuples) :
			repalloc_array(list->tuples, IndexTuple, list->lentuples);
	}
	for (int32 i = 0; i < nkeys; i++)
	{
		IndexTuple	tuple = GinFormTuple(&gin->ginstate, attnum, keys[i],
										 categories[i], NULL, 0, 0, true);

		tuple->t_tid = tid;
		list->tuples[list->ntuples++] = tuple;
		list->sumsize += IndexTupleSize(tuple);
	}
}

/* The bytes that the kept tuples take in the pending list. */
static Size
list_bytes(const GinTupleCollector *list)
{
	return list->sumsize + list->ntuples * sizeof(ItemIdData);
}

/* The bytes of memory that the collected keys take. */
static Size
collected_bytes(const AioGinBacklog *gin)
{
	if (gin->listed)
		return gin->list.sumsize +
			gin->list.ntuples * (sizeof(IndexTuple) + ALLOC_CHUNK_BYTES);
	return gin->full_bytes + gin->current->accum.allocatedMemory;
}

/* Have the bytes counted that have been taken by one more row. */
static void
count_row(AioIndexBatch *batch, AioGinBacklog *gin)
{
	Size		bytes = collected_bytes(gin);
	Size		more = bytes > gin->counted ? bytes - gin->counted : 0;

	/* there are fewer bytes when keys have left the list */
	gin->counted += more;
	AioBatchAddOwn(batch, more);
}

/* The end of the kept tuples of a row, which begin with a given one. */
static uint32
end_of_row(const GinTupleCollector *list, uint32 first)
{
	uint32		end = first + 1;

	while (end < list->ntuples &&
		   ItemPointerEquals(&list->tuples[end]->t_tid, &list->tuples[first]->t_tid))
		end++;
	return end;
}

/* There are too many tuples for the pending list: collect their keys. */
static void
leave_list(AioGinBacklog *gin)
{
	GinTupleCollector *list = &gin->list;
	Datum	   *keys = palloc_array(Datum, list->ntuples);
	GinNullCategory *categories = palloc_array(GinNullCategory, list->ntuples);
	uint32		end;

	begin_run(gin);
	for (uint32 first = 0; first < list->ntuples; first = end)
	{
		OffsetNumber attnum = gintuple_get_attrnum(&gin->ginstate, list->tuples[first]);

		CHECK_FOR_INTERRUPTS();
		end = end_of_row(list, first);
		for (uint32 i = first; i < end; i++)
		{
			if (gintuple_get_attrnum(&gin->ginstate, list->tuples[i]) != attnum)
			{
				end = i;
				break;
			}
			keys[i] = gintuple_get_key(&gin->ginstate, list->tuples[i], &categories[i]);
		}
		if (gin->current->accum.allocatedMemory >= RUN_BYTES)
			begin_run(gin);
		add_keys(gin, list->tuples[first]->t_tid, attnum, &keys[first],
				 &categories[first], end - first);
	}
	for (uint32 i = 0; i < list->ntuples; i++)
		pfree(list->tuples[i]);
	pfree(list->tuples);
	pfree(keys);
	pfree(categories);
	memset(list, 0, sizeof(GinTupleCollector));
	gin->listed = false;
}

/*
 * AioIndexAmOps.collect: collect the keys of a row, in batch->own, unless one
 * of them is too large.
 */
bool
AioCollectGin(AioIndexBatch *batch, const AioIndexRow *row,
			  const Datum *values, const bool *isnull)
{
	AioGinBacklog *g = batch->own;
	Datum	   *keys[INDEX_MAX_KEYS];
	GinNullCategory *categories[INDEX_MAX_KEYS];
	int32		nkeys[INDEX_MAX_KEYS];
	MemoryContext old;
	bool		fit = true;

	if (g == NULL)
		g = batch->own = make_backlog(batch->index, batch->context);
	Assert(g->natts <= INDEX_MAX_KEYS);

	old = MemoryContextSwitchTo(g->row_context);
	for (int i = 0; i < g->natts && fit; i++)
	{
		keys[i] = ginExtractEntries(&g->ginstate, i + 1, values[i], isnull[i],
									&nkeys[i], &categories[i]);
		fit = keys_fit(&g->ginstate, i + 1, keys[i], categories[i], nkeys[i]);
	}
	if (fit)
	{
		MemoryContextSwitchTo(g->context);
		if (g->listed && list_bytes(&g->list) > g->list_bytes_max)
			leave_list(g);
		if (!g->listed && g->current->accum.allocatedMemory >= RUN_BYTES)
			begin_run(g);
		for (int i = 0; i < g->natts; i++)
		{
			if (g->listed)
				list_keys(g, row->tid, i + 1, keys[i], categories[i], nkeys[i]);
			else
				add_keys(g, row->tid, i + 1, keys[i], categories[i], nkeys[i]);
		}
		count_row(batch, g);
	}
	MemoryContextSwitchTo(old);
	MemoryContextReset(g->row_context);
	return fit;
}

/* ------------------------------------------------------------------------
 * Merging
 * ------------------------------------------------------------------------
 */

/* Have the next key of a run.  Returns false if there is none. */
static bool
advance(GinRun *run)
{
	AioGinKey  *next = &run->next;

	next->merged = next->again = false;
	next->items = ginGetBAEntry(&run->accum, &next->attnum, &next->key,
								&next->category, &next->nitems);
	return next->items != NULL;
}

static int
compare_keys(GinState *ginstate, const AioGinKey *a, const AioGinKey *b)
{
	return ginCompareAttEntries(ginstate, a->attnum, a->key, a->category,
								b->attnum, b->key, b->category);
}

/*
 * binaryheap_comparator: the run whose next key is smallest comes first, and
 * of those with the same key the one whose rows come first.
 */
static int
compare_runs(Datum a, Datum b, void *arg)
{
	AioGinKey  *ka = &((GinRun *) DatumGetPointer(a))->next;
	AioGinKey  *kb = &((GinRun *) DatumGetPointer(b))->next;
	int			order = compare_keys(arg, kb, ka);

	return order != 0 ? order : ginCompareItemPointers(kb->items, ka->items);
}

/* qsort comparator */
static int
compare_items(const void *a, const void *b)
{
	return ginCompareItemPointers((ItemPointer) a, (ItemPointer) b);
}

/* Give a key the rows of several runs. */
static void
merge_items(AioGinKey *key, const AioGinKey *parts, int nparts, uint64 nitems)
{
	bool		in_order = true;

	key->items = palloc(sizeof(ItemPointerData) * nitems);
	key->nitems = 0;
	key->merged = true;
	for (int i = 0; i < nparts; i++)
	{
		if (key->nitems > 0 &&
			ginCompareItemPointers(&key->items[key->nitems - 1], &parts[i].items[0]) > 0)
			in_order = false;
		memcpy(&key->items[key->nitems], parts[i].items,
			   sizeof(ItemPointerData) * parts[i].nitems);
		key->nitems += parts[i].nitems;
	}
	Assert(key->nitems == nitems);
	if (!in_order)
		qsort(key->items, nitems, sizeof(ItemPointerData), compare_items);
}

/* Go on with the run that is first in the heap. */
static void
advance_first(binaryheap *heap)
{
	Datum		run = binaryheap_first(heap);

	if (advance((GinRun *) DatumGetPointer(run)))
		binaryheap_replace_first(heap, run);
	else
		binaryheap_remove_first(heap);
}

/* ------------------------------------------------------------------------
 * Planning
 * ------------------------------------------------------------------------
 */

/*
 * Descend to the leaf to which a key belongs, or so many pages below the root
 * if 'levels' is not negative, as far as there are pages that are not leaves.
 * Copies the last such page.  Returns how many there were on the way.
 */
static int
descend(GinDrain *drain, const AioGinKey *key, int levels)
{
	Relation	index = drain->ginstate->index;
	GinBtreeData btree;
	GinBtreeStack step = {.blkno = GIN_ROOT_BLKNO};
	int			level = 0;

	ginPrepareEntryScan(&btree, key->attnum, key->key, key->category, drain->ginstate);
	step.buffer = ReadBuffer(index, GIN_ROOT_BLKNO);
	for (;;)
	{
		Page		page = BufferGetPage(step.buffer);

		LockBuffer(step.buffer, GIN_SHARE);
		while (step.blkno != GIN_ROOT_BLKNO && btree.isMoveRight(&btree, page))
		{
			step.buffer = ginStepRight(step.buffer, index, GIN_SHARE);
			step.blkno = BufferGetBlockNumber(step.buffer);
			page = BufferGetPage(step.buffer);
		}
		if (GinPageIsLeaf(page))
			break;
		memcpy(drain->page, page, BLCKSZ);
		if (++level == levels)
			break;
		step.blkno = btree.findChildPage(&btree, &step);
		LockBuffer(step.buffer, GIN_UNLOCK);
		step.buffer = ReleaseAndReadBuffer(step.buffer, index, step.blkno);
	}
	UnlockReleaseBuffer(step.buffer);
	return level;
}

/* Copy the lowest page above the leaves on the way to a key. */
static void
copy_page(GinDrain *drain, const AioGinKey *key)
{
	/* pages do not say how far from the leaves they are */
	if (drain->height < 0)
		drain->height = descend(drain, key, -1);
	else if (drain->height > 0)
		drain->height = descend(drain, key, drain->height);
	drain->copied = drain->height > 0;
	drain->child = FirstOffsetNumber;
}

/* Find the leaf that a key belongs to, and up to which other keys do. */
static void
find_leaf(GinDrain *drain, const AioGinKey *key)
{
	drain->bounded = false;
	for (int i = 0; i < 2; i++)
	{
		OffsetNumber max;
		bool		equal;

		if (i > 0 || !drain->copied)
			copy_page(drain, key);
		if (!drain->copied)
			return;
		max = PageGetMaxOffsetNumber(drain->page);
		drain->child = AioGinFindKey(drain->ginstate, drain->page, key,
									 drain->child, 0, &equal);
		if (drain->child >= max && GinPageRightMost(drain->page))
		{
			/* its last item's key is not a limit */
			drain->child = max;
			return;
		}
		if (drain->child <= max)
		{
			IndexTuple	item = (IndexTuple)
				PageGetItem(drain->page, PageGetItemId(drain->page, drain->child));

			drain->bounded = true;
			drain->last.attnum = gintuple_get_attrnum(drain->ginstate, item);
			drain->last.key = gintuple_get_key(drain->ginstate, item,
											   &drain->last.category);
			return;
		}
	}
	/* the page has been split just now */
	drain->copied = false;
}

/* ------------------------------------------------------------------------
 * Inserting
 * ------------------------------------------------------------------------
 */

/* AioTaskBody: insert keys, and free them. */
static void
insert_keys(void *arg)
{
	GinTask    *task = arg;

	AioGinInsertKeys(task->ginstate, task->keys, task->nkeys);
	for (uint32 i = 0; i < task->nkeys; i++)
	{
		if (task->keys[i].merged)
			pfree(task->keys[i].items);
	}
	pfree(task->keys);
}

/* Have the planned keys inserted, as a task if there is a scope. */
static void
start_insert(GinDrain *drain)
{
	GinTask		task = {
		.ginstate = drain->ginstate,
		.nkeys = drain->nkeys,
	};

	if (drain->nkeys == 0)
		return;
	task.keys = palloc_array(AioGinKey, drain->nkeys);
	memcpy(task.keys, drain->keys, sizeof(AioGinKey) * drain->nkeys);
	drain->nkeys = 0;
	drain->nitems = 0;
	if (drain->scope != NULL)
		AioSpawn(drain->scope, &drain->options, insert_keys, &task, sizeof(task));
	else
		insert_keys(&task);
}

/* The next key, in index order. */
static void
plan_key(GinDrain *drain, const AioGinKey *key)
{
	if (drain->nkeys == TASK_KEYS_MAX || drain->nitems >= TASK_ITEMS_MAX)
	{
		/* so many for one leaf? the tree may be higher by now */
		drain->copied = false;
		drain->height = -1;
		start_insert(drain);
	}
	else if (drain->bounded && compare_keys(drain->ginstate, key, &drain->last) > 0)
		start_insert(drain);
	if (drain->nkeys == 0)
		find_leaf(drain, key);
	drain->keys[drain->nkeys++] = *key;
	drain->nitems += key->nitems;
}

/* Put the rows that would do so into the pending list. */
static void
drain_list(AioGinBacklog *gin)
{
	GinTupleCollector *list = &gin->list;
	MemoryContext old = MemoryContextSwitchTo(gin->row_context);
	uint32		end;

	for (uint32 first = 0; first < list->ntuples; first = end)
	{
		GinTupleCollector row = {.tuples = &list->tuples[first]};

		CHECK_FOR_INTERRUPTS();
		end = end_of_row(list, first);
		row.ntuples = row.lentuples = end - first;
		for (uint32 i = first; i < end; i++)
			row.sumsize += IndexTupleSize(list->tuples[i]);
		ginHeapTupleFastInsert(&gin->ginstate, &row);
		MemoryContextReset(gin->row_context);
	}
	MemoryContextSwitchTo(old);
}

/*
 * AioIndexAmOps.drain: keys of a leaf are a task of the scope, if there is one.
 */
void
AioDrainGin(AioIndexBatch *batch, AioEntry *entries, AioScope *scope)
{
	AioGinBacklog *gin = batch->own;
	GinDrain	drain = {
		.ginstate = &gin->ginstate,
		.scope = scope,
		.options = {.subject = batch->index},
		.height = -1,
	};
	binaryheap *heap;
	AioGinKey  *parts;

	Assert(entries == NULL);
	if (gin->listed)
	{
		drain_list(gin);
		return;
	}

	Assert(gin->current == llast(gin->runs));
	drain.page = palloc(BLCKSZ);
	drain.keys = palloc_array(AioGinKey, TASK_KEYS_MAX);
	heap = binaryheap_allocate(list_length(gin->runs), compare_runs, &gin->ginstate);
	parts = palloc(sizeof(AioGinKey) * list_length(gin->runs));
	foreach_ptr(GinRun, run, gin->runs)
	{
		ginBeginBAScan(&run->accum);
		if (advance(run))
			binaryheap_add_unordered(heap, PointerGetDatum(run));
	}
	binaryheap_build(heap);

	while (!binaryheap_empty(heap))
	{
		AioGinKey	key;
		uint64		nitems;
		int			nparts = 0;

		CHECK_FOR_INTERRUPTS();
		do
		{
			Assert(nparts < list_length(gin->runs));
			parts[nparts++] = ((GinRun *) DatumGetPointer(binaryheap_first(heap)))->next;
			advance_first(heap);
		} while (!binaryheap_empty(heap) &&
				 compare_keys(&gin->ginstate, &parts[0],
							  &((GinRun *) DatumGetPointer(binaryheap_first(heap)))->next) == 0);
		nitems = 0;
		for (int i = 0; i < nparts; i++)
			nitems += parts[i].nitems;
		if (nparts > 1 && nitems <= MERGED_ITEMS_MAX)
		{
			key = parts[0];
			merge_items(&key, parts, nparts, nitems);
			plan_key(&drain, &key);
		}
		else
		{
			for (int i = 0; i < nparts; i++)
			{
				parts[i].again = i > 0;
				plan_key(&drain, &parts[i]);
			}
		}
	}
	start_insert(&drain);
}

/* AioIndexAmOps.forget */
void
AioFreeGin(AioIndexBatch *batch)
{
	AioGinBacklog *gin = batch->own;

	MemoryContextDelete(gin->context);
	batch->own = NULL;
}
