void
XactLockTableWait(TransactionId xid)
{
	LOCKTAG tag;
	bool first = true;

	prepare(&tag);
	for (;;)
		wait(xid);
}

void
SpeculativeInsertionWait(TransactionId xid)
{
	LOCKTAG tag;

	(void) LockAcquire(&tag, ShareLock, false, false);
	LockRelease(&tag, ShareLock, false);
}
