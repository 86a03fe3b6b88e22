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

/* Tuples that are too large for a page are for btinsert() to complain about. */
static bool
collect(AioIndexBatch *batch, const AioIndexRow *row,
		const Datum *values, const bool *isnull)
{
	IndexTuple	tuple = index_form_tuple(batch->desc, values, isnull);
	bool		fits = MAXALIGN(IndexTupleSize(tuple)) <= BTMaxItemSize;

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
};

void
AioRegisterBtree(void)
{
	AioRegisterIndexAm(&btree_ops);
}
