/*-------------------------------------------------------------------------
 *
 * btree_drain.c
 *	  Insert sorted entries into a btree: a merge of the entries with the
 *	  leaves that the pages above list.
 *
 * The plan: descend to the lowest page that is not a leaf, copy it, and find
 * between which of its separators the entries fall.  Each stretch of entries
 * that fall on one leaf is a run; leaf_stream.c reads the leaves ahead.  Then
 * each run is put into its leaf (btree_fill.c), and what is left of it, into
 * the leaf's right siblings.  An entry for which that is not enough, as the one
 * that has no room, is inserted by _bt_doinsert().
 *
 * The leaf is the right one to begin with.  Its separator in the page above is
 * less than the first entry, and what belongs to the right of a separator comes
 * to belong to another page by splits only, which move it to the right, or when
 * the page is deleted.  A page that has been deleted is not used again while a
 * transaction is running that has an older XID, such as this one.
 *
 * A split reads the right sibling under the page's lock, so a run whose leaf
 * looks too full, and whose sibling is not being read anyway, becomes a task:
 * it awaits the sibling first, and later runs overtake it.
 *
 * A key that is enforced is inserted with a check that does not wait; if it may
 * be a duplicate, backlog_recheck.c sees to it later.  Of equal keys only the
 * first row's is inserted.
 *
 * Tests: src/test/aio/sql, src/test/aio/index/t.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "aio/index_backlog.h"
#include "aio/stats.h"
#include "btree_fill.h"
#include "built_in_ams.h"
#include "common/int.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "utils/injection_point.h"
#include "utils/memdebug.h"
#include "utils/rel.h"

/* upper limit of the runs planned from one page above the leaves */
#define RUNS_PER_PAGE	512

/* so many leaves to the right an entry is looked for before it is searched */
#define STEPS_MAX		2

/* after so many leaves a user may interrupt */
#define LEAVES_MAX		16

/* no btree that is split here has so many */
#define LEVELS_MAX		16

/* entries whose leaves are looked up to estimate how far they are spread */
#define SPREAD_SAMPLE	512

typedef struct BtreeDrain
{
	AioIndexBatch *batch;
	Relation	index;
	Relation	heap;
	AioEntry   *entries;
	uint32		nentries;
	uint32		planned;		/* entries before this one are planned */
	AioLeafStream *stream;
	Page		page;			/* copy of the page above the leaves */
	BTScanInsert key;			/* of the entry at hand */
} BtreeDrain;

/* What a task that inserts a run needs. */
typedef struct BtreeRun
{
	BtreeDrain *drain;
	Buffer		buffer;
	BlockNumber sibling;		/* to be read first */
	AioLeafRun	run;
} BtreeRun;

/* ------------------------------------------------------------------------
 * Planning
 * ------------------------------------------------------------------------
 */

static inline BTScanInsert
set_key(BtreeDrain *drain, uint32 entry)
{
	Assert(entry < drain->batch->nentries);
	AioBtreeSetKey(drain->batch, drain->key, drain->entries[entry].tuple);
	return drain->key;
}

/* The last item of a page above the leaves that is less than the key. */
static OffsetNumber
find_child(BtreeDrain *drain, BTScanInsert key, Page page, OffsetNumber from)
{
	OffsetNumber low = from;
	OffsetNumber high = PageGetMaxOffsetNumber(page) + 1;

	Assert(low < high);
	/* the first one is less than any key */
	while (high - low > 1)
	{
		OffsetNumber mid = low + (high - low) / 2;

		if (_bt_compare(drain->index, key, page, mid) > 0)
			low = mid;
		else
			high = mid;
	}
	return low;
}

static BlockNumber
downlink(Page page, OffsetNumber offnum)
{
	return BTreeTupleGetDownLink((IndexTuple)
								 PageGetItem(page, PageGetItemId(page, offnum)));
}

/*
 * The root of an index that has more than one leaf, pinned and locked.  The
 * caller has a leaf locked, so it must not be what was the root before, as that
 * of _bt_getroot() may be.
 */
