/*-------------------------------------------------------------------------
 *
 * btree_drain.c
 *	  Insert sorted entries into a btree: a merge of the entries with the
 *	  leaves that the pages above list.
 *
 * The plan: descend to the lowest page that is not a leaf, copy it, and find
 * between which of its separators the entries fall.  Each stretch of entries
 * that fall on one leaf is a run; leaf_stream.c reads the leaves ahead.  Then
 * each run is inserted by _bt_doinsert(), which finds the leaf at hand instead
 * of descending (btree_leaf.c).  Where the tree has changed in the meantime,
 * it descends as usual.
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

#include "access/nbtree.h"
#include "aio/btree_leaf.h"
#include "aio/index_backlog.h"
#include "built_in_ams.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "utils/memdebug.h"
#include "utils/rel.h"

/* upper limit of the runs planned from one page above the leaves */
#define RUNS_PER_PAGE	512

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
make_key(BtreeDrain *drain, uint32 entry)
{
	BTScanInsert key = _bt_mkscankey(drain->index, drain->entries[entry].tuple);

	Assert(entry < drain->batch->nentries);
	Assert(key->heapkeyspace);

	/* a unique check begins at the first tuple with this key */
	if (drain->batch->unique && !key->anynullkeys)
		key->scantid = NULL;
	return key;
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
 * Copy the lowest page above the leaves on the way to a key.  Returns false if
 * there is none.
 */
static bool
descend(BtreeDrain *drain, BTScanInsert key)
{
	Relation	index = drain->index;
	Buffer		buffer = _bt_getroot(index, NULL, BT_READ);

	if (!BufferIsValid(buffer))
		return false;
	for (;;)
	{
		Page		page = BufferGetPage(buffer);
		BTPageOpaque opaque = BTPageGetOpaque(page);

		if (!P_RIGHTMOST(opaque) &&
			(P_IGNORE(opaque) ||
			 _bt_compare(index, key, page, P_HIKEY) > 0))
			buffer = _bt_relandgetbuf(index, buffer, opaque->btpo_next, BT_READ);
		else if (P_IGNORE(opaque) || P_ISLEAF(opaque))
		{
			_bt_relbuf(index, buffer);
			return false;
		}
		else if (opaque->btpo_level == 1)
		{
			memcpy(drain->page, page, BLCKSZ);
			_bt_relbuf(index, buffer);
			return true;
		}
		else
		{
			OffsetNumber child = find_child(drain, key, page,
											P_FIRSTDATAKEY(opaque));

			buffer = _bt_relandgetbuf(index, buffer, downlink(page, child), BT_READ);
		}
	}
}

/* Is an entry greater than an item of the copied page? */
static bool
is_beyond(BtreeDrain *drain, uint32 entry, OffsetNumber item)
{
	BTScanInsert key = make_key(drain, entry);
	bool		result = _bt_compare(drain->index, key, drain->page, item) > 0;

	pfree(key);
	return result;
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
	BTScanInsert key;
	OffsetNumber child;

	if (drain->planned == drain->nentries)
		return;

	key = make_key(drain, drain->planned);
	if (!descend(drain, key))
	{
		/* a tree of one page; what is left is not planned */
		pfree(key);
		drain->nentries = drain->planned;
		return;
	}
	opaque = BTPageGetOpaque(page);
	child = P_FIRSTDATAKEY(opaque);
	for (int i = 0; i < RUNS_PER_PAGE && AioLeafStreamRoom(stream) > 0; i++)
	{
		bool		last;
		uint32		end = drain->nentries;

		child = find_child(drain, key, page, child);
		pfree(key);
		last = child == PageGetMaxOffsetNumber(page);
		if (!last)
			end = find_end(drain, drain->planned, child + 1);
		else if (!P_RIGHTMOST(opaque))
			end = find_end(drain, drain->planned, P_HIKEY);
		AioLeafStreamPlan(stream, downlink(page, child), drain->planned, end);
		drain->planned = end;
		if (last || end == drain->nentries)
			return;
		key = make_key(drain, end);
		if (!P_RIGHTMOST(opaque) &&
			_bt_compare(drain->index, key, page, P_HIKEY) > 0)
			break;
	}
	pfree(key);
}

/* ------------------------------------------------------------------------
 * Inserting
 * ------------------------------------------------------------------------
 */

/*
 * Insert entries, beginning with a leaf, whose pin is given back, or with
 * none.
 */
static void
insert_entries(BtreeDrain *drain, Buffer buffer, uint32 first, uint32 end)
{
	AioBtreeLeaf leaf;

	Assert(first <= end && end <= drain->batch->nentries);
	/* no other code relies on the order of its entries meanwhile */
	Assert(aio_btree_leaf == NULL);

	leaf.index = drain->index;
	leaf.buffer = buffer;

	PG_TRY();
	{
		aio_btree_leaf = &leaf;
		for (uint32 i = first; i < end; i++)
		{
			CHECK_FOR_INTERRUPTS();
			if (!drain->batch->unique)
				_bt_doinsert(drain->index, drain->entries[i].tuple,
							 UNIQUE_CHECK_NO, drain->batch->unchanged, drain->heap);
			else if (AioGetEntryRow(drain->entries[i].tuple)->duplicate ||
					 !_bt_doinsert(drain->index, drain->entries[i].tuple,
								   UNIQUE_CHECK_PARTIAL, false, drain->heap))
				AioBacklogConflict(drain->batch, drain->entries[i].tuple);
		}
	}
	PG_FINALLY();
	{
		aio_btree_leaf = NULL;
	}
	PG_END_TRY();
	if (BufferIsValid(leaf.buffer))
		ReleaseBuffer(leaf.buffer);
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

	drain->batch = batch;
	drain->index = batch->index;
	drain->heap = batch->heap;
	drain->entries = entries;
	drain->nentries = batch->nentries;
	drain->page = palloc_aligned(BLCKSZ, MAXIMUM_ALIGNOF, 0);
	drain->stream = AioLeafStreamBegin(batch, plan_runs, drain);

	options.subject = drain->index;
	task.drain = drain;
	while (AioLeafStreamNext(drain->stream, &buffer, &task.run))
	{
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
