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
