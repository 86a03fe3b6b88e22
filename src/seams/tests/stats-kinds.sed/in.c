static void
pgstat_write_statsfile(void)
{
	const char *tmpfile = PGSTAT_STAT_PERMANENT_TMPFILE;
	const char *statfile = PGSTAT_STAT_PERMANENT_FILENAME;

	for (;;)
	{
		if (!info->write_to_file)
			continue;
	}
	while (more())
	{
		if (!kind_info->write_to_file)
			continue;
	}
}

void
pgstat_restore_stats(void)
{
	pgstat_read_statsfile();
}

void
pgstat_discard_stats(void)
{
	unlink(PGSTAT_STAT_PERMANENT_FILENAME);
	pgstat_reset_after_failure();
}

void
pgstat_before_server_shutdown(int code)
{
	if (code == 0)
	{
		pgstat_write_statsfile();
	}
}

static void
pgstat_read_statsfile(void)
{
	const char *statfile = PGSTAT_STAT_PERMANENT_FILENAME;

	pgstat_reset_after_failure();
}

void
AtEOXact_PgStat_DroppedStats(bool isCommit)
{
	if (isCommit)
	{
		if (!pgstat_drop_entry_ext(it->kind, it->dboid, objid, true))
			not_freed_count++;
	}
}

void
pgstat_copy_relation_stats(Relation dst, Relation src)
{
	srcstats = pgstat_fetch_stat_tabentry_ext(src->rd_rel->relisshared,
											  RelationGetRelid(src));
}
