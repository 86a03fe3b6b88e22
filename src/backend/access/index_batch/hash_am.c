/*-------------------------------------------------------------------------
 *
 * hash_am.c
 *	  What may be done with inserts into hash indexes.
 *
 * INVARIANT-18: an insert is not suspended between its look at the cached
 * metapage and its end, as a sibling could refresh that cache.  It reads the
 * page of its bucket before.  Batches are inserted bucket by bucket.
 *
 * Tests: src/test/aio/sql/sql/access_methods.sql,
 *		  src/test/aio/index/t/001_backlog.pl.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/hash.h"
#include "access/relscan.h"
#include "built_in_ams.h"

/* Neighbours in a bucket help each other in any hash index. */
static bool
may_collect(const AioIndexBatch *batch)
{
	return true;
}

/* A hash index has hash values, and none of keys that are null. */
static bool
collect(AioIndexBatch *batch, const AioIndexRow *row,
		const Datum *values, const bool *isnull)
{
	Datum		hash;
	bool		hash_isnull;
	IndexTuple	tuple;

	if (!_hash_convert_tuple(batch->index, unconstify(Datum *, values),
							 unconstify(bool *, isnull), &hash, &hash_isnull))
		return true;
	Assert(!hash_isnull);
	if (AioBatchFormTuple(batch, row, &hash, &hash_isnull))
		return true;
	tuple = index_form_tuple(batch->desc, &hash, &hash_isnull);
	AioBatchAddTuple(batch, row, tuple);
	pfree(tuple);
	return true;
}

static int
upcoming(IndexScanDesc scan, ScanDirection direction, int skip,
		 ItemPointer tids, int max, BlockNumber *next)
{
	HashScanPosData *pos = &((HashScanOpaque) scan->opaque)->currPos;
	int			step = ScanDirectionIsForward(direction) ? 1 : -1;
	int			n = 0;

	if (!HashScanPosIsValid(*pos))
		return 0;
	for (int i = pos->itemIndex + step * (1 + skip);
		 i >= pos->firstItem && i <= pos->lastItem && n < max; i += step)
		tids[n++] = pos->items[i].heapTid;
	*next = step > 0 ? pos->nextPage : pos->prevPage;
	return n;
}

static const AioIndexAmOps hash_ops = {
	.insert = hashinsert,
	.concurrency = AIO_INDEX_CONCURRENT,
	.look_ahead = AioHashReadAhead,
	.reads_first = true,
	.may_collect = may_collect,
	.collect = collect,
	.sort = AioSortBuckets,
	.drain = AioDrainHash,
	.scans_suspend = true,
	.upcoming = upcoming,
};

void
AioRegisterHash(void)
{
	AioRegisterIndexAm(&hash_ops);
}
