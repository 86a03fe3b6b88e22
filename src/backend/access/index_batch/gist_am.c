/*-------------------------------------------------------------------------
 *
 * gist_am.c
 *	  What may be done with inserts into GiST indexes.
 *
 * ii_AmCache has the memory context in which gistinsert() works, so each of
 * several inserts needs its own.  Batches are inserted entry by entry, near
 * ones together, by the order in which upstream builds such an index.
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
#include "built_in_ams.h"

static const AioIndexAmOps gist_ops = {
	.insert = gistinsert,
	.concurrency = AIO_INDEX_STATES,
	.may_collect = AioGistHasOrder,
	.collect = AioCollectValues,
	.collects_input = true,
	.sort = AioSortGist,
	.drain = AioDrainOrdered,
};

void
AioRegisterGist(void)
{
	AioRegisterIndexAm(&gist_ops);
}