static Buffer
get_root_above(Relation index)
{
	Buffer		meta = _bt_getbuf(index, BTREE_METAPAGE, BT_READ);
	BlockNumber root = BTPageGetMeta(BufferGetPage(meta))->btm_root;

	Assert(BTPageGetMeta(BufferGetPage(meta))->btm_level > 0);
	return _bt_relandgetbuf(index, meta, root, BT_READ);
}

/*
 * The lowest page above the leaves on the way from a page, which is pinned and
 * locked, to a key; InvalidBuffer if there is none.  If 'path' is not NULL, it
 * is set to where the downlinks are, by level; then InvalidBuffer is returned
 * also if the split of a page on the way is incomplete, which _bt_search()
 * would complete.
 */
static Buffer
find_above(BtreeDrain *drain, Buffer buffer, BTScanInsert key, BTStack path)
{
	Relation	index = drain->index;

	for (;;)
	{
		Page		page = BufferGetPage(buffer);
		BTPageOpaque opaque = BTPageGetOpaque(page);
		uint32		level = opaque->btpo_level;
		OffsetNumber child;

		if (path != NULL && (P_INCOMPLETE_SPLIT(opaque) || level >= LEVELS_MAX))
		{
			_bt_relbuf(index, buffer);
			return InvalidBuffer;
		}
		if (!P_RIGHTMOST(opaque) &&
			(P_IGNORE(opaque) ||
			 _bt_compare(index, key, page, P_HIKEY) > 0))
		{
			buffer = _bt_relandgetbuf(index, buffer, opaque->btpo_next, BT_READ);
			continue;
		}
		if (P_IGNORE(opaque) || P_ISLEAF(opaque))
		{
			_bt_relbuf(index, buffer);
			return InvalidBuffer;
		}
		if (level == 1 && path == NULL)
			return buffer;
		child = find_child(drain, key, page, P_FIRSTDATAKEY(opaque));
		if (path != NULL)
		{
			path[level].bts_blkno = BufferGetBlockNumber(buffer);
			path[level].bts_offset = child;
		}
		if (level == 1)
			return buffer;
		if (path != NULL)
			path[level - 1].bts_parent = &path[level];
		buffer = _bt_relandgetbuf(index, buffer, downlink(page, child), BT_READ);
	}
}

/* Copy that page.  Returns false if there is none. */
static bool
descend(BtreeDrain *drain, BTScanInsert key)
{
	Buffer		buffer = _bt_getroot(drain->index, NULL, BT_READ);

	if (BufferIsValid(buffer))
		buffer = find_above(drain, buffer, key, NULL);
	if (!BufferIsValid(buffer))
		return false;
	memcpy(drain->page, BufferGetPage(buffer), BLCKSZ);
	_bt_relbuf(drain->index, buffer);
	return true;
}

/* Is an entry greater than an item of the copied page? */
static bool
is_beyond(BtreeDrain *drain, uint32 entry, OffsetNumber item)
{
	return _bt_compare(drain->index, set_key(drain, entry), drain->page, item) > 0;
}

/* The first entry after 'entry', which is not beyond an item, that is. */
static uint32
find_end(BtreeDrain *drain, uint32 entry, OffsetNumber item)
{
	uint32		low = entry;
	uint32		high;
	uint32		step = 1;

	/* stretches are short as a rule */
	for (;;)
	{
		high = Min((uint64) low + step, drain->nentries);
		if (high == drain->nentries || is_beyond(drain, high, item))
			break;
		low = high;
		step *= 2;
	}
	while (high - low > 1)
	{
		uint32		mid = low + (high - low) / 2;

		if (is_beyond(drain, mid, item))
			high = mid;
		else
			low = mid;
	}
	Assert(high > entry && high <= drain->nentries);
	return high;
}

