/*-------------------------------------------------------------------------
 *
 * gin_am.c
 *	  What may be done with inserts into GIN indexes.
 *
 * What gininsert() keeps in ii_AmCache is only read by later inserts, so any
 * number of them may be suspended.  Batches consist of keys, not of rows
 * (gin_drain.c).
 *
 * Tests: src/test/aio/sql/sql/access_methods.sql,
 *		  src/test/aio/index/t/001_backlog.pl.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/gin_private.h"
#include "built_in_ams.h"
#include "catalog/pg_am.h"
#include "utils/rel.h"

/* What is better off in the pending list is put there when it is drained. */
static bool
may_collect(const AioIndexBatch *batch)
{
	return true;
}

static const AioIndexAmOps gin_ops = {
	.insert = gininsert,
	.concurrency = AIO_INDEX_CONCURRENT,
	.may_collect = may_collect,
	.collect = AioCollectGin,
	.drain = AioDrainGin,
	.forget = AioFreeGin,
};

void
AioRegisterGin(void)
{
	AioRegisterIndexAm(&gin_ops);
}
