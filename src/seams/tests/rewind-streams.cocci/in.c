static int	dstfd = -1;

void
open_target_file(const char *path, bool trunc)
{
	int			mode = O_WRONLY;

	close_target_file();
	dstfd = open(dstpath, mode, pg_file_create_mode);
	if (dstfd < 0)
		pg_fatal("no target");
}

void
close_target_file(void)
{
	if (close(dstfd) != 0)
		pg_fatal("not closed");
	dstfd = -1;
}

void
write_target_range(char *buf, off_t begin, size_t size)
{
	if (lseek(dstfd, begin, SEEK_SET) == -1)
		pg_fatal("no place");
	while (size > 0)
	{
		ssize_t		writelen;

		writelen = write(dstfd, buf, size);
		size -= writelen;
	}
}

void
truncate_target_file(const char *path, off_t newsize)
{
	int			fd = open(path, O_WRONLY, pg_file_create_mode);

	close(fd);
}

int
main(int argc, char **argv)
{
	if (showprogress)
		report();
	perform_rewind(filemap, source, chkptrec);
	sync_target_dir();
	return 0;
}
