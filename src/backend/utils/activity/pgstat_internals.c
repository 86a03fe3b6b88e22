/*-------------------------------------------------------------------------
 *
 * pgstat_internals.c
 *	  Included at the end of upstream's pgstat.c: a second file of statistics.
 *
 * PostgreSQL without us resets all statistics if it finds in its file a kind
 * that it does not know.  So upstream's functions that write and read that
 * file run twice, once for everybody's kinds and once for ours, and ask here
 * which file it is and what belongs to it.
 *
 * Tests: src/test/aio/stats/t/001_statistics.pl.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "aio/pgstat_aio.h"

/* beside upstream's, which is pgstat.stat */
#define AIO_STATS_FILE \
	PGSTAT_STAT_PERMANENT_DIRECTORY "/pgawait-" AIO_STATS_FORMAT ".stat"

/* is it about the second file? */
static bool about_ours = false;

/*
 * Which file is to be written or read?  The name under which it is written at
 * first is the same for both.
 */
const char *
AioStatsFile(void)
{
	return about_ours ? AIO_STATS_FILE : PGSTAT_STAT_PERMANENT_FILENAME;
}

/* Do statistics of this kind go to that file? */
bool
AioWritesStats(const PgStat_KindInfo *info)
{
	bool		ours = info == pgstat_get_kind_info(AIO_PGSTAT_KIND) ||
		info == pgstat_get_kind_info(AIO_PGSTAT_KIND_INDEX);

	return info->write_to_file && ours == about_ours;
}

/* Write both; instead of upstream's function that writes one. */
void
AioWriteStatsFiles(void)
{
	Assert(!about_ours);
	pgstat_write_statsfile();
	if (pgstat_get_kind_info(AIO_PGSTAT_KIND) == NULL)
		return;					/* initdb's bootstrap */
	AioStampStats(AioLastCheckpoint());
	about_ours = true;
	pgstat_write_statsfile();
	about_ours = false;
}

/*
 * Read both.  A file that is missing or damaged resets all statistics that
 * have been read before, and so ours is the first.  It is of no use if
 * PostgreSQL without us has run since it was written: indexes may have gone.
 */
void
AioReadStatsFiles(void)
{
	Assert(!about_ours);
	if (pgstat_get_kind_info(AIO_PGSTAT_KIND) != NULL)
	{
		about_ours = true;
		pgstat_read_statsfile();
		about_ours = false;
		if (!AioStatsAreCurrent(AioLastCheckpoint()))
			pgstat_reset_after_failure();
	}
	pgstat_read_statsfile();
}

/* Recovery is needed: what is in our file is out of date. */
void
AioRemoveStatsFile(void)
{
	if (unlink(AIO_STATS_FILE) != 0 && errno != ENOENT)
		ereport(LOG,
				(errcode_for_file_access(),
				 errmsg("could not unlink permanent statistics file \"%s\": %m",
						AIO_STATS_FILE)));
}
