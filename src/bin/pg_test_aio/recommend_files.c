/*-------------------------------------------------------------------------
 *
 * recommend_files.c
 *	  Settings for what is written in order: WAL, files that grow, and streams.
 *
 * Limits and defaults here are those of the server: change them together with
 * src/backend/aio/init.c and wal.c.
 *
 * Tests: src/bin/pg_test_aio/t/003_recommend.pl.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres_fe.h"

#include <fcntl.h>

#include "recommend.h"

/* limits of the server */
#define WAL_SYNCS_LIMIT			8
#define WAL_LONG_SYNC			500 /* microseconds */

/*
 * The default of wal_sync_method, which upstream's headers do not tell to
 * programs: fdatasync where a port says so, and else what O_DSYNC makes of it.
 */
#if defined(PLATFORM_DEFAULT_WAL_SYNC_METHOD) || !defined(O_DSYNC) || \
	(defined(O_SYNC) && O_DSYNC == O_SYNC)
#define WAL_SYNC_USUAL			"fdatasync"
#else
#define WAL_SYNC_USUAL			"open_datasync"
#endif

/*
 * How many syncs should be in flight at a time?  Returns whether it should be
 * another number than the default.
 */
static bool
advise_syncs(Advice *advice, const Curve *syncs)
{
	static const char name[] = "aio.wal_syncs";
	const Result *one = curve_point(syncs, 1);
	const Result *most = curve_best(syncs);

	if (!advise_if_possible(advice, name, syncs))
		return false;
	if (one->aside < WAL_LONG_SYNC)
	{
		advise(advice, name, true, pstrdup("1"),
			   _("a sync takes %.0f us, and more than one is for those of %d us or more"),
			   one->aside, WAL_LONG_SYNC);
		return false;
	}
	if (!surpasses(most, one))
	{
		advise(advice, name, true, pstrdup("1"),
			   _("several at a time give no more syncs/s"));
		return false;
	}
	advise(advice, name, false,
		   psprintf("%d", Min(curve_knee(syncs), WAL_SYNCS_LIMIT)),
		   _("%.1f times as many syncs/s as one at a time"),
		   most->rate / one->rate);
	return true;
}

/* Find the curve of asynchronous syncs.  Returns false if there is none. */
static bool
find_syncs(const Results *in, Curve *syncs)
{
	static const char *const names[] = {"io_uring", "worker"};

	for (int i = 0; i < lengthof(names); i++)
	{
		*syncs = (Curve)
		{
			in, TEST_SYNC, MODE_BUFFERED, names[i]
		};
		if (curve_point(syncs, 1) != NULL)
			return true;
	}
	return false;
}

/*
 * How should WAL be synced?  WAL is buffered, also where data is not, and only
 * buffered syncs count.
 *
 * What is measured is one write with its sync, and nobody else who writes.  A
 * server syncs by fdatasync while others go on to write WAL; with open_datasync
 * each write is a sync, also those that aio.wal_write_ahead starts early, and
 * there is no sync of which several could be in flight.  So open_datasync is
 * nothing but a suggestion, and aio.wal_syncs is not mentioned with it.  What
 * syncs all of the file's attributes, too, cannot be better, even if it looks
 * so.
 */