/* AioPlanRuns: plan the entries that one page above the leaves is about. */
static void
plan_runs(AioLeafStream *stream, void *arg)
{
	BtreeDrain *drain = arg;
	Page		page = drain->page;
	BTPageOpaque opaque;
	OffsetNumber child;

	if (drain->planned == drain->nentries)
		return;

	if (!descend(drain, set_key(drain, drain->planned)))
	{
		/* a tree of one page; what is left is not planned */
		drain->nentries = drain->planned;
		return;
	}
	opaque = BTPageGetOpaque(page);
	child = P_FIRSTDATAKEY(opaque);
	for (int i = 0; i < RUNS_PER_PAGE && AioLeafStreamRoom(stream) > 0; i++)
	{
		bool		last;
		uint32		end = drain->nentries;

		child = find_child(drain, set_key(drain, drain->planned), page, child);
		last = child == PageGetMaxOffsetNumber(page);
		if (!last)
			end = find_end(drain, drain->planned, child + 1);
		else if (!P_RIGHTMOST(opaque))
			end = find_end(drain, drain->planned, P_HIKEY);
		AioLeafStreamPlan(stream, downlink(page, child), drain->planned, end);
		drain->planned = end;
		if (last || end == drain->nentries)
			return;
		if (!P_RIGHTMOST(opaque) && is_beyond(drain, end, P_HIKEY))
			return;
	}
}

/* qsort comparator */
static int
compare_blocks(const void *a, const void *b)
{
	return pg_cmp_u32(*(const BlockNumber *) a, *(const BlockNumber *) b);
}

/*
 * AioIndexAmOps.spread: of some entries, see which have a leaf in common.  The
 * more pairs do, the fewer leaves there are.
 */
double
AioBtreeSpread(AioIndexBatch *batch)
{
	BtreeDrain	drain = {0};
	BlockNumber leaves[SPREAD_SAMPLE];
	double		nblocks = RelationGetNumberOfBlocks(batch->index);
	uint32		n = Min(Max(batch->nentries / 16, 64), SPREAD_SAMPLE);
	uint64		pairs = 0;
	uint32		equal = 0;

	drain.batch = batch;
	drain.index = batch->index;
	drain.heap = batch->heap;
	drain.entries = AioListEntries(batch);
	drain.page = palloc_aligned(BLCKSZ, MAXIMUM_ALIGNOF, 0);
	drain.key = AioBtreeMakeKey(drain.index);
	n = Min(n, batch->nentries);
	for (uint32 i = 0; i < n; i++)
	{
		BTScanInsert key = set_key(&drain, (uint64) i * batch->nentries / n);

		CHECK_FOR_INTERRUPTS();
		if (!descend(&drain, key))
			return 1;
		leaves[i] = downlink(drain.page,
							 find_child(&drain, key, drain.page,
										P_FIRSTDATAKEY(BTPageGetOpaque(drain.page))));
	}
	qsort(leaves, n, sizeof(BlockNumber), compare_blocks);
	for (uint32 i = 1; i < n; i++)
	{
		equal = leaves[i] == leaves[i - 1] ? equal + 1 : 0;
		pairs += equal;
	}
	return pairs == 0 ? nblocks : Min(nblocks, (double) n * (n - 1) / 2 / pairs);
}

/* ------------------------------------------------------------------------
 * Inserting
 * ------------------------------------------------------------------------
 */

/* Insert an entry that is equal to one on a leaf, which is locked. */
static void
insert_on_leaf(BtreeDrain *drain, Buffer leaf, uint32 entry)
{
	IndexTuple	tuple = drain->entries[entry].tuple;

	if (drain->batch->unique && AioGetEntryRow(tuple)->duplicate)
	{
		_bt_unlockbuf(drain->index, leaf);
		AioBacklogConflict(drain->batch, tuple);
	}
	else if (!AioBtreeInsertOnLeaf(drain->batch, drain->key, leaf, tuple))
		AioBacklogConflict(drain->batch, tuple);
}

/* Insert one entry as if it had not been collected. */
static void
insert_entry(BtreeDrain *drain, uint32 entry)
{
	AioIndexBatch *batch = drain->batch;
	IndexTuple	tuple = drain->entries[entry].tuple;

	aio_session_stats_data.leaf_visits++;
	if (!batch->unique)
		_bt_doinsert(drain->index, tuple, UNIQUE_CHECK_NO, batch->unchanged,
					 drain->heap);
	else if (AioGetEntryRow(tuple)->duplicate ||
			 !_bt_doinsert(drain->index, tuple, UNIQUE_CHECK_PARTIAL, false,
						   drain->heap))
		AioBacklogConflict(batch, tuple);
}

