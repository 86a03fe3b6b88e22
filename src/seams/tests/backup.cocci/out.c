void
SendBaseBackup(BaseBackupCmd *cmd, IncrementalBackupInfo *ib)
{
	sink = bbsink_copystream_new(opt.send_to_client);
	sink = bbsink_progress_new(sink, opt.progress);
	AioBackupBegin(ib != NULL);
	PG_TRY();
	{
		perform_base_backup(&opt, sink, ib);
	}
	PG_FINALLY();
	{
		AioBackupEnd();
		bbsink_cleanup(sink);
	}
	PG_END_TRY();
}

static void
perform_base_backup(basebackup_options *opt, bbsink *sink, IncrementalBackupInfo *ib)
{
	while ((cnt = AioBackupRead(fd, sink->bbs_buffer, Min(a, b), len, pathbuf)) > 0)
	{
		len += cnt;
	}
}

static int64
sendDir(bbsink *sink, const char *path, bool sizeonly)
{
	while ((de = AioBackupReadDir(dir, path, sizeonly)) != NULL)
	{
		if (skipped(de->d_name))
			continue;
	}
	return size;
}

static bool
sendFile(bbsink *sink, const char *readfilename, const char *tarfilename, struct stat *statbuf)
{
	fd = OpenTransientFile(readfilename, O_RDONLY | PG_BINARY);
	if (fd < 0)
		return false;
	AioBackupFile(fd, readfilename, incremental_blocks, num_incremental_blocks);
	_tarWriteHeader(sink, tarfilename, NULL, statbuf, false);
	return true;
}

static off_t
read_file_data_into_buffer(bbsink *sink, const char *readfilename, int fd, off_t offset)
{
	cnt = AioBackupRead(fd, sink->bbs_buffer, length, offset, readfilename);
	again = basebackup_read_file(fd, sink->bbs_buffer + i, BLCKSZ, offset + i, readfilename, false);
	return cnt;
}

void
pgaio_io_perform_synchronously(PgAioHandle *ioh)
{
	switch (ioh->op)
	{
		case PGAIO_OP_READV:
			result = AioPerformReadV(ioh);
			break;
	}
}

static void
pgaio_uring_sq_from_io(PgAioHandle *ioh, struct io_uring_sqe *sqe)
{
	prepare(sqe);
	AioUringSetFlags(ioh, sqe);
	io_uring_sqe_set_data(sqe, ioh);
}
