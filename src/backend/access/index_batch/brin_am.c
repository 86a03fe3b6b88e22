/*-------------------------------------------------------------------------
 *
 * brin_am.c
 *	  What may be done with inserts into BRIN indexes.
 *
 * ii_AmCache has the pin on the page of the range map in use, so that only one
 * insert may be under way.  Entries are not collected: a row changes the
 * summary of its range or, most often, nothing.
 *
 * Tests: src/test/aio/sql/sql/access_methods.sql,
 *		  src/test/aio/index/t/001_backlog.pl.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/brin_internal.h"
#include "built_in_ams.h"

static const AioIndexAmOps brin_ops = {
	.insert = brininsert,
	.concurrency = AIO_INDEX_SERIAL,
};

void
AioRegisterBrin(void)
{
	AioRegisterIndexAm(&brin_ops);
}
