static Buffer
GetVictimBuffer(BufferAccessStrategy strategy, IOContext io_context)
{
again:
	buf_hdr = StrategyGetBuffer(strategy, &buf_state, &from_ring);
	if (buf_state & BM_DIRTY)
	{
		LWLock *content_lock = lock_of(buf_hdr);

		FlushBuffer(buf_hdr, NULL, IOOBJECT_RELATION, io_context);
		LWLockRelease(content_lock);
	}
	return buf;
}

void
LockBufferForCleanup(Buffer buffer)
{
	for (;;)
	{
		if (InHotStandby)
			conflict();
		else
			wait();
	}
}
