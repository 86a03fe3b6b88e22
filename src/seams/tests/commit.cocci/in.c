static TransactionId
RecordTransactionCommit(void)
{
	if ((wrote_xlog && markXidCommitted &&
		 synchronous_commit > SYNCHRONOUS_COMMIT_OFF) ||
		forceSyncCommit || nrels > 0)
	{
		XLogFlush(XactLastRecEnd);
	}
	return xid;
}

ssize_t
secure_write(Port *port, const void *ptr, size_t len)
{
	ssize_t		n;

	ProcessClientWriteInterrupt(false);

retry:
	n = write_it(port, ptr, len);
	if (n < 0)
		goto retry;
	ProcessClientWriteInterrupt(false);
	return n;
}

ssize_t
secure_read(Port *port, void *ptr, size_t len)
{
	if (n < 0)
	{
		ModifyWaitEvent(FeBeWaitSet, FeBeWaitSetSocketPos, waitfor, NULL);
		wait();
	}
	return n;
}

void
ReadyForQuery(CommandDest dest)
{
	switch (dest)
	{
		case DestRemote:
			pq_flush();
			break;
		default:
			break;
	}
}

void
quickdie(SIGNAL_ARGS)
{
	sigaddset(&BlockSig, SIGQUIT);
	_exit(2);
}

void
ProcessInterrupts(void)
{
	if (InterruptHoldoffCount != 0)
		return;
	if (ParallelMessagePending)
		ProcessParallelMessages();
}
