/*-------------------------------------------------------------------------
 *
 * relcache_internals.c
 *	  Included at the end of utils/cache/relcache.c: whether an entry is being
 *	  made.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "aio/server.h"

/*
 * Is an entry of the relation cache being made, or has an error left it half
 * made?  Only the end of a transaction, or of a subtransaction, clears that up.
 */
bool
AioRelcacheIsBuilding(void)
{
	return in_progress_list_len > 0;
}
