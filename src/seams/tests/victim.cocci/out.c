static Buffer GetVictimBuffer(BufferAccessStrategy strategy, IOContext io_context, bool may_suspend);

static Buffer
GetVictimBuffer(BufferAccessStrategy strategy, IOContext io_context, bool may_suspend)
{
again:
	buf_hdr = AioVictim(strategy, &buf_state, &from_ring, may_suspend);
	if (buf_state & BM_DIRTY)
	{
		LWLock *content_lock = lock_of(buf_hdr);

		if (AioWriteVictim(buf_hdr, strategy, io_context, from_ring)) {
			LWLockRelease(content_lock);
			UnpinBuffer(buf_hdr);
			goto again;
		}
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
		AioBeforeCleanupWait(bufHdr);
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
	victim_buffer = AioVictimBuffer(smgr, forkNum, strategy, io_context);
	return victim_buffer;
}

static void
ExtendBufferedRelShared(BufferAccessStrategy strategy, IOContext io_context)
{
	buffer = GetVictimBuffer(strategy, io_context, false);
}
