static int
read_one(void)
{
	int buf;

	if (StartReadBuffer(&op, &buf, block, flags)) {
		AioAwaitRead(&op);
		WaitReadBuffers(&op);
	}
	AioReadDone(rel, forkNum, buf);
	return buf;
}

static bool
AsyncReadBuffers(Operation *operation)
{
	int *blocks = operation->blocks;
	int flags = AioReadFlags(operation);
	int n = operation->done;

	return flags + n > 0;
}

static void
buffer_stage_common(Buffer *buf_hdr, int is_temp)
{
	int buf_state = LockBufHdr(buf_hdr);

	if (is_temp)
		write_state(buf_hdr, buf_state);
	else
		AioUnlockStagedBuffer(buf_hdr, buf_state);
}

static void
others(Buffer *buf_hdr, int buf_state)
{
	UnlockBufHdr(buf_hdr, buf_state);
}
