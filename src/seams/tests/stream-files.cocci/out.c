static FILE *create_file_for_extract(const char *filename, mode_t mode, pgoff_t size);

astreamer *
astreamer_plain_writer_new(char *pathname, FILE *file)
{
	if (file == NULL)
	{
		streamer->file = AioOpenStream(pathname, 0);
		if (streamer->file == NULL)
			pg_fatal("could not create file \"%s\": %m", pathname);
	}
	return &streamer->base;
}

static void
astreamer_extractor_content(astreamer_member *member)
{
	if (member->is_regular)
		mystreamer->file = create_file_for_extract(mystreamer->filename, member->mode, member->size);
	else
		extract_directory(mystreamer->filename, member->mode);
}

static FILE *
create_file_for_extract(const char *filename, mode_t mode, pgoff_t size)
{
	FILE	   *file;

	file = AioOpenStream(filename, size);
	if (file == NULL)
		pg_fatal("could not create file \"%s\": %m", filename);
	return file;
}

static FILE *
open_other(const char *filename)
{
	return fopen(filename, "wb");
}

static astreamer *
CreateBackupStreamer(char *archive_name)
{
	bool		inject_manifest;

	AioSyncStreams(do_sync && sync_method == DATA_DIR_SYNC_METHOD_FSYNC);
	inject_manifest = (format == 't' && manifest);
	if (inject_manifest)
		inject_manifest = false;
	return NULL;
}

static void
BaseBackup(char *compression_algorithm)
{
	receive();
	AioFinishStreams();
	if (do_sync && backup_target == NULL)
	{
		(void) sync_pgdata(basedir, serverVersion, sync_method, true);
	}
	done();
}

static void
walkdir(const char *path, int (*action) (const char *fname, bool isdir))
{
	while (more())
	{
		switch (kind())
		{
			case 1:
				AioSyncFile(action, subpath);
				break;
			default:
				break;
		}
	}
	(*action) (path, true);
}
