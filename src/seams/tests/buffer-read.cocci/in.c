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
	int n = 0;

	if (n == 0)
		pgstat_prepare_report_checksum_failure(operation->dboid);
	return true;
}
