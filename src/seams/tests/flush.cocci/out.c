static void
BufferSync(int flags)
{
	AioBeginBufferFlush();
	WritebackContextInit(&wb_context, &checkpoint_flush_after);
	while (more())
		SyncOneBuffer(next(), false, &wb_context);
	AioFinishBufferFlush();
	IssuePendingWritebacks(&wb_context, IOCONTEXT_NORMAL);
}

static int
SyncOneBuffer(int buf_id)
{
	lock(buf_id);
	if (!AioFlushBuffer(bufHdr))
	{
		FlushBuffer(bufHdr, NULL, IOOBJECT_RELATION, IOCONTEXT_NORMAL);
	}
	return 1;
}

void
FlushDatabaseBuffers(Oid dbid)
{
	int i;

	AioBeginBufferFlush();
	for (i = 0; i < NBuffers; i++)
	{
		if (mine(i))
		{
			lock(i);
			if (!AioFlushBuffer(bufHdr))
			{
				FlushBuffer(bufHdr, NULL, IOOBJECT_RELATION, IOCONTEXT_NORMAL);
			}
		}
	}
	AioFinishBufferFlush();
}

void
FlushOneBuffer(Buffer buffer)
{
	FlushBuffer(bufHdr, NULL, IOOBJECT_RELATION, IOCONTEXT_NORMAL);
}