void
advise_wal(Advice *advice)
{
	static const char name[] = "wal_sync_method";
	const Results *in = advice->in;
	const Result *async = results_find(in, TEST_SYNC, MODE_BUFFERED,
									   "open_datasync", 1, -1);
	const Result *data = results_find(in, TEST_SYNC, MODE_BUFFERED,
									  "fdatasync", 1, -1);
	bool		data_is_usual = strcmp(WAL_SYNC_USUAL, "fdatasync") == 0;
	Curve		syncs;

	if (data == NULL)
		return;
	if (!data_is_usual && async != NULL && surpasses(data, async))
		advise(advice, name, false, pstrdup("fdatasync"),
			   _("%.0f us; %s, the default, takes %.0f us"),
			   data->average, "open_datasync", async->average);
	else if (!data_is_usual)
		return;
	else
	{
		int			mark = advice->n;
		bool		several = find_syncs(in, &syncs) &&
			advise_syncs(advice, &syncs);

		if (async != NULL && surpasses(async, data) && !several)
		{
			advice->n = mark;
			suggest(advice, name, pstrdup("open_datasync"),
					_("try it: %.0f us, and fdatasync %.0f us; but fdatasync lets others write WAL meanwhile"),
					async->average, data->average);
		}
		else if (several)
			advise(advice, name, true, pstrdup("fdatasync"),
				   _("%.0f us, and several can be in flight"),
				   data->average);
		else
			advise(advice, name, true, pstrdup("fdatasync"),
				   _("%.0f us, and open_datasync is not clearly faster"),
				   data->average);
	}
}

/* How should files grow? */
void
advise_extend(Advice *advice)
{
	const Results *in = advice->in;
	const char *why_not;

	why_not = results_why_not(in, "fallocate");
	if (why_not != NULL)
		advise(advice, "file_extend_method", false, pstrdup("write_zeros"),
			   _("the file system cannot allocate space: %s"), why_not);

	why_not = results_why_not(in, "ahead");
	if (why_not != NULL)
		advise(advice, "aio.preallocation_size", false, pstrdup("0"),
			   _("the file system cannot allocate past the end of a file: %s"),
			   why_not);

	for (FileMode mode = 0; mode < NMODES; mode++)
	{
		const Result *ahead = results_find(in, TEST_EXTEND, mode,
										   "ahead", -1, 64);
		const Result *at_once = results_find(in, TEST_EXTEND, mode,
											 "fallocate", -1, 64);
		bool		keep;

		if (ahead == NULL || at_once == NULL)
			continue;
		keep = !surpasses(at_once, ahead);
		advise(advice, "aio.preallocation_size", keep,
			   keep ? psprintf("%dMB", BLOCKS_TO_KB(PREALLOCATION_BLOCKS) / 1024) :
			   pstrdup("0"),
			   _("an extension by 64 blocks takes %.1f us, and %.1f us without"),
			   ahead->average, at_once->average);
		return;
	}
}

/* For how long does a stream make somebody wait at once? */
static double
longest_wait(const Result *stream)
{
	return Max(stream->max, stream->aside);
}

/*
 * When should the kernel be asked to write what it has cached?  The more it has
 * to write at once, the longer others wait behind that; so what is faster only
 * counts if nothing takes longer with it, neither a write nor the sync at the
 * end.
 */
void
advise_pace(Advice *advice)
{
	static const char name[] = "aio.bulk_flush_after";
	const Result *found = NULL;
	const Result *usual = results_find(advice->in, TEST_STREAM, MODE_BUFFERED,
									   "append", 1,
									   BLOCKS_TO_KB(BULK_FLUSH_AFTER));

	if (usual == NULL)
		return;
	for (int i = 0; i < NPACES; i++)
	{
		const Result *result = results_find(advice->in, TEST_STREAM,
											MODE_BUFFERED, "append", 1,
											BLOCKS_TO_KB(stream_paces[i]));

		if (result != NULL && surpasses(result, usual) &&
			!BETTER(longest_wait(result), longest_wait(usual)) &&
			(found == NULL || result->rate > found->rate))
			found = result;
	}
	if (found != NULL)
		advise(advice, name, false,
			   found->size == 0 ? pstrdup("0") : psprintf("%dkB", found->size),
			   _("%.0f MB/s with the final sync, and %.0f MB/s with the default, which makes nobody wait less"),
			   found->rate, usual->rate);
	else
		advise(advice, name, true,
			   psprintf("%dkB", BLOCKS_TO_KB(BULK_FLUSH_AFTER)),
			   _("%.0f MB/s with the final sync; nothing is clearly faster without longer waits"),
			   usual->rate);
}
