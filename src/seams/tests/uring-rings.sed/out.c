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
