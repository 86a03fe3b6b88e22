void
LockRelationOid(Oid relid, LOCKMODE lockmode)
{
	LOCKTAG		tag;
	LOCALLOCK  *locallock;
	LockAcquireResult res;

	name(&tag, relid);
	res = LockAcquireExtended(&tag, lockmode, false, false, true, &locallock, false);
	AioTableLocked(&tag, lockmode);
	if (res != LOCKACQUIRE_ALREADY_CLEAR)
		clear(locallock);
}

bool
ConditionalLockRelationOid(Oid relid, LOCKMODE lockmode)
{
	LOCKTAG		tag;
	LOCALLOCK  *locallock;
	LockAcquireResult res;

	name(&tag, relid);
	res = LockAcquireExtended(&tag, lockmode, false, true, true, &locallock, false);
	return res != LOCKACQUIRE_NOT_AVAIL;
}
