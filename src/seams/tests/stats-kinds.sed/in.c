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

bool
pgstat_drop_entry_ext(PgStat_Kind kind, Oid dboid, uint64 objid, bool missing_ok)
{
	key.objid = objid;

	shent = dshash_find(pgStatLocal.shared_hash, &key, true);
	return shent != NULL;
}

void
other(uint64 objid)
{
	key.objid = objid;
}

void
pgstat_copy_relation_stats(Relation dst, Relation src)
{
	srcstats = pgstat_fetch_stat_tabentry_ext(src->rd_rel->relisshared,
											  RelationGetRelid(src));
}
