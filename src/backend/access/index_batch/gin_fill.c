/*-------------------------------------------------------------------------
 *
 * gin_fill.c
 *	  Put many keys into a leaf of a GIN index in one visit.
 *
 * Keys that follow one another in index order go to the same leaf, most of
 * them.  Their positions are found with the leaf locked once, by a search that
 * goes on from the position before; then their tuples, which upstream's
 * functions form, are put into the page, by upstream's function, too.  They are
 * logged together if that takes fewer bytes than a record each, or if the next
 * record will be an image of the page anyway.
 *
 * What is on the page by then is what ginEntryInsert() would have put there, in
 * the same place, had it been called for each key.  So is what it does for keys
 * that are not the plain case: one whose tuple has no room is given to
 * ginInsertValue(), which splits the leaf; one that has a posting tree has its
 * rows inserted there, when the leaf is not locked any more.  The root of a
 * posting tree never moves or goes away.  A split that is not complete has been
 * completed on the way to the leaf.
 *
 * A visit ends after some keys and rows, so that others do not wait for the
 * leaf, nor an interrupt for the end of a critical section, longer than for a
 * few of upstream's inserts.
 *
 * Serializable transactions collect no entries (INVARIANT-78), so that no page
 * is checked for their conflicts.
 *
 * Tests: src/test/aio/index/t/011_gin_leaf.pl.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/ginxlog.h"
#include "access/xlog.h"
#include "access/xloginsert.h"
#include "aio/stats.h"
#include "gin_fill.h"
#include "leaf_wal.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "utils/memutils.h"
#include "utils/rel.h"

/* what a record of a leaf's tuple has besides, but for the tuple */
#define INSERT_BYTES \
	(SizeOfXLogRecordDataHeaderShort + sizeof(ginxlogInsert) + \
	 offsetof(ginxlogInsertEntry, tuple))

/* keys, and the rows of all but the last of them, in one visit */
#define VISIT_KEYS_MAX	128
#define VISIT_ITEMS_MAX	8192

/* A tuple that is put into a leaf. */
typedef struct LeafTuple
{
	IndexTuple	tuple;
	OffsetNumber offset;		/* when those before it have been put */
	uint16		released;		/* bytes of the tuple that it replaces, or 0 */
} LeafTuple;

/* What a visit does. */
typedef struct Visit
{
	GinBtreeData btree;
	GinBtreeStack *stack;		/* its buffer is the leaf */
	LeafTuple	tuples[VISIT_KEYS_MAX];
	int			ntuples;
	int			changed_end;	/* items before this offset may move */
	bool		full;			/* there is no room for the last of tuples */
	/* keys that have a posting tree, by number, and the trees */
	uint32		tree_keys[VISIT_KEYS_MAX];
	BlockNumber trees[VISIT_KEYS_MAX];
	int			ntrees;
} Visit;

/*
 * The first item of a page, from 'low' on, that is not less than a key.  It is
 * expected some 'gap' items on.  Sets *equal to whether it is equal.  The page
 * is locked, or a copy; may raise the errors of comparison functions.
 */
OffsetNumber
AioGinFindKey(GinState *ginstate, Page page, const AioGinKey *key,
			  OffsetNumber low, int gap, bool *equal)
{
	int			high = PageGetMaxOffsetNumber(page) + 1;
	int			next = low + gap;

	Assert(low <= high);
	*equal = false;
	while (low < high)
	{
		int			mid = next < high ? next : low + (high - low) / 2;
		IndexTuple	item = (IndexTuple) PageGetItem(page, PageGetItemId(page, mid));
		GinNullCategory category;
		Datum		datum = gintuple_get_key(ginstate, item, &category);
		int			result =
			ginCompareAttEntries(ginstate, key->attnum, key->key, key->category,
								 gintuple_get_attrnum(ginstate, item), datum,
								 category);

		if (result > 0)
		{
			/* farther than expected: go on by twice as many */
			low = mid + 1;
			gap = gap * 2 + 1;
			next = low + gap;
		}
		else
		{
			high = mid;
			*equal = result == 0;
			next = high;
		}
	}
	return low;
}

