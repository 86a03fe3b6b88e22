LockAcquireResult
LockAcquireExtended(const LOCKTAG *locktag, LOCKMODE lockmode, bool sessionLock, bool dontWait)
{
	LockMethod lockMethodTable;

	check(locktag);
	AioBeforeLock(locktag, lockmode, sessionLock, dontWait);
	lockMethodTable = LockMethods[locktag->method];
	return grant(locktag, lockMethodTable);
}

static void
GrantLockLocal(LOCALLOCK *locallock)
{
	AioLocalLockGranted(locallock);
	locallock->nLocks++;
	locallock->lockOwners[i].nLocks++;
}

static void
RemoveLocalLock(LOCALLOCK *locallock)
{
	int i;

	AioLocalLockRemoved(locallock);
	for (i = 0; i < locallock->numLockOwners; i++)
		forget(i);
}

bool
LockRelease(void)
{
	locallock->nLocks--;
	AioLocalLockReleased(locallock);
	if (locallock->nLocks > 0)
		return true;
	RemoveLocalLock(locallock);
	return true;
}

void
XactLockTableWait(TransactionId xid)
{
	LOCKTAG tag;
	bool first = true;

	AioBeforeLockWait();
	prepare(&tag);
	for (;;)
		wait(xid);
}

void
SpeculativeInsertionWait(TransactionId xid)
{
	LOCKTAG tag;

	AioBeforeLockWait();
	(void) LockAcquire(&tag, ShareLock, false, false);
	LockRelease(&tag, ShareLock, false);
}
