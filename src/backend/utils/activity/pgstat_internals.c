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
#include "common/string.h"

/* what the names of our files begin and end with */
#define AIO_STATS_PREFIX	"pgawait-"
#define AIO_STATS_SUFFIX	".stat"

/* is it about the second file? */
static bool about_ours = false;

/*
 * Our file, beside upstream's, which is pgstat.stat.  One that was written when
 * our kinds had other numbers has another name, and is of no use.
 */
static const char *
our_file(void)
{
	static char name[MAXPGPATH];

	snprintf(name, sizeof(name), "%s/%s%s-%u-%u%s", PGSTAT_STAT_PERMANENT_DIRECTORY, AIO_STATS_PREFIX,
			 AIO_STATS_FORMAT, aio_stats_kind, aio_index_stats_kind, AIO_STATS_SUFFIX);
	return name;
}

/*
 * Which file is to be written or read?  The name under which it is written at
 * first is the same for both.
 */
const char *
AioStatsFile(void)
{
	return about_ours ? our_file() : PGSTAT_STAT_PERMANENT_FILENAME;
}

/* Do statistics of this kind go to that file? */
bool
AioWritesStats(const PgStat_KindInfo *info)
{
	bool		ours = aio_stats_kind != PGSTAT_KIND_INVALID &&
		(info == pgstat_get_kind_info(aio_stats_kind) || info == pgstat_get_kind_info(aio_index_stats_kind));

	return info->write_to_file && ours == about_ours;
}

/*
 * Remove all our files but 'keep', which may be NULL: they are out of date, or
 * of kinds with other numbers.
 */
static void
remove_files(const char *keep)
{
	DIR		   *dir = AllocateDir(PGSTAT_STAT_PERMANENT_DIRECTORY);
	struct dirent *entry;

	while ((entry = ReadDirExtended(dir, PGSTAT_STAT_PERMANENT_DIRECTORY, LOG)) != NULL)
	{
		char		name[MAXPGPATH];

		if (strncmp(entry->d_name, AIO_STATS_PREFIX, strlen(AIO_STATS_PREFIX)) != 0 ||
			!pg_str_endswith(entry->d_name, AIO_STATS_SUFFIX))
			continue;
		snprintf(name, sizeof(name), "%s/%s", PGSTAT_STAT_PERMANENT_DIRECTORY, entry->d_name);
		if (keep != NULL && strcmp(name, keep) == 0)
			continue;
		if (unlink(name) != 0)
			ereport(LOG,
					(errcode_for_file_access(),
					 errmsg("could not unlink permanent statistics file \"%s\": %m",
							name)));
	}
	FreeDir(dir);
}

/* Write both; instead of upstream's function that writes one. */
void
AioWriteStatsFiles(void)
{
	Assert(!about_ours);
	pgstat_write_statsfile();
	if (aio_stats_kind == PGSTAT_KIND_INVALID)
		return;					/* as in initdb's bootstrap */
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
	if (aio_stats_kind != PGSTAT_KIND_INVALID)
	{
		remove_files(our_file());
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
	remove_files(NULL);
}
