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
