static void
LogicalRepApplyLoop(XLogRecPtr last_received)
{
	for (;;)
	{
		len = AioReceiveMessage(LogRepWorkerWalRcvConn, &buf, &fd);
		if (len != 0)
		{
			for (;;)
			{
				apply_dispatch(&s);
				len = AioReceiveMessage(LogRepWorkerWalRcvConn, &buf, &fd);
			}
		}
	}
}

void
apply_spooled_messages(FileSet *stream_fileset, TransactionId xid, XLogRecPtr lsn)
{
	while (true)
	{
		AioReadSpooledMessage(stream_fd, buffer, len);
		apply_dispatch(&s2);
	}
}

static void
LogicalParallelApplyLoop(shm_mq_handle *mqh)
{
	for (;;)
	{
		shmq_res = AioReceiveFromLeader(mqh, &len, &data, true);
	}
}

void
HandleParallelApplyMessageInterrupt(void)
{
	res = shm_mq_receive(winfo->error_mq_handle, &nbytes, &data, true);
	BufFileReadExact(fd, &nsubxacts, sizeof(nsubxacts));
}
