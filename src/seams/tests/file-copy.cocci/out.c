void
copy_file(const char *fromfile, const char *tofile)
{
	off_t		offset;

	for (offset = 0;; offset += nbytes)
	{
		if (offset - flush_offset >= FLUSH_DISTANCE)
		{
			AioFlushCopy(dstfd, flush_offset, offset - flush_offset);
			flush_offset = offset;
		}
	}
	if (offset > flush_offset)
		AioFlushCopy(dstfd, flush_offset, offset - flush_offset);
}

static void
clone_file(const char *fromfile, const char *tofile)
{
	pg_flush_data(dstfd, 0, 0);
}
