/*-------------------------------------------------------------------------
 *
 * gist_am.c
 *	  What may be done with inserts into GiST indexes.
 *
 * ii_AmCache has the memory context in which gistinsert() works, so each of
 * several inserts needs its own.  Batches are sorted as upstream sorts what it
 * builds such an index from (gist_drain.c).
 *
 * Tests: src/test/aio/sql/sql/access_methods.sql,
 *		  src/test/aio/index/t/001_backlog.pl.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/gist_private.h"
#include "access/relscan.h"
#include "built_in_ams.h"

/* Rows of the page in hand, in an order that is not one of distances. */
static int
upcoming(IndexScanDesc scan, ScanDirection direction, int skip,
		 ItemPointer tids, int max, BlockNumber *next)
{
	GISTScanOpaque opaque = (GISTScanOpaque) scan->opaque;
	int			n = 0;

	for (int i = opaque->curPageData + skip; i < opaque->nPageData && n < max; i++)
		tids[n++] = opaque->pageData[i].heapPtr;
	return n;
}

static const AioIndexAmOps gist_ops = {
	.insert = gistinsert,
	.concurrency = AIO_INDEX_STATES,
	.may_collect = AioGistHasOrder,
	.collect = AioCollectGist,
	.sort = AioSortGist,
	.drain = AioDrainGist,
	.forget = AioForgetGist,
	.scans_suspend = true,
	.upcoming = upcoming,
};

void
AioRegisterGist(void)
{
	AioRegisterIndexAm(&gist_ops);
}
