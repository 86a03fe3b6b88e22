static void
pgstat_write_statsfile(void)
{
	const char *tmpfile = AioStatsTemporaryFile();
	const char *statfile = AioStatsFile();

	for (;;)
	{
		if (!AioWritesStats(info))
			continue;
	}
	while (more())
	{
		if (!AioWritesStats(kind_info))
			continue;
	}
}

void
pgstat_restore_stats(void)
{
	AioReadStatsFiles();
}

void
pgstat_discard_stats(void)
{
	unlink(PGSTAT_STAT_PERMANENT_FILENAME);
	AioRemoveStatsFile();
	pgstat_reset_after_failure();
}

void
pgstat_before_server_shutdown(int code)
{
	if (code == 0)
	{
		AioWriteStatsFiles();
	}
}

static void
pgstat_read_statsfile(void)
{
	const char *statfile = AioStatsFile();

	pgstat_reset_after_failure();
}

void
AtEOXact_PgStat_DroppedStats(bool isCommit)
{
	if (isCommit)
	{
		if (!AioDropStats(it->kind, it->dboid, objid, true))
			not_freed_count++;
	}
}

void
pgstat_copy_relation_stats(Relation dst, Relation src)
{
	AioCopyIndexStats(dst, src);
	srcstats = pgstat_fetch_stat_tabentry_ext(src->rd_rel->relisshared,
											  RelationGetRelid(src));
}
