static void
BufferSync(int flags)
{
	AioBeginFlush();
	WritebackContextInit(&wb_context, &checkpoint_flush_after);
	while (more())
		SyncOneBuffer(next(), false, &wb_context);
	AioFinishFlush();
	IssuePendingWritebacks(&wb_context, IOCONTEXT_NORMAL);
}

static int
SyncOneBuffer(int buf_id)
{
	lock(buf_id);
	if (!AioFlush(bufHdr))
	{
		FlushBuffer(bufHdr, NULL, IOOBJECT_RELATION, IOCONTEXT_NORMAL);
	}
	return 1;
}

void
FlushDatabaseBuffers(Oid dbid)
{
	int i;

	AioBeginFlush();
	for (i = 0; i < NBuffers; i++)
	{
		if (mine(i))
		{
			lock(i);
			if (!AioFlush(bufHdr))
			{
				FlushBuffer(bufHdr, NULL, IOOBJECT_RELATION, IOCONTEXT_NORMAL);
			}
		}
	}
	AioFinishFlush();
}

void
FlushOneBuffer(Buffer buffer)
{
	FlushBuffer(bufHdr, NULL, IOOBJECT_RELATION, IOCONTEXT_NORMAL);
}
