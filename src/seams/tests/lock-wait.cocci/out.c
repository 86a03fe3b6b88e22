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
