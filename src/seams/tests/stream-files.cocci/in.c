static FILE *create_file_for_extract(const char *filename, mode_t mode);

astreamer *
astreamer_plain_writer_new(char *pathname, FILE *file)
{
	if (file == NULL)
	{
		streamer->file = fopen(pathname, "wb");
		if (streamer->file == NULL)
			pg_fatal("could not create file \"%s\": %m", pathname);
	}
	return &streamer->base;
}

static void
astreamer_extractor_content(astreamer_member *member)
{
	if (member->is_regular)
		mystreamer->file = create_file_for_extract(mystreamer->filename, member->mode);
	else
		extract_directory(mystreamer->filename, member->mode);
}

static FILE *
create_file_for_extract(const char *filename, mode_t mode)
{
	FILE	   *file;

	file = fopen(filename, "wb");
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

	inject_manifest = (format == 't' && manifest);
	if (inject_manifest)
		inject_manifest = false;
	return NULL;
}

static void
BaseBackup(char *compression_algorithm)
{
	receive();
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
				(*action) (subpath, false);
				break;
			default:
				break;
		}
	}
	(*action) (path, true);
}
