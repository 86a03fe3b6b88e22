static int
read_one(void)
{
	int buf;

	if (StartReadBuffer(&op, &buf, block, flags))
		WaitReadBuffers(&op);
	return buf;
}

static bool
AsyncReadBuffers(Operation *operation)
{
	int *blocks = operation->blocks;
	int flags = operation->flags;
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
		UnlockBufHdr(buf_hdr, buf_state);
}

static void
others(Buffer *buf_hdr, int buf_state)
{
	UnlockBufHdr(buf_hdr, buf_state);
}
