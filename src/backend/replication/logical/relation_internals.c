/*-------------------------------------------------------------------------
 *
 * relation_internals.c
 *	  Included at the end of replication/logical/relation.c: what is known of a
 *	  relation of the publisher.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "aio/apply_ahead.h"

/*
 * What has been found out when a change of this relation was applied last, or
 * NULL if none has been, or if that may be out of date.
 */
const LogicalRepRelMapEntry *
AioFindRemoteRelation(uint32 id)
{
	LogicalRepRelMapEntry *entry;

	if (LogicalRepRelMap == NULL)
		return NULL;
	entry = hash_search(LogicalRepRelMap, &id, HASH_FIND, NULL);
	return entry != NULL && entry->localrelvalid ? entry : NULL;
}