/* The leaf on which an entry belongs, pinned and locked exclusively. */
static Buffer
find_leaf(BtreeDrain *drain, uint32 entry)
{
	Buffer		leaf;

	_bt_freestack(_bt_search(drain->index, drain->heap, set_key(drain, entry),
							 &leaf, BT_WRITE));
	Assert(BufferIsValid(leaf));
	aio_session_stats_data.leaf_visits++;
	return leaf;
}

/*
 * If n entries, which belong to a leaf, have no room on it, but can be put
 * there if it is split, split it where it will be full.  This inserts one or
 * two of them, and those before them move up.  Returns how many.  The leaf is
 * pinned and locked exclusively, and stays so.
 */
static uint32
split_for_all(BtreeDrain *drain, Buffer leaf, AioEntry *entries, uint32 n)
{
	BTPageOpaque opaque = BTPageGetOpaque(BufferGetPage(leaf));
	BTStackData path[LEVELS_MAX] = {0};
	AioBtreeSplit split;
	AioEntry	last;
	AioEntry	next;
	bool		is_root = P_ISROOT(opaque);
	uint32		inserted = 1;
	uint32		added;

	if (!AioBtreePlanSplit(drain->batch, drain->key, leaf, entries, n, &split))
		return 0;
	next = entries[split.stay];
	AioBtreeSetKey(drain->batch, drain->key, next.tuple);
	if (!is_root)
	{
		Buffer		above = find_above(drain, get_root_above(drain->index),
									   drain->key, path);

		if (!BufferIsValid(above))
			return 0;
		_bt_relbuf(drain->index, above);
	}
	last = entries[split.stay - 1];
	if (!split.separates)
	{
		AioBtreeFill(drain->batch, drain->key, leaf, &last, 1, &added);
		if (added == 0)
			return 0;
		split.position++;
		inserted++;
	}
	AioBtreeSplitBefore(drain->batch, drain->key, leaf, next.tuple,
						split.position, is_root ? NULL : &path[1]);
	memmove(&entries[inserted], &entries[0],
			(split.stay + 1 - inserted) * sizeof(AioEntry));
	_bt_lockbuf(drain->index, leaf, BT_WRITE);
	return inserted;
}

/*
 * Insert entries, beginning with a leaf, whose pin is given back, or with
 * none.
 */
static void
insert_entries(BtreeDrain *drain, Buffer leaf, uint32 first, uint32 end)
{
	Relation	index = drain->index;
	Buffer		kept = InvalidBuffer;	/* not to be split for all of them */

	Assert(first <= end && end <= drain->batch->nentries);
	while (first < end)
	{
		AioBtreeFillEnd why;
		int			steps = 0;
		int			leaves = 1;

		CHECK_FOR_INTERRUPTS();
		if (BufferIsValid(leaf))
			_bt_lockbuf(index, leaf, BT_WRITE);
		else
			leaf = find_leaf(drain, first);
		for (;;)
		{
			uint32		added;

			if (leaf != kept)
			{
				first += split_for_all(drain, leaf, &drain->entries[first],
									   end - first);
				kept = leaf;
			}
			why = AioBtreeFill(drain->batch, drain->key, leaf,
							   &drain->entries[first], end - first, &added);
			first += added;
			if (added > 0)
				steps = 0;
			if (why != AIO_FILL_BEYOND || steps == STEPS_MAX ||
				leaves == LEAVES_MAX)
				break;
			/* to the other half of a page that has been split, as a rule */
			steps++;
			leaves++;
			leaf = _bt_relandgetbuf(index, leaf,
									BTPageGetOpaque(BufferGetPage(leaf))->btpo_next,
									BT_WRITE);
			aio_session_stats_data.leaf_visits++;
		}
		if (why == AIO_FILL_EQUAL)
		{
			insert_on_leaf(drain, leaf, first++);
			continue;
		}
		_bt_unlockbuf(index, leaf);
		if (why == AIO_FILL_ALL)
			break;
		if (why != AIO_FILL_SEARCH)
		{
			/* far away, or gone */
			ReleaseBuffer(leaf);
			leaf = InvalidBuffer;
		}
		if (why != AIO_FILL_BEYOND)
		{
			insert_entry(drain, first++);
			kept = InvalidBuffer;
		}
	}
	if (BufferIsValid(leaf))
		ReleaseBuffer(leaf);
}

