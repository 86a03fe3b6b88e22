/*-------------------------------------------------------------------------
 *
 * btree_am.c
 *	  What may be done with inserts into btrees.
 *
 * Any number of inserts may be suspended at a time: btinsert() keeps nothing
 * between calls but hints.  Batches are inserted in the order of the tree.
 * Keys that are enforced may wait: they are inserted as those of deferrable
 * constraints are, and checked again like these.
 *
 * Tests: src/test/aio/sql/sql/access_methods.sql,
 *		  src/test/aio/index/t/001_backlog.pl.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/nbtree.h"
#include "built_in_ams.h"

/* In indexes of older versions, equal keys have no order. */
static bool
may_collect(const AioIndexBatch *batch)
{
	bool		heapkeyspace;
	bool		allequalimage;

	_bt_metaversion(batch->index, &heapkeyspace, &allequalimage);
	return heapkeyspace;
}

/*
 * Tuples that are too large for a page are for btinsert() to complain about.
 * Others have their place: an operator class of a btree orders all values of
 * its type, also if it is not built in.
 */
static bool
collect(AioIndexBatch *batch, const AioIndexRow *row,
		const Datum *values, const bool *isnull)
{
	IndexTuple	tuple;
	bool		fits;

	if (AioBatchFormTuple(batch, row, values, isnull))
		return true;
	tuple = index_form_tuple(batch->desc, values, isnull);
	fits = MAXALIGN(IndexTupleSize(tuple)) <= BTMaxItemSize;
	if (fits)
		AioBatchAddTuple(batch, row, tuple);
	pfree(tuple);
	return fits;
}

static void
check_again(AioIndexBatch *batch, IndexTuple tuple, bool inserted)
{
	Assert(batch->unique);
	_bt_doinsert(batch->index, tuple,
				 inserted ? UNIQUE_CHECK_EXISTING : UNIQUE_CHECK_YES,
				 false, batch->heap);
}

static Tuplesortstate *
begin_sort(AioIndexBatch *batch, int kilobytes)
{
	Assert(!batch->unique);
	return tuplesort_begin_index_btree(batch->heap, batch->index, false, false,
									   kilobytes, NULL, TUPLESORT_NONE);
}

static int
upcoming(IndexScanDesc scan, ScanDirection direction, int skip,
		 ItemPointer tids, int max, BlockNumber *next)
{
	BTScanPos	pos = &((BTScanOpaque) scan->opaque)->currPos;
	int			step = ScanDirectionIsForward(direction) ? 1 : -1;
	int			n = 0;

	if (!BTScanPosIsValid(*pos))
		return 0;
	for (int i = pos->itemIndex + step * (1 + skip);
		 i >= pos->firstItem && i <= pos->lastItem && n < max; i += step)
		tids[n++] = pos->items[i].heapTid;
	*next = step > 0 ? (pos->moreRight ? pos->nextPage : P_NONE) :
		(pos->moreLeft ? pos->prevPage : P_NONE);
	if (*next == P_NONE)
		*next = InvalidBlockNumber;
	return n;
}

/*
 * The last of several arrays changes fastest.  Arrays that are those of skip
 * scans have no elements, and what comes next depends on what is found.
 */
static bool
upcoming_search(IndexScanDesc scan, ScanDirection direction, int ahead,
				ScanKey keys, int *at)
{
	BTScanOpaque so = (BTScanOpaque) scan->opaque;
	int			last;
	int			step = ScanDirectionIsForward(direction) ? 1 : -1;
	int			narrays = 0;
	int			element;

	/* the rest is set with these, when a scan begins to search */
	if (so->arrayKeys == NULL || !so->qual_ok || so->numArrayKeys == 0 ||
		so->skipScan)
		return false;
	last = so->numArrayKeys - 1;
	element = so->arrayKeys[last].cur_elem + step * ahead;
	if (element < 0 || element >= so->arrayKeys[last].num_elems)
		return false;

	memcpy(keys, scan->keyData, scan->numberOfKeys * sizeof(ScanKeyData));
	for (int i = 0; i < scan->numberOfKeys; i++)
	{
		ScanKey		key = &keys[i];

		if ((key->sk_flags & SK_SEARCHARRAY) == 0)
			continue;
		narrays++;
		for (int j = 0; j <= last; j++)
		{
			const BTArrayKeyInfo *array = &so->arrayKeys[j];

			if (so->keyData[array->scan_key].sk_attno != key->sk_attno)
				continue;
			key->sk_argument = array->elem_values[j == last ? element :
												  array->cur_elem];
			key->sk_flags &= ~SK_SEARCHARRAY;
		}
		if ((key->sk_flags & SK_SEARCHARRAY) != 0)
			return false;
	}
	*at = step * element;

	/* several arrays for one column are one by now */
	return narrays == so->numArrayKeys;
}

/*
 * A search that finds nothing ends the scan, unless another one follows: then
 * it would be made again and again.
 */
static bool
search_may_end(IndexScanDesc scan)
{
	return !((BTScanOpaque) scan->opaque)->needPrimScan;
}

static const AioIndexAmOps btree_ops = {
	.insert = btinsert,
	.concurrency = AIO_INDEX_CONCURRENT,
	.look_ahead = AioBtreeReadAhead,
	.page_arrived = AioBtreeWatchPage,
	.may_collect = may_collect,
	.collect = collect,
	.in_order = AioBtreeInOrder,
	.sort = AioSortBtree,
	.drain = AioDrainBtree,
	.check_again = check_again,
	.begin_sort = begin_sort,
	.spread = AioBtreeSpread,
	.scans_suspend = true,
	.search_may_end = search_may_end,
	.upcoming = upcoming,
	.upcoming_search = upcoming_search,
};

void
AioRegisterBtree(void)
{
	AioRegisterIndexAm(&btree_ops);
}
