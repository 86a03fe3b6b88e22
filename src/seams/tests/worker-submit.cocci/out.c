static void
pgaio_worker_submit_internal(int num_staged_ios, PgAioHandle **staged_ios)
{
	insert(num_staged_ios, staged_ios);
}

static void AioWorkerSubmit(int num_staged_ios, PgAioHandle **ios);
static int AioWorkerConsume(void);

static int
pgaio_worker_submit(uint16 num_staged_ios, PgAioHandle **staged_ios)
{
	for (int i = 0; i < num_staged_ios; i++)
	{
		PgAioHandle *ioh = staged_ios[i];

		pgaio_io_prepare_submit(ioh);
	}

	AioWorkerSubmit(num_staged_ios, staged_ios);

	return num_staged_ios;
}

void
IoWorkerMain(const void *startup_data, size_t startup_data_len)
{
	while (!ShutdownRequestPending)
	{
		uint32		io_index;

		if ((io_index = AioWorkerConsume()) == -1)
			sleep(1);
	}
}
