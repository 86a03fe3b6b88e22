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
