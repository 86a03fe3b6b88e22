/*-------------------------------------------------------------------------
 *
 * built_in_ams.c
 *	  Register PostgreSQL's own access methods.
 *
 * They are registered like those of extensions: nothing else in this directory
 * knows which access methods there are.
 *
 * Tests: src/test/aio/sql/sql/access_methods.sql.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "aio/index_insert.h"
#include "built_in_ams.h"

/* Called once, when the server starts. */
void
AioRegisterBuiltInAms(void)
{
	AioRegisterBtree();
	AioRegisterHash();
	AioRegisterGin();
	AioRegisterGist();
	AioRegisterSpgist();
	AioRegisterBrin();
}
