/*-------------------------------------------------------------------------
 *
 * lock_wait.c
 *	  Tasks and heavyweight locks: waiting for one.
 *
 * A heavyweight lock is waited for by the process, so the siblings of the
 * task that waits would stay suspended, and keep their pins, for as long as
 * another transaction takes.  VACUUM could then wait for one of these pins
 * while the other transaction waits for VACUUM: a deadlock that the detector
 * cannot see.  So the task lets its siblings finish first.  Then nothing is
 * left that its messages for the client could wait for, but the other
 * transaction.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/transam.h"
#include "aio/client.h"
#include "aio/io_internal.h"
#include "aio/sibling_locks.h"
#include "catalog/catalog.h"
#include "miscadmin.h"
#include "storage/proc.h"
#include "utils/inval.h"
#include "utils/rel.h"

/* A heavyweight lock is about to be waited for, in a task. */
void
AioLetSiblingsFinish(void)
{
	AioAwaitSiblingsIdle();
	if (unlikely(aio_messages_kept))
		AioSendKeptBeforeWait();
}

/*
 * May index entries be inserted, and relations closed, before this lock is
 * waited for?  A catalog's may be asked for in the middle of a look-up into one
 * of PostgreSQL's caches, whose entry is half made: of a relation, which must
 * not be closed then, or of a collation, while to insert entries looks up
 * others.  Nor in a task, nor by who has a page locked.
 */
bool
AioMayDrainBeforeLock(const LOCKTAG *tag)
{
	return (tag->locktag_type != LOCKTAG_RELATION ||
			tag->locktag_field2 >= FirstNormalObjectId) &&
		aio_current_task == NULL && CritSectionCount == 0 && AioHeldLWLocks() == 0;
}

/*
 * Would whoever asks for this lock get it at once?  It is got and given back to
 * find out: somebody may have it, or there may be no room for it.  Not for a
 * lock of which standbys are told.
 */
bool
AioLockIsToBeHad(const LOCKTAG *tag, LOCKMODE mode, bool session)
{
	Assert(tag->locktag_type != LOCKTAG_RELATION || mode != AccessExclusiveLock);

	if (LockHeldByMe(tag, mode, false))
		return true;
	if (LockAcquireExtended(tag, mode, session, true, false, NULL, false) ==
		LOCKACQUIRE_NOT_AVAIL)
		return false;
	LockRelease(tag, mode, session);
	return true;
}

/*
 * Lock a relation, if that need not be waited for, and if there is room for the
 * lock: who only guesses that he needs it raises no error that PostgreSQL would
 * not.  A shared relation's lock is another one.
 */
bool
AioLockIfFree(Oid relid, LOCKMODE mode)
{
	LOCKTAG		tag;
	LOCALLOCK  *lock;
	LockAcquireResult result;

	SET_LOCKTAG_RELATION(tag, IsSharedRelation(relid) ? InvalidOid : MyDatabaseId,
						 relid);
	result = LockAcquireExtended(&tag, mode, false, true, false, &lock, false);
	if (result == LOCKACQUIRE_NOT_AVAIL)
		return false;
	if (result != LOCKACQUIRE_ALREADY_CLEAR)
	{
		AcceptInvalidationMessages();
		MarkLockClear(lock);
	}
	return true;
}

/*
 * Does a process wait for a lock on this relation?  A lock that is held by the
 * fast path is in the shared table only if somebody wanted one that conflicts.
 */
bool
AioSomebodyWaitsFor(Relation rel)
{
	LOCKTAG		tag;
	LWLock	   *partition;
	bool		result = false;

	SET_LOCKTAG_RELATION(tag, rel->rd_lockInfo.lockRelId.dbId,
						 rel->rd_lockInfo.lockRelId.relId);
	/* those who have it are counted, too */
	if (LockWaiterCount(&tag) == 0)
		return false;

	partition = LockHashPartitionLock(LockTagHashCode(&tag));
	LWLockAcquire(partition, LW_SHARED);
	for (uint32 i = 0; i < ProcGlobal->allProcCount && !result; i++)
	{
		/* of other partitions, it may change meanwhile, but locks stay locks */
		LOCK	   *lock = *(LOCK *volatile *) &GetPGProcByNumber(i)->waitLock;

		result = lock != NULL && memcmp(&lock->tag, &tag, sizeof(tag)) == 0;
	}
	LWLockRelease(partition);
	return result;
}
