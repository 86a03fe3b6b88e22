static void
copy_file_blocks(const char *src, const char *dst, pg_checksum_context *checksum_ctx)
{
	int			src_fd;
	int			dest_fd;

	if ((src_fd = open(src, O_RDONLY | PG_BINARY, 0)) < 0)
		pg_fatal("no source");
	if ((dest_fd = open(dst, O_WRONLY | O_CREAT, pg_file_create_mode)) < 0)
		pg_fatal("no target");
	while ((rb = read(src_fd, buffer, buffer_size)) > 0)
	{
		if ((wb = write(dest_fd, buffer, rb)) != rb)
			pg_fatal("not written");
	}
	close(src_fd);
	close(dest_fd);
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
		(wfd = open(output_filename, O_RDWR | O_CREAT, pg_file_create_mode)) < 0)
		pg_fatal("no target");
	write_block(wfd, output_filename);
	if (wfd >= 0 && close(wfd) != 0)
		pg_fatal("not closed");
}

static void
write_block(int fd, char *output_filename)
{
	int			wb;

	if ((wb = write(fd, buffer, BLCKSZ)) != BLCKSZ)
		pg_fatal("not written");
}

int
main(int argc, char *argv[])
{
	options();
	version = read_pg_version_file(argv[argc - 1]);
	n_backups = argc - optind;
	return 0;
}
