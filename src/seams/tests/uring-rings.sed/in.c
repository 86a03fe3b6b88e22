#ifdef HAVE_IO_URING_QUEUE_INIT_MEM
	ret = io_uring_queue_init_mem(io_max_concurrency, &test_ring, &p, ring_ptr, ring_size);
	ret = io_uring_queue_init_mem(io_max_concurrency, &context->io_uring_ring, &p, ring_mem_next, ring_mem_remain);
#endif
	ret = io_uring_queue_init(io_max_concurrency, &context->io_uring_ring, 0);

SysLoggerMain(const void *startup_data, size_t startup_data_len)
{
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

	pgaio_uring_contexts = (PgAioUringContext *) shmem;
	if (ret < 0)
	{
		if (-ret == EPERM)
			hint = "allowed?";
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
