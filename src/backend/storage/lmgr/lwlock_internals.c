/*-------------------------------------------------------------------------
 *
 * lwlock_internals.c
 *	  Included at the end of storage/lmgr/lwlock.c: how many LWLocks are held.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "aio/io_internal.h"

/* Number of LWLocks that this process holds. */
int
AioHeldLWLocks(void)
{
	return num_held_lwlocks;
}