/* AioTaskBody: insert a run whose leaf will be split, probably. */
static void
split_and_insert(void *arg)
{
	BtreeRun   *task = arg;

	ReleaseBuffer(ReadBuffer(task->drain->index, task->sibling));
	AioTaskForbidSuspend();
	insert_entries(task->drain, task->buffer, task->run.first, task->run.end);
}

/*
 * The right sibling of a leaf that has no room for a run, if it should be
 * read beforehand; InvalidBlockNumber otherwise.
 */
static BlockNumber
sibling_wanted(BtreeDrain *drain, Buffer buffer, const AioLeafRun *run)
{
	Page		page = BufferGetPage(buffer);
	PageHeader	header = (PageHeader) page;
	Size		wanted = 0;
	BlockNumber sibling = P_NONE;

	/* a look without a lock is good enough to say no */
	for (uint32 i = run->first; i < run->end && wanted < BLCKSZ; i++)
		wanted += MAXALIGN(IndexTupleSize(drain->entries[i].tuple)) + sizeof(ItemIdData);
	if ((int) header->pd_upper - (int) header->pd_lower >= (int) wanted)
		return InvalidBlockNumber;

	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	if (!PageIsNew(page) && P_ISLEAF(BTPageGetOpaque(page)))
		sibling = BTPageGetOpaque(page)->btpo_next;
	LockBuffer(buffer, BUFFER_LOCK_UNLOCK);

	return sibling == P_NONE || sibling == AioLeafStreamPeek(drain->stream) ?
		InvalidBlockNumber : sibling;
}

/*
 * Insert entries that are sorted.  Runs that must await something do so as
 * tasks of the scope, which the caller awaits; scope may be NULL, and all
 * reads then block.
 */
void
AioDrainBtree(AioIndexBatch *batch, AioEntry *entries, AioScope *scope)
{
	BtreeDrain *drain = palloc0(sizeof(BtreeDrain));
	Buffer		buffer;
	AioTaskOptions options = {0};
	BtreeRun	task;

	Assert(TransactionIdIsValid(GetTopTransactionIdIfAny()));
	drain->batch = batch;
	drain->index = batch->index;
	drain->heap = batch->heap;
	drain->entries = entries;
	drain->nentries = batch->nentries;
	drain->page = palloc_aligned(BLCKSZ, MAXIMUM_ALIGNOF, 0);
	drain->key = AioBtreeMakeKey(drain->index);
	drain->stream = AioLeafStreamBegin(batch, plan_runs, drain);

	options.subject = drain->index;
	task.drain = drain;
	while (AioLeafStreamNext(drain->stream, &buffer, &task.run))
	{
		INJECTION_POINT("aio-leaf-planned", NULL);
		/* nbtree tells valgrind that nobody looks at a page without a lock */
		VALGRIND_MAKE_MEM_DEFINED(BufferGetPage(buffer), BLCKSZ);
		_bt_checkpage(drain->index, buffer);
		task.buffer = buffer;
		task.sibling = scope == NULL ? InvalidBlockNumber :
			sibling_wanted(drain, buffer, &task.run);
		VALGRIND_MAKE_MEM_NOACCESS(BufferGetPage(buffer), BLCKSZ);

		if (task.sibling != InvalidBlockNumber)
			AioSpawn(scope, &options, split_and_insert, &task, sizeof(task));
		else
			insert_entries(drain, buffer, task.run.first, task.run.end);
	}
	AioLeafStreamEnd(drain->stream);
	Assert(drain->planned == drain->nentries);

	/* what is in a tree of one page is in memory */
	insert_entries(drain, InvalidBuffer, drain->planned, batch->nentries);
}
