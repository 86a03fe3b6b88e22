/*-------------------------------------------------------------------------
 *
 * spgist_am.c
 *	  What may be done with inserts into SP-GiST indexes.
 *
 * spginsert() keeps nothing between calls but hints in rd_amcache, so any
 * number of inserts may be suspended.  Batches are inserted entry by entry,
 * near ones together, by the order of their type.
 *
 * Not so in a radix tree of strings.  There, in order, the leaves of one inner
 * tuple after the other outgrow their page, move to a new one, and leave space
 * behind that no others use: the index can become three times as large as by
 * rows in any other order, in stock PostgreSQL, too, if it is loaded in order
 * after a thousand other rows.  That of network addresses stays as large as
 * ever.
 *
 * Tests: src/test/aio/sql/sql/access_methods.sql,
 *		  src/test/aio/index/t/001_backlog.pl,
 *		  src/test/aio/index/t/018_first_error.pl.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/relscan.h"
#include "access/spgist_private.h"
#include "built_in_ams.h"
#include "storage/bufmgr.h"
#include "utils/memutils.h"
#include "utils/rel.h"

/* Rows of the page in hand, in an order that is not one of distances. */
static int
upcoming(IndexScanDesc scan, ScanDirection direction, int skip,
		 ItemPointer tids, int max, BlockNumber *next)
{
	SpGistScanOpaque opaque = (SpGistScanOpaque) scan->opaque;
	int			n = 0;

	for (int i = opaque->iPtr + skip; i < opaque->nPtrs && n < max; i++)
		tids[n++] = opaque->heapPtrs[i];
	return n;
}

/* The root's tuple, in the current memory context; NULL if it is a leaf. */
static SpGistInnerTuple
copy_root(Relation index)
{
	Buffer		buffer = ReadBuffer(index, SPGIST_ROOT_BLKNO);
	Page		page = BufferGetPage(buffer);
	SpGistInnerTuple root = NULL;

	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	if (!SpGistPageIsLeaf(page))
	{
		ItemId		item = PageGetItemId(page, FirstOffsetNumber);

		root = memcpy(palloc(ItemIdGetLength(item)), PageGetItem(page, item),
					  ItemIdGetLength(item));
	}
	UnlockReleaseBuffer(buffer);
	return root;
}

static Datum
leaf_datum(Relation index, const SpGistState *state, Datum value)
{
	if (OidIsValid(index_getprocid(index, 1, SPGIST_COMPRESS_PROC)))
		return FunctionCall1Coll(index_getprocinfo(index, 1, SPGIST_COMPRESS_PROC),
								 index->rd_indcollation[0], value);
	return state->attType.attlen == -1 ?
		PointerGetDatum(PG_DETOAST_DATUM(value)) : value;
}

/*
 * Do what an insert would do first, where the root is not a leaf: ask to which
 * of the root's nodes a value goes.  If it goes to none, the error comes now,
 * in the order of rows.  Returns false if the root is a leaf.
 */
static bool
ask_root(Relation index, Datum value)
{
	SpGistInnerTuple root = copy_root(index);
	SpGistState state;
	spgChooseIn in;
	spgChooseOut out;

	if (root == NULL)
		return false;
	initSpGistState(&state, index);
	in.datum = value;
	in.leafDatum = leaf_datum(index, &state, value);
	in.level = 0;
	in.allTheSame = root->allTheSame;
	in.hasPrefix = root->prefixSize > 0;
	in.prefixDatum = SGITDATUM(root, &state);
	in.nNodes = root->nNodes;
	in.nodeLabels = spgExtractNodeLabels(&state, root);
	memset(&out, 0, sizeof(out));
	FunctionCall2Coll(index_getprocinfo(index, 1, SPGIST_CHOOSE_PROC),
					  index->rd_indcollation[0],
					  PointerGetDatum(&in), PointerGetDatum(&out));
	return true;
}

/* INVARIANT-94: likewise, if nothing is known of the operator class. */
static bool
try_to_place(const AioIndexBatch *batch, Datum value)
{
	MemoryContext context;
	MemoryContext old;
	bool		result;

	if (AioOpclassIsBuiltIn(batch->index, 0))
		return true;
	context = AllocSetContextCreate(CurrentMemoryContext,
									"index backlog of SP-GiST entries, one row",
									ALLOCSET_SMALL_SIZES);
	old = MemoryContextSwitchTo(context);
	result = ask_root(batch->index, value);
	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);
	return result;
}

/*
 * AioCanPlace(): what is in no quadrant keeps a root that is a leaf from being
 * split, and is not let in by an inner one, which compares it, unless all that
 * is below is the same.
 */
static bool
root_compares(Relation index)
{
	Buffer		buffer = ReadBuffer(index, SPGIST_ROOT_BLKNO);
	Page		page = BufferGetPage(buffer);
	bool		result;

	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	result = !SpGistPageIsLeaf(page) &&
		!((SpGistInnerTuple) PageGetItem(page, PageGetItemId(page, FirstOffsetNumber)))->allTheSame;
	UnlockReleaseBuffer(buffer);
	return result;
}

/* Nulls are in a tree of their own, which has no operator class. */
static bool
collect(AioIndexBatch *batch, const AioIndexRow *row,
		const Datum *values, const bool *isnull)
{
	return AioCanPlace(batch, values, isnull, root_compares) &&
		(isnull[0] || try_to_place(batch, values[0])) &&
		AioCollectValues(batch, row, values, isnull);
}

/* AioIndexAmOps.may_collect: is there an order, and no tree of strings? */
static bool
may_collect(const AioIndexBatch *batch)
{
	return !OidIsValid(batch->index->rd_indcollation[0]) && AioTypeHasOrder(batch);
}

static const AioIndexAmOps spgist_ops = {
	.insert = spginsert,
	.concurrency = AIO_INDEX_CONCURRENT,
	.may_collect = may_collect,
	.collect = collect,
	.collects_input = true,
	.sort = AioSortByType,
	.drain = AioDrainOrdered,
	.scans_suspend = true,
	.upcoming = upcoming,
};

void
AioRegisterSpgist(void)
{
	AioRegisterIndexAm(&spgist_ops);
}
