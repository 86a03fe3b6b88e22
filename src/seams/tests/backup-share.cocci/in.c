static void
perform_base_backup(basebackup_options *opt, bbsink *sink, IncrementalBackupInfo *ib)
{
	foreach(lc, state.tablespaces)
	{
		tablespaceinfo *ti = (tablespaceinfo *) lfirst(lc);

		if (ti->path == NULL)
		{
			sendDir(sink, ".", 1, false, state.tablespaces, sendtblspclinks, &manifest, InvalidOid, ib);
			if (lstat(XLOG_CONTROL_FILE, &statbuf) != 0)
				ereport(ERROR,
						(errcode_for_file_access(),
						 errmsg("could not stat file \"%s\": %m", XLOG_CONTROL_FILE)));
			sendFile(sink, XLOG_CONTROL_FILE, XLOG_CONTROL_FILE, &statbuf, false);
		}
	}
	if (lstat(pathbuf, &statbuf) != 0)
		fail();
}

void
SendBaseBackup(BaseBackupCmd *cmd, IncrementalBackupInfo *ib)
{
	parse_basebackup_options(cmd->options, &opt);
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

static int64
sendDir(bbsink *sink, const char *path, bool sizeonly)
{
	while ((de = ReadDir(dir, path)) != NULL)
	{
		if (S_ISREG(statbuf.st_mode))
		{
			if (!sizeonly)
				sent = sendFile(sink, pathbuf, tarfilename, &statbuf,
								true, dboid, spcoid,
								method == BACK_UP_FILE_INCREMENTALLY ? relative_block_numbers : NULL,
								truncation_block_length);
		}
	}
	return size;
}
