/*-------------------------------------------------------------------------
 *
 * spgist_am.c
 *	  What may be done with inserts into SP-GiST indexes.
 *
 * spginsert() keeps nothing between calls but hints in rd_amcache, so any
 * number of inserts may be suspended.  Batches are inserted entry by entry,
 * near ones together, by the order of their type.
 *
 * Tests: src/test/aio/sql/sql/access_methods.sql,
 *		  src/test/aio/index/t/001_backlog.pl.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/relscan.h"
#include "access/spgist_private.h"
#include "built_in_ams.h"

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

static bool
collect(AioIndexBatch *batch, const AioIndexRow *row,
		const Datum *values, const bool *isnull)
{
	return AioCanPlace(batch, values, isnull) &&
		AioCollectValues(batch, row, values, isnull);
}

static const AioIndexAmOps spgist_ops = {
	.insert = spginsert,
	.concurrency = AIO_INDEX_CONCURRENT,
	.may_collect = AioTypeHasOrder,
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
