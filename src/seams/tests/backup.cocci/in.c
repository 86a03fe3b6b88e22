void
SendBaseBackup(BaseBackupCmd *cmd, IncrementalBackupInfo *ib)
{
	sink = bbsink_copystream_new(opt.send_to_client);
	sink = bbsink_progress_new(sink, opt.progress);
	PG_TRY();
	{
		perform_base_backup(&opt, sink, ib);
	}
	PG_FINALLY();
	{
		bbsink_cleanup(sink);
	}
	PG_END_TRY();
}

static void
perform_base_backup(basebackup_options *opt, bbsink *sink, IncrementalBackupInfo *ib)
{
	while ((cnt = basebackup_read_file(fd, sink->bbs_buffer, Min(a, b), len, pathbuf, true)) > 0)
	{
		len += cnt;
	}
}

static int64
sendDir(bbsink *sink, const char *path, bool sizeonly)
{
	while ((de = ReadDir(dir, path)) != NULL)
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
	_tarWriteHeader(sink, tarfilename, NULL, statbuf, false);
	return true;
}

static off_t
read_file_data_into_buffer(bbsink *sink, const char *readfilename, int fd, off_t offset)
{
	cnt = basebackup_read_file(fd, sink->bbs_buffer, length, offset, readfilename, true);
	again = basebackup_read_file(fd, sink->bbs_buffer + i, BLCKSZ, offset + i, readfilename, false);
	return cnt;
}

void
pgaio_io_perform_synchronously(PgAioHandle *ioh)
{
	switch (ioh->op)
	{
		case PGAIO_OP_READV:
			result = pg_preadv(ioh->op_data.read.fd, iov, ioh->op_data.read.iov_length, ioh->op_data.read.offset);
			break;
	}
}

static void
pgaio_uring_sq_from_io(PgAioHandle *ioh, struct io_uring_sqe *sqe)
{
	prepare(sqe);
	io_uring_sqe_set_data(sqe, ioh);
}
