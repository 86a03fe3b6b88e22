static int
CopyGetData(CopyFromState cstate, void *databuf, int minread, int maxread)
{
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
