static Buffer GetVictimBuffer(BufferAccessStrategy strategy, IOContext io_context);

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

static BufferDesc *
BufferAlloc(SMgrRelation smgr, ForkNumber forkNum, BufferAccessStrategy strategy, IOContext io_context)
{
	if (found)
		return buf;
	victim_buffer = GetVictimBuffer(strategy, io_context);
	return victim_buffer;
}

static void
ExtendBufferedRelShared(BufferAccessStrategy strategy, IOContext io_context)
{
	buffer = GetVictimBuffer(strategy, io_context);
}
