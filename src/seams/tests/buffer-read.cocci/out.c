static int
read_one(void)
{
	int buf;

	if (AioStartReadBuffer(&op, &buf, block, flags)) {
		AioAwaitRead(&op);
		WaitReadBuffers(&op);
	}
	AioReadDone(rel, forkNum, buf);
	return buf;
}

static bool
AsyncReadBuffers(Operation *operation)
{
	int n = 0;

	if (n == 0) {
		AioAwaitBuffer(operation);
		pgstat_prepare_report_checksum_failure(operation->dboid);
	}
	return true;
}