/* The bytes that an item takes on a page, but for its line pointer. */
static inline Size
item_bytes(IndexTuple tuple)
{
	return MAXALIGN(IndexTupleSize(tuple));
}

/*
 * Find out what is to be put into the leaf, and where, for keys that belong
 * there, as the first one does.  Changes nothing but what forming a tuple does.
 * Returns how many keys that is about.
 */
static uint32
prepare_visit(GinState *ginstate, Visit *visit, const AioGinKey *keys, uint32 n)
{
	Buffer		leaf = visit->stack->buffer;
	Page		page = BufferGetPage(leaf);
	OffsetNumber max = PageGetMaxOffsetNumber(page);
	OffsetNumber position = FirstOffsetNumber;
	Size		room = PageGetFreeSpace(page);
	Size		added = 0;
	Size		released = 0;
	uint32		nitems = 0;
	int			nfresh = 0;
	uint32		i;

	Assert(GinPageIsLeaf(page) && !GinPageIsData(page));
	Assert(!GinPageIsIncompleteSplit(page));

	visit->ntuples = visit->ntrees = 0;
	visit->full = false;
	visit->changed_end = ((PageHeader) page)->pd_upper;
	for (i = 0; i < n && i < VISIT_KEYS_MAX && nitems < VISIT_ITEMS_MAX; i++)
	{
		const AioGinKey *key = &keys[i];
		LeafTuple  *leaf_tuple = &visit->tuples[visit->ntuples];
		IndexTuple	old = NULL;
		bool		equal;

		/* its tuple is not on the page yet */
		if (i > 0 && key->again)
			break;
		position = AioGinFindKey(ginstate, page, key, position,
								 i == 0 ? max / 2 : (max + 1 - position) / (n - i + 1),
								 &equal);
		if (position > max && i > 0 && !GinPageRightMost(page))
			break;
		nitems += key->nitems;
		if (equal)
		{
			old = (IndexTuple) PageGetItem(page, PageGetItemId(page, position));
			if (GinIsPostingTree(old))
			{
				visit->tree_keys[visit->ntrees] = i;
				visit->trees[visit->ntrees++] = GinGetPostingTree(old);
				continue;
			}
			visit->changed_end = Max(visit->changed_end,
									 (int) ((char *) old + item_bytes(old) - page));
		}

		leaf_tuple->tuple = AioGinFormLeafTuple(ginstate, key, old, leaf);
		leaf_tuple->offset = position + nfresh;
		leaf_tuple->released = equal ? item_bytes(old) : 0;
		visit->ntuples++;
		if (!equal)
		{
			nfresh++;
			added += sizeof(ItemIdData);
		}
		added += item_bytes(leaf_tuple->tuple);
		released += leaf_tuple->released;
		if (added > room + released)
		{
			visit->full = true;
			return i + 1;
		}
		/* making a posting tree takes long enough */
		if (GinIsPostingTree(leaf_tuple->tuple))
			return i + 1;
	}
	return i;
}

/* Does a visit move items, so that any line pointer may change? */
static bool
moves_items(const Visit *visit)
{
	return visit->changed_end >
		((PageHeader) BufferGetPage(visit->stack->buffer))->pd_upper;
}

/* Are the first n tuples of a visit to be logged together? */
static bool
goes_together(const Visit *visit, int n)
{
	Buffer		leaf = visit->stack->buffer;
	Page		page = BufferGetPage(leaf);
	int			upper = ((PageHeader) page)->pd_upper;
	int			line_pointers = PageGetMaxOffsetNumber(page);
	Size		added = 0;
	Size		released = 0;
	Size		apart = 0;

	if (n < 2)
		return false;
	if (XLogCheckBufferNeedsBackup(leaf))
		return true;
	for (int i = 0; i < n; i++)
	{
		const LeafTuple *leaf_tuple = &visit->tuples[i];

		apart += MAXALIGN(AIO_BLOCK_RECORD_BYTES + INSERT_BYTES +
						  IndexTupleSize(leaf_tuple->tuple));
		added += item_bytes(leaf_tuple->tuple);
		released += leaf_tuple->released;
		if (leaf_tuple->released == 0)
			line_pointers++;
	}
	if (!moves_items(visit))
		line_pointers -= visit->tuples[0].offset - FirstOffsetNumber;
	return AioLeafRecordBytes(line_pointers,
							  visit->changed_end - upper + added - released) <= apart;
}

