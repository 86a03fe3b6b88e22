/*-------------------------------------------------------------------------
 *
 * gin_drain.c
 *	  Collect the keys of a GIN index, and insert each of them once.
 *
 * Keys are extracted when the row is inserted, and collected as upstream does
 * when it builds an index: for each key the rows that have it.  So a key that
 * many rows share is searched for once, and its page is written once.  This is
 * what the pending list of an index with fastupdate is for, too; such an index
 * has no need of a backlog.
 *
 * Upstream collects keys in a tree, and to find a place in one that is larger
 * than the processor's caches takes longer than to insert the key.  So there
 * are many small trees, runs, which are merged in the end.
 *
 * Each key is a task: which pages its insert will read is known only on the
 * way.
 *
 * Tests: src/test/aio/sql, src/test/aio/index/t.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/gin_private.h"
#include "aio/stats.h"
#include "built_in_ams.h"
#include "lib/binaryheap.h"
#include "miscadmin.h"
#include "utils/memutils.h"
#include "utils/rel.h"

/*
 * Keys larger than that may be too large for a page, which has to be found out
 * when their row is inserted.  Upstream's limit is larger.
 */
#define KEY_BYTES_MAX	(GinMaxItemSize / 2)

/* The size of a run, in bytes: less than a processor's second-level cache. */
#define RUN_BYTES	((Size) 1024 * 1024)

/* A key with more rows is inserted run by run: they would be copied. */
#define MERGED_ITEMS_MAX	(RUN_BYTES / sizeof(ItemPointerData))

/* A key, and the rows that have it. */
typedef struct GinKey
{
	GinState   *ginstate;
	Datum		key;
	ItemPointerData *items;
	uint32		nitems;
	bool		merged;			/* items have been allocated for this key */
	OffsetNumber attnum;
	GinNullCategory category;
} GinKey;

typedef struct GinRun
{
	BuildAccumulator accum;
	GinKey		next;			/* while runs are merged */
} GinRun;

typedef struct AioGinBacklog
{
	MemoryContext context;		/* of the collected keys */
	MemoryContext row_context;	/* of those of one row */
	GinState	ginstate;
	List	   *runs;			/* GinRun, the current one is the last */
	GinRun	   *current;
	int32		natts;
} AioGinBacklog;

static void
begin_run(AioGinBacklog *gin)
{
	GinRun	   *run = palloc0(sizeof(GinRun));

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
		BuildAccumulator *accum;
		Size		before;

		MemoryContextSwitchTo(g->context);
		if (g->current->accum.allocatedMemory >= RUN_BYTES)
			begin_run(g);
		accum = &g->current->accum;
		before = accum->allocatedMemory;
		for (int i = 0; i < g->natts; i++)
			ginInsertBAEntries(accum, unconstify(ItemPointerData *, &row->tid), i + 1, keys[i], categories[i],
							   nkeys[i]);
		Assert(accum->allocatedMemory >= before);
		AioBatchAddOwn(batch, accum->allocatedMemory - before);
	}
	MemoryContextSwitchTo(old);
	MemoryContextReset(g->row_context);
	return fit;
}

/* AioTaskBody: insert a key and its rows. */
static void
insert_key(void *arg)
{
	GinKey	   *key = arg;
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext,
												  "index backlog of GIN keys, insert",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);

	ginEntryInsert(key->ginstate, key->attnum, key->key, key->category,
				   key->items, key->nitems, NULL);
	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);
	if (key->merged)
		pfree(key->items);
}

/* Have the next key of a run.  Returns false if there is none. */
static bool
advance(GinRun *run)
{
	GinKey	   *next = &run->next;

	next->ginstate = run->accum.ginstate;
	next->merged = false;
	next->items = ginGetBAEntry(&run->accum, &next->attnum, &next->key,
								&next->category, &next->nitems);
	return next->items != NULL;
}

static int
compare_keys(const GinKey *a, const GinKey *b)
{
	return ginCompareAttEntries(a->ginstate,
								a->attnum, a->key, a->category,
								b->attnum, b->key, b->category);
}

/*
 * binaryheap_comparator: the run whose next key is smallest comes first, and
 * of those with the same key the one whose rows come first.
 */
static int
compare_runs(Datum a, Datum b, void *arg)
{
	GinKey	   *ka = &((GinRun *) DatumGetPointer(a))->next;
	GinKey	   *kb = &((GinRun *) DatumGetPointer(b))->next;
	int			order = compare_keys(kb, ka);

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
merge_items(GinKey *key, const GinKey *parts, int nparts, uint64 nitems)
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

/* Insert a key, as a task if there is a scope. */
static void
start_insert(const GinKey *key, AioScope *scope, const AioTaskOptions *options)
{
	GinKey		copy = *key;

	aio_session_stats_data.leaf_visits++;
	if (scope != NULL)
		AioSpawn(scope, options, insert_key, &copy, sizeof(copy));
	else
		insert_key(&copy);
}

/* AioIndexAmOps.drain: keys are tasks of the scope, if there is one. */
void
AioDrainGin(AioIndexBatch *batch, AioEntry *entries, AioScope *scope)
{
	AioGinBacklog *gin = batch->own;
	AioTaskOptions options = {0};
	binaryheap *heap = binaryheap_allocate(list_length(gin->runs), compare_runs, NULL);
	GinKey	   *parts = palloc(sizeof(GinKey) * list_length(gin->runs));

	Assert(entries == NULL);
	Assert(gin->current == llast(gin->runs));
	options.subject = batch->index;
	foreach_ptr(GinRun, run, gin->runs)
	{
		ginBeginBAScan(&run->accum);
		if (advance(run))
			binaryheap_add_unordered(heap, PointerGetDatum(run));
	}
	binaryheap_build(heap);

	while (!binaryheap_empty(heap))
	{
		GinKey		key;
		uint64		nitems;
		int			nparts = 0;

		CHECK_FOR_INTERRUPTS();
		do
		{
			Assert(nparts < list_length(gin->runs));
			parts[nparts++] = ((GinRun *) DatumGetPointer(binaryheap_first(heap)))->next;
			advance_first(heap);
		} while (!binaryheap_empty(heap) &&
				 compare_keys(&parts[0], &((GinRun *) DatumGetPointer(binaryheap_first(heap)))->next) == 0);
		nitems = 0;
		for (int i = 0; i < nparts; i++)
			nitems += parts[i].nitems;
		if (nparts > 1 && nitems <= MERGED_ITEMS_MAX)
		{
			key = parts[0];
			merge_items(&key, parts, nparts, nitems);
			start_insert(&key, scope, &options);
		}
		else
		{
			for (int i = 0; i < nparts; i++)
				start_insert(&parts[i], scope, &options);
		}
	}
}

/* AioIndexAmOps.forget */
void
AioFreeGin(AioIndexBatch *batch)
{
	AioGinBacklog *gin = batch->own;

	MemoryContextDelete(gin->context);
	batch->own = NULL;
}
