/*-------------------------------------------------------------------------
 *
 * createas_internals.c
 *	  Included at the end of commands/createas.c: into which table a receiver
 *	  inserts.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "aio/parallel_insert.h"

/* The receiver is one of CREATE TABLE AS, and has begun.  No rel: no data. */
AioInsertTarget
AioIntoTarget(DestReceiver *dest)
{
	DR_intorel *into = (DR_intorel *) dest;
	AioInsertTarget target = {
		.rel = into->into->skipData ? NULL : into->rel,
		.cid = into->output_cid,
		.options = into->ti_options,
	};

	Assert(dest->mydest == DestIntoRel);
	return target;
}
