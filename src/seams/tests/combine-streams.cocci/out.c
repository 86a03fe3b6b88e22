static void
copy_file_blocks(const char *src, const char *dst, pg_checksum_context *checksum_ctx)
{
	int			src_fd;
	int			dest_fd;

	if ((src_fd = open(src, O_RDONLY | PG_BINARY, 0)) < 0)
		pg_fatal("no source");
	if ((dest_fd = AioOpenStreamFd(dst, O_WRONLY | O_CREAT, pg_file_create_mode, 0)) < 0)
		pg_fatal("no target");
	while ((rb = read(src_fd, buffer, buffer_size)) > 0)
	{
		if ((wb = AioWriteStreamFd(dest_fd, buffer, rb)) != rb)
			pg_fatal("not written");
	}
	close(src_fd);
	AioEndStreamFd(dest_fd, dst);
}

static void
copy_file_link(const char *src, const char *dst)
{
	int			dest_fd = open(dst, O_WRONLY | O_CREAT, pg_file_create_mode);

	write(dest_fd, src, 1);
	close(dest_fd);
}

static void
write_reconstructed_file(char *output_filename, unsigned block_length)
{
	int			wfd = -1;

	if (!dry_run &&
		(wfd = AioOpenStreamFd(output_filename, O_RDWR | O_CREAT, pg_file_create_mode, (size_t)block_length * BLCKSZ)) < 0)
		pg_fatal("no target");
	write_block(wfd, output_filename);
	if (wfd >= 0 && AioCloseStreamFd(wfd) != 0)
		pg_fatal("not closed");
}

static void
write_block(int fd, char *output_filename)
{
	int			wb;

	if ((wb = AioWriteStreamFd(fd, buffer, BLCKSZ)) != BLCKSZ)
		pg_fatal("not written");
}

int
main(int argc, char *argv[])
{
	options();
	AioSyncStreams(!opt.no_sync && opt.sync_method == DATA_DIR_SYNC_METHOD_FSYNC && opt.copy_method != COPY_METHOD_COPY_FILE_RANGE);
	AioReserveDescriptors(argc - optind);
	version = read_pg_version_file(argv[argc - 1]);
	n_backups = argc - optind;
	return 0;
}
