/*-------------------------------------------------------------------------
 *
 * worker_internals.c
 *	  Included at the end of replication/logical/worker.c: what the messages
 *	  that have been worked on have led to, and what is worked on.
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

/*
 * Is the row that is being applied one of a table whose replica identity, at
 * the publisher, is all of its columns?
 */
bool
AioAppliedIdentityIsFull(void)
{
	const LogicalRepRelMapEntry *rel = apply_error_callback_arg.rel;

	return rel != NULL && rel->remoterel.replident == REPLICA_IDENTITY_FULL;
}
