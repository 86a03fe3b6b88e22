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

/* Is the receiver that of CREATE TABLE AS, and none of somebody around it? */
bool
AioIsIntoRel(const DestReceiver *dest)
{
	return dest->receiveSlot == intorel_receive;
}

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

	Assert(AioIsIntoRel(dest));
	return target;
}
