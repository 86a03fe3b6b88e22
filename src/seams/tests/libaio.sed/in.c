typedef enum IoMethod
{
	IOMETHOD_SYNC = 0,
	IOMETHOD_WORKER,
}			IoMethod;

/* the default */
#define DEFAULT_IO_METHOD IOMETHOD_WORKER

const struct config_enum_entry other_options[] = {
	{NULL, 0, false}
};

const struct config_enum_entry io_method_options[] = {
	{"worker", IOMETHOD_WORKER, false},
	{NULL, 0, false}
};

static const IoMethodOps *const pgaio_method_ops_table[] = {
	[IOMETHOD_WORKER] = &pgaio_worker_ops,
};

		{"io_method", PGC_POSTMASTER, RESOURCES_IO},
		&io_method,
		DEFAULT_IO_METHOD, io_method_options,
		NULL, assign_io_method, NULL

#io_method = worker			# worker, io_uring, sync
#io_workers = 3

AioShmemSize(void)
{
	sz = add_size(sz, AioCtlShmemSize());
	sz = add_size(sz, AioBackendShmemSize());
}

AioShmemInit(void)
{
	sz = add_size(sz, AioCtlShmemSize());
}

IoWorkerMain(const void *startup_data, size_t startup_data_len)
{
	for (;;)
	{
		if (io_index != -1)
		{
			/* see pgaio_io_perform_synchronously(). */
			pgaio_io_perform_synchronously(ioh);
		}
		else
		{
			WaitLatch(MyLatch, WL_LATCH_SET, -1,
					  WAIT_EVENT_IO_WORKER_MAIN);
		}
	}
}

bool
pgaio_workers_enabled(void)
{
	return io_method == IOMETHOD_WORKER;
}

static void
submit(PgAioHandle *ioh)
{
	pgaio_io_perform_synchronously(ioh);
}

PostmasterMain(int argc, char *argv[])
{
	ereport(LOG,
			(errmsg("starting %s", PG_VERSION_STR)));
}
