/*-------------------------------------------------------------------------
 *
 * sibling_locks.h
 *	  Heavyweight locks that protect a task from other processes, but not from
 *	  its siblings.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AIO_SIBLING_LOCKS_H
#define AIO_SIBLING_LOCKS_H

#include "aio/client.h"
#include "aio/table_gate.h"
#include "aio/task.h"
#include "storage/lock.h"
#include "utils/relcache.h"

/* number of held locks of a kind that must exclude sibling tasks */
extern PGDLLIMPORT int aio_sibling_locks;

extern void AioLetSiblingsFinish(void);
extern bool AioSomebodyWaitsFor(Relation rel);
extern bool AioMayDrainBeforeLock(const LOCKTAG *tag);
extern bool AioLockIsToBeHad(const LOCKTAG *tag, LOCKMODE mode, bool session);
extern bool AioLockIfFree(Oid relid, LOCKMODE mode);

/* wherever it is about to wait for another transaction */
static inline void
AioBeforeLockWait(void)
{
	Assert(!AioGateIsMine());
	if (unlikely(aio_current_task != NULL))
		AioLetSiblingsFinish();
	else if (unlikely(aio_messages_kept))
		AioSendKeptBeforeWait();
}

/*
 * Locks of these kinds belong to the process and protect it from others only:
 * two tasks of one backend would both own them.  Hence a task that took one
 * does not suspend before it gave it back.
 */
static inline bool
AioLockExcludesSiblings(const LOCKTAG *tag)
{
	switch ((LockTagType) tag->locktag_type)
	{
		case LOCKTAG_RELATION_EXTEND:
		case LOCKTAG_PAGE:
		case LOCKTAG_TUPLE:
		case LOCKTAG_SPECULATIVE_TOKEN:
			return true;
		default:
			return false;
	}
}

/* lock.c: this process is about to hold a lock once, or once more */
static inline void
AioLocalLockGranted(const LOCALLOCK *lock)
{
	if (lock->nLocks == 0 && AioLockExcludesSiblings(&lock->tag.lock))
		aio_sibling_locks++;
}

/* lock.c: it holds it once less */
static inline void
AioLocalLockReleased(const LOCALLOCK *lock)
{
	Assert(lock->nLocks >= 0);
	if (lock->nLocks == 0 && AioLockExcludesSiblings(&lock->tag.lock))
	{
		Assert(aio_sibling_locks > 0);
		aio_sibling_locks--;
	}
}

/* lock.c: it holds it no more, however often it did */
static inline void
AioLocalLockRemoved(const LOCALLOCK *lock)
{
	if (lock->nLocks > 0 && AioLockExcludesSiblings(&lock->tag.lock))
	{
		Assert(aio_sibling_locks > 0);
		aio_sibling_locks--;
	}
}

#endif							/* AIO_SIBLING_LOCKS_H */