/* Put the first n tuples of a visit into the leaf, for which there is room. */
static void
put_tuples(Visit *visit, int n)
{
	GinBtree	btree = &visit->btree;
	GinBtreeStack *stack = visit->stack;
	Buffer		leaf = stack->buffer;
	Page		page = BufferGetPage(leaf);
	ginxlogInsert record = {.flags = GIN_INSERT_ISLEAF};
	OffsetNumber first = moves_items(visit) ? FirstOffsetNumber :
		visit->tuples[0].offset;
	bool		logged = RelationNeedsWAL(btree->index);
	bool		together = logged && goes_together(visit, n);
	bool		apart = logged && !together;

	/* upstream's function leaves logging to its caller then */
	btree->isBuild = !apart;

	START_CRIT_SECTION();
	for (int i = 0; i < n; i++)
	{
		const LeafTuple *leaf_tuple = &visit->tuples[i];
		GinBtreeEntryInsertData data = {
			.entry = leaf_tuple->tuple,
			.isDelete = leaf_tuple->released > 0,
		};

		stack->off = leaf_tuple->offset;
		if (apart)
			XLogBeginInsert();
		btree->execPlaceToPage(btree, leaf, stack, &data, InvalidBlockNumber, NULL);
		if (apart)
		{
			XLogRegisterData(&record, sizeof(record));
			PageSetLSN(page, XLogInsert(RM_GIN_ID, XLOG_GIN_INSERT));
		}
	}
	if (together)
		AioLogLeaf(leaf, first, visit->changed_end);
	END_CRIT_SECTION();
	btree->isBuild = false;
}

/*
 * Insert the first of n sorted keys, and those after it that belong to the same
 * leaf.  Returns how many that were.
 */
static uint32
visit_leaf(GinState *ginstate, Visit *visit, const AioGinKey *keys, uint32 n)
{
	GinBtree	btree = &visit->btree;
	uint32		done;
	int			nplain;

	aio_session_stats_data.leaf_visits++;
	ginPrepareEntryScan(btree, keys->attnum, keys->key, keys->category, ginstate);
	visit->stack = ginFindLeafPage(btree, false, false);
	done = prepare_visit(ginstate, visit, keys, n);
	Assert(done > 0 && done <= n);

	nplain = visit->ntuples - (visit->full ? 1 : 0);
	if (nplain > 0)
		put_tuples(visit, nplain);
	if (visit->full)
	{
		const LeafTuple *last = &visit->tuples[nplain];
		GinBtreeEntryInsertData data = {
			.entry = last->tuple,
			.isDelete = last->released > 0,
		};

		visit->stack->off = last->offset;
		ginInsertValue(btree, visit->stack, &data, NULL);
	}
	else
	{
		LockBuffer(visit->stack->buffer, GIN_UNLOCK);
		freeGinBtreeStack(visit->stack);
	}

	for (int i = 0; i < visit->ntrees; i++)
	{
		const AioGinKey *key = &keys[visit->tree_keys[i]];

		ginInsertItemPointers(ginstate->index, visit->trees[i],
							  key->items, key->nitems, NULL);
	}
	return done;
}

/*
 * Insert n keys, which are sorted.  May suspend wherever a page is read that is
 * not in memory, but for those that a split needs.  Takes what memory it needs
 * from the current context, and gives it back.
 *
 * Raises the errors of comparison functions.
 */
void
AioGinInsertKeys(GinState *ginstate, const AioGinKey *keys, uint32 n)
{
	Visit	   *visit = palloc(sizeof(Visit));
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext,
												  "GIN leaf visit",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);

	for (uint32 done = 0; done < n;)
	{
		CHECK_FOR_INTERRUPTS();
		done += visit_leaf(ginstate, visit, &keys[done], n - done);
		MemoryContextReset(context);
	}
	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);
	pfree(visit);
}
