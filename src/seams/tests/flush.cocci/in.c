static void
BufferSync(int flags)
{
	WritebackContextInit(&wb_context, &checkpoint_flush_after);
	while (more())
		SyncOneBuffer(next(), false, &wb_context);
	IssuePendingWritebacks(&wb_context, IOCONTEXT_NORMAL);
}

static int
SyncOneBuffer(int buf_id)
{
	lock(buf_id);
	FlushBuffer(bufHdr, NULL, IOOBJECT_RELATION, IOCONTEXT_NORMAL);
	return 1;
}

void
FlushDatabaseBuffers(Oid dbid)
{
	int i;

	for (i = 0; i < NBuffers; i++)
	{
		if (mine(i))
		{
			lock(i);
			FlushBuffer(bufHdr, NULL, IOOBJECT_RELATION, IOCONTEXT_NORMAL);
		}
	}
}

void
FlushOneBuffer(Buffer buffer)
{
	FlushBuffer(bufHdr, NULL, IOOBJECT_RELATION, IOCONTEXT_NORMAL);
}
