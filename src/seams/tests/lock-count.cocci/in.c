static void
GrantLockLocal(LOCALLOCK *locallock)
{
	locallock->nLocks++;
	locallock->lockOwners[i].nLocks++;
}

static void
RemoveLocalLock(LOCALLOCK *locallock)
{
	int i;

	for (i = 0; i < locallock->numLockOwners; i++)
		forget(i);
}

bool
LockRelease(void)
{
	locallock->nLocks--;
	if (locallock->nLocks > 0)
		return true;
	RemoveLocalLock(locallock);
	return true;
}
