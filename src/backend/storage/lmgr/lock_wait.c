/*-------------------------------------------------------------------------
 *
 * lock_wait.c
 *	  Tasks and heavyweight locks: waiting for one, and holding one.
 *
 * A heavyweight lock is waited for by the process, so the siblings of the
 * task that waits would stay suspended, and keep their pins, for as long as
 * another transaction takes.  VACUUM could then wait for one of these pins
 * while the other transaction waits for VACUUM: a deadlock that the detector
 * cannot see.  So the task lets its siblings finish first.
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

/* A heavyweight lock is about to be waited for, in a task. */
void
AioLetSiblingsFinish(void)
{
	AioAwaitSiblingsIdle();
}
