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

#include "access/spgist.h"
#include "built_in_ams.h"

static const AioIndexAmOps spgist_ops = {
	.insert = spginsert,
	.concurrency = AIO_INDEX_CONCURRENT,
	.may_collect = AioTypeHasOrder,
	.collect = AioCollectValues,
	.collects_input = true,
	.sort = AioSortByType,
	.drain = AioDrainOrdered,
};

void
AioRegisterSpgist(void)
{
	AioRegisterIndexAm(&spgist_ops);
}
