uint64
CopyFrom(CopyFromState cstate)
{
	for (;;)
	{
		CHECK_FOR_INTERRUPTS();

		ResetPerTupleExprContext(estate);
		if (!NextCopyFrom(cstate, econtext, values, nulls))
			break;
	}
	return processed;
}

void
other(CopyFromState cstate)
{
	ResetPerTupleExprContext(estate);
}

static int
CopyGetData(CopyFromState cstate, void *databuf, int minread, int maxread)
{
	switch (cstate->copy_src)
	{
		case COPY_FILE:
			bytesread = fread(databuf, 1, maxread, cstate->copy_file);
			break;
	}
	while (more())
	{
		int			mtype;

readmessage:
		HOLD_CANCEL_INTERRUPTS();
		pq_startmsgread();
		mtype = pq_getbyte();
	}
	return 0;
}

int
pq_getbytes(void *b, size_t len)
{
	while (len > 0)
	{
		while (PqRecvPointer >= PqRecvLength)
		{
			if (pq_recvbuf())
				return EOF;
		}
		len -= amount;
	}
	return 0;
}

int
pq_discardbytes(size_t len)
{
	if (pq_recvbuf())
		return EOF;
	return 0;
}

void
pq_startmsgread(void)
{
	if (PqCommReadingMsg)
		fail();
	PqCommReadingMsg = true;
}

static int
copy_read_data(void *outbuf, int minread, int maxread)
{
	while (maxread > 0)
	{
		pgsocket	fd = PGINVALID_SOCKET;

		(void) WaitLatchOrSocket(MyLatch, WL_SOCKET_READABLE | WL_LATCH_SET, fd, 1000L, WAIT_EVENT_LOGICAL_SYNC_DATA);
		ResetLatch(MyLatch);
	}
	return 0;
}
