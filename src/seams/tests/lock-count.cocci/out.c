int
LockAcquireExtended(const LOCKTAG *tag)
{
	if (!found)
	{
		locallock->lock = NULL;
		AioLocalLockCreated(&localtag.lock);
		locallock->hashcode = LockTagHashCode(&(localtag.lock));
	}
	return 0;
}

static void
RemoveLocalLock(LOCALLOCK *locallock)
{
	int i;

	AioLocalLockRemoved(&locallock->tag.lock);
	for (i = 0; i < locallock->owners; i++)
		forget(locallock);
	free(locallock->list);
}
