static TransactionId
RecordTransactionCommit(void)
{
	if ((wrote_xlog && markXidCommitted &&
		 synchronous_commit > SYNCHRONOUS_COMMIT_OFF && !AioHoldCommit(XactLastRecEnd)) ||
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

	if (!AioBeforeSend())
		return -1;
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
		AioBeforeClientWait();
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
			AioSendOrHoldReplies();
			break;
		default:
			break;
	}
}

void
quickdie(SIGNAL_ARGS)
{
	AioForbidReplies();
	sigaddset(&BlockSig, SIGQUIT);
	_exit(2);
}

void
ProcessInterrupts(void)
{
	if (InterruptHoldoffCount != 0)
		return;
	AioInterrupts();
	if (ParallelMessagePending)
		ProcessParallelMessages();
}
