static void
LogicalRepApplyLoop(XLogRecPtr last_received)
{
	for (;;)
	{
		len = walrcv_receive(LogRepWorkerWalRcvConn, &buf, &fd);
		if (len != 0)
		{
			for (;;)
			{
				apply_dispatch(&s);
				len = walrcv_receive(LogRepWorkerWalRcvConn, &buf, &fd);
			}
		}
	}
}

void
apply_spooled_messages(FileSet *stream_fileset, TransactionId xid, XLogRecPtr lsn)
{
	while (true)
	{
		BufFileReadExact(stream_fd, buffer, len);
		apply_dispatch(&s2);
	}
}

static void
LogicalParallelApplyLoop(shm_mq_handle *mqh)
{
	for (;;)
	{
		shmq_res = shm_mq_receive(mqh, &len, &data, true);
	}
}

void
HandleParallelApplyMessageInterrupt(void)
{
	res = shm_mq_receive(winfo->error_mq_handle, &nbytes, &data, true);
	BufFileReadExact(fd, &nsubxacts, sizeof(nsubxacts));
}
