void
WalReceiverMain(const void *startup_data, size_t startup_data_len)
{
	for (;;)
	{
		for (;;)
		{
			if (len > 0)
			{
				XLogWalRcvProcessMsg(buf[0], &buf[1], len - 1, startpointTLI);
			}
			else
				break;
		}
		XLogWalRcvSendReply(false, false);
		XLogWalRcvFlush(false, startpointTLI);
		rc = WaitLatchOrSocket(MyLatch, WL_SOCKET_READABLE | WL_LATCH_SET, wait_fd, nap, WAIT_EVENT_WAL_RECEIVER_MAIN);
	}
	XLogWalRcvFlush(false, startpointTLI);
}

static void
XLogWalRcvFlush(bool dying, TimeLineID tli)
{
	if (LogstreamResult.Flush < LogstreamResult.Write)
	{
		WalRcvData *walrcv = WalRcv;

		issue_xlog_fsync(recvFile, recvSegNo, tli);

		LogstreamResult.Flush = LogstreamResult.Write;

		tell(walrcv);
	}
}
