#ifdef HAVE_IO_URING_QUEUE_INIT_MEM
	ret = io_uring_queue_init_mem(io_max_concurrency, &test_ring, &p, ring_ptr, ring_size);
	ret = AioUringQueueInitMem(&context->io_uring_ring, &p, ring_mem_next, ring_mem_remain);
#endif
	ret = AioUringQueueInit(&context->io_uring_ring);

SysLoggerMain(const void *startup_data, size_t startup_data_len)
{
	AioForgetRings();

	if (PostmasterContext)
	{
	}
}

other(void)
{
	if (PostmasterContext)
	{
	}
}

static void
pgaio_uring_shmem_init(bool first_time)
{
	char *hint = NULL;

	AioUringBeforeSetup();
	pgaio_uring_contexts = (PgAioUringContext *) shmem;
	if (ret < 0)
	{
		if (-ret == EPERM)
			hint = "allowed?";
		hint = AioUringSetupHint(-ret, hint);
		errno = -ret;
		report(hint);
	}
}

static void
pgaio_uring_wait_one(void)
{
	errno = -ret;
	report(NULL);
}
