/*-------------------------------------------------------------------------
 *
 * matview_internals.c
 *	  Included at the end of commands/matview.c: into which table a receiver
 *	  inserts.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "aio/parallel_insert.h"

/* Is the receiver that of REFRESH, and none of somebody around it? */
bool
AioIsTransientRel(const DestReceiver *dest)
{
	return dest->receiveSlot == transientrel_receive;
}

/* The receiver fills a materialized view, and has begun. */
AioInsertTarget
AioTransientTarget(DestReceiver *dest)
{
	DR_transientrel *view = (DR_transientrel *) dest;
	AioInsertTarget target = {
		.rel = view->transientrel,
		.cid = view->output_cid,
		.options = view->ti_options,
	};

	Assert(AioIsTransientRel(dest));
	return target;
}
