/*-------------------------------------------------------------------------
 *
 * sibling_locks.c
 *	  Tasks and heavyweight locks that exclude siblings: holding one.
 *
 * Holding a lock protects a task from other processes, not from its siblings.
 * The count of locks for which that matters is kept here; AioMaySuspend()
 * compares it.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "aio/sibling_locks.h"

/* locks held for which AioLockExcludesSiblings() */
int			aio_sibling_locks = 0;
