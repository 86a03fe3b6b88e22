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
 * Does this worker apply changes of the relation?  As far as is known: the
 * relation's state is that of its last change, and upstream decides for the
 * transaction that is being applied, which later ones may differ from.  Asked
 * about a relation that is not ready, it would end a parallel worker, which has
 * to wait until a change is due.
 */
bool
AioAppliesChangesOf(const LogicalRepRelMapEntry *entry)
{
	if (am_parallel_apply_worker() && entry->state != SUBREL_STATE_READY)
		return false;
	return should_apply_changes_for_rel(unconstify(LogicalRepRelMapEntry *, entry));
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

/*
 * Does the row that is being applied get a default in this column of the table
 * that is its destination, as the publisher does not send the column?
 */
bool
AioAppliedColumnIsMissing(Oid relid, int column)
{
	const LogicalRepRelMapEntry *rel = apply_error_callback_arg.rel;

	return rel != NULL && rel->localreloid == relid &&
		column <= rel->attrmap->maplen && rel->attrmap->attnums[column - 1] < 0;
}
