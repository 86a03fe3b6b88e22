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
