/*-------------------------------------------------------------------------
 *
 * worker_internals.c
 *	  Included at the end of replication/logical/worker.c: what the messages
 *	  that have been worked on have led to.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "aio/apply_ahead.h"

/* Will the next message be that of a transaction that is streamed? */
bool
AioInStream(void)
{
	return in_streamed_transaction;
}
