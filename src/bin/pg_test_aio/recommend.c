/*-------------------------------------------------------------------------
 *
 * recommend.c
 *	  From results to settings.
 *
 * recommend() looks at nothing but the results, so it can be tested with
 * made-up ones.  It speaks of a parameter only if something was measured that
 * bears on it.  A default stays unless something else is clearly better; then
 * its line is a comment that says so.
 *
 * Limits and defaults here are those of the server: change them together with
 * src/backend/aio/init.c, and shares of io_max_concurrency with scope.c and
 * write_behind.c there.
 *
 * Tests: src/bin/pg_test_aio/t/003_recommend.pl.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres_fe.h"

#include "pg_test_aio.h"

/* less than this does not count */
#define NOISE			0.05
#define BETTER(a, b)	((a) > (b) * (1 + NOISE))
#define ENOUGH(a, b)	((a) >= (b) * (1 - NOISE))

/* defaults and limits of the server */
#define IO_WORKERS				3
#define IO_CONCURRENCY			16	/* effective_, maintenance_ */
#define IO_MAX_CONCURRENCY		64	/* what -1 stands for, at most */
#define IO_MAX_CONCURRENCY_LIMIT 1024
#define MAX_TASKS				64
#define WRITE_BEHIND			32
#define WAL_SYNCS_LIMIT			8
#define WAL_LONG_SYNC			500 /* microseconds */

/* what one process may use of io_max_concurrency, for reads and for writes */
#define READS_OF(n)				((n) / 2)
#define WRITES_OF(n)			((n) * 3 / 8)

typedef struct Advice
{
	const Results *in;
	Recommendation *out;
	int			n;
	FileMode	mode;			/* of the server's data files */
	const char *method;			/* that the server will use, or NULL */
} Advice;

/* rates over depth */
typedef struct Curve
{
	const Results *in;
	TestKind	test;
	FileMode	mode;
	const char *how;
} Curve;

/* Recommend a value; a comment if that is the default. */
static void
pg_attribute_printf(5, 6)
advise(Advice *advice, const char *name, bool is_default, char *value,
	   const char *fmt,...)
{
	char		reason[512];
	va_list		args;

	va_start(args, fmt);
	vsnprintf(reason, sizeof(reason), fmt, args);
	va_end(args);
	Assert(advice->n < RECOMMENDATIONS_LIMIT);
	advice->out[advice->n++] = (Recommendation)
	{
		.name = name,
			.value = value,
			.reason = is_default ? psprintf(_("default: %s"), reason) :
			pstrdup(reason),
			.comment = is_default,
	};
}

/*
 * Is a result clearly better than another one?  Where there were rounds, the
 * worst of the one is better than the best of the other.
 */
static bool
surpasses(const Result *one, const Result *other)
{
	return BETTER(one->rate, other->rate) &&
		(one->low == 0 || other->high == 0 || one->low > other->high);
}

/* One point of a curve, or NULL */
static const Result *
point(const Curve *curve, int depth)
{
	return results_find(curve->in, curve->test, curve->mode, curve->how,
						depth, -1);
}

/* The highest point of a curve, or NULL if it has none */
static const Result *
best(const Curve *curve)
{
	const Result *found = NULL;

	for (int depth = 1; depth <= DEPTH_LIMIT; depth *= 2)
	{
		const Result *result = point(curve, depth);

		if (result != NULL && (found == NULL || result->rate > found->rate))
			found = result;
	}
	return found;
}

/* The highest point of all methods, or NULL */
static const Result *
best_of_all(const Results *in, TestKind test, FileMode mode)
{
	const Result *found = NULL;

	for (int i = 0; all_methods[i] != NULL; i++)
	{
		Curve		curve = {in, test, mode, all_methods[i]->name};
		const Result *result = best(&curve);

		if (result != NULL && (found == NULL || result->rate > found->rate))
			found = result;
	}
	return found;
}

/* The smallest depth that is as good as any.  The curve has a point. */
static int
knee(const Curve *curve)
{
	double		most = best(curve)->rate;

	for (int depth = 1;; depth *= 2)
	{
		const Result *result = point(curve, depth);

		if (result != NULL && ENOUGH(result->rate, most))
			return depth;
	}
}

/*
 * The rate at any depth: between two that were measured, on the line between
 * them; beyond all, that of the nearest.  The curve has a point.
 */
static double
rate_at(const Curve *curve, int at)
{
	const Result *below = NULL;

	for (int depth = 1; depth <= DEPTH_LIMIT; depth *= 2)
	{
		const Result *result = point(curve, depth);

		if (result == NULL)
			continue;
		if (depth >= at && below != NULL)
			return below->rate + (result->rate - below->rate) *
				(at - below->depth) / (depth - below->depth);
		if (depth >= at)
			return result->rate;
		below = result;
	}
	return below->rate;
}

/* In per cent of the highest */
static double
share_at(const Curve *curve, int at)
{
	return 100 * rate_at(curve, at) / best(curve)->rate;
}

/* What io_method = auto chooses, as far as the results can tell; or NULL */
static const Result *
best_of_automatic(const Advice *advice)
{
	const char *const order[] = {"io_uring", "libaio", "worker"};

	for (int i = 0; i < lengthof(order); i++)
	{
		Curve		curve = {advice->in, TEST_READ, advice->mode, order[i]};

		if (strcmp(order[i], "libaio") == 0 && advice->mode != MODE_DIRECT)
			continue;
		if (best(&curve) != NULL)
			return best(&curve);
		if (results_why_not(advice->in, order[i]) == NULL)
			return NULL;		/* nobody tried */
	}
	return NULL;
}

/*
 * Which method?  What auto chooses, or another one if that is faster; but not
 * libaio then, since the server takes a detour for it which was not measured.
 */
static void
advise_method(Advice *advice)
{
	static const char *const others[] = {"io_uring", "worker"};
	const Result *by_auto = best_of_automatic(advice);
	const Result *fastest = by_auto;

	for (int i = 0; i < lengthof(others); i++)
	{
		Curve		curve = {advice->in, TEST_READ, advice->mode, others[i]};
		const Result *result = best(&curve);

		if (result != NULL &&
			(fastest == NULL || surpasses(result, fastest)))
			fastest = result;
	}
	if (fastest == NULL)
		return;

	advice->method = fastest->how;
	if (by_auto == NULL)
		return;
	if (fastest == by_auto)
		advise(advice, "io_method", true, pstrdup("auto"),
			   _("chooses %s, and no other method is clearly faster"),
			   by_auto->how);
	else
		advise(advice, "io_method", false, pstrdup(fastest->how),
			   _("%.0f random reads/s; %s, which auto would choose, %.0f"),
			   fastest->rate, by_auto->how, by_auto->rate);
}

static void
advise_workers(Advice *advice)
{
	Curve		reads = {advice->in, TEST_READ, advice->mode, "worker"};
	double		share = share_at(&reads, IO_WORKERS);

	if (ENOUGH(share, 100))
		advise(advice, "io_workers", true, psprintf("%d", IO_WORKERS),
			   _("%.0f %% of the most random reads/s"), share);
	else
		advise(advice, "io_workers", false, psprintf("%d", knee(&reads)),
			   _("%d workers read %.0f %% of the most"), IO_WORKERS, share);
}

/*
 * How many I/Os may one process have in flight?  Of these it uses a share for
 * reads and another one for writes, which there are only with direct I/O.
 */
static void
advise_limit(Advice *advice, const Curve *reads, const Curve *writes)
{
	double		reads_share = share_at(reads, READS_OF(IO_MAX_CONCURRENCY));
	double		writes_share = 100;
	int			wanted = 0;

	/* more is not better where the curve falls again */
	if (!ENOUGH(reads_share, 100) && knee(reads) > READS_OF(IO_MAX_CONCURRENCY))
		wanted = 2 * knee(reads);
	if (writes != NULL)
	{
		writes_share = share_at(writes, WRITES_OF(IO_MAX_CONCURRENCY));
		if (!ENOUGH(writes_share, 100) &&
			knee(writes) > WRITES_OF(IO_MAX_CONCURRENCY))
			wanted = Max(wanted, (knee(writes) * 8 + 2) / 3);
	}
	wanted = Min(wanted, IO_MAX_CONCURRENCY_LIMIT);

	if (wanted == 0)
		advise(advice, "io_max_concurrency", true, pstrdup("-1"),
			   _("up to %d; one session's share of that reads %.0f %% of the most"),
			   IO_MAX_CONCURRENCY, reads_share);
	else if (wanted == 2 * knee(reads))
		advise(advice, "io_max_concurrency", false, psprintf("%d", wanted),
			   _("with %d, the most that -1 chooses, one session reads %.0f %% of the most"),
			   IO_MAX_CONCURRENCY, reads_share);
	else
		advise(advice, "io_max_concurrency", false, psprintf("%d", wanted),
			   _("with %d, the most that -1 chooses, one session writes %.0f %% of the most"),
			   IO_MAX_CONCURRENCY, writes_share);
}

/* How many of each kind should be in flight? */
static void
advise_depths(Advice *advice)
{
	static const char *const concurrency[] = {
		"effective_io_concurrency", "maintenance_io_concurrency"
	};
	Curve		reads = {advice->in, TEST_READ, advice->mode, advice->method};
	Curve		writes = reads;
	bool		has_writes;
	double		share;

	writes.test = TEST_WRITE;
	has_writes = advice->mode == MODE_DIRECT && best(&writes) != NULL;

	/* what lies beyond the depths that were measured, nobody knows */
	if (point(&reads, READS_OF(IO_MAX_CONCURRENCY)) == NULL)
		return;

	advise_limit(advice, &reads, has_writes ? &writes : NULL);

	share = share_at(&reads, IO_CONCURRENCY);
	for (int i = 0; i < lengthof(concurrency); i++)
	{
		if (ENOUGH(share, 100))
			advise(advice, concurrency[i], true, psprintf("%d", IO_CONCURRENCY),
				   _("%.0f %% of the most random reads/s"), share);
		else
			advise(advice, concurrency[i], false, psprintf("%d", knee(&reads)),
				   _("%d in flight read %.0f %% of the most"),
				   IO_CONCURRENCY, share);
	}

	share = share_at(&reads, MAX_TASKS);
	if (ENOUGH(share, 100))
		advise(advice, "aio.max_tasks", true, psprintf("%d", MAX_TASKS),
			   _("%.0f %% of the most random reads/s"), share);
	else
		advise(advice, "aio.max_tasks", false, psprintf("%d", knee(&reads)),
			   _("%d in flight read %.0f %% of the most"), MAX_TASKS, share);

	if (!has_writes)
		return;
	share = share_at(&writes, WRITE_BEHIND);
	if (ENOUGH(share, 100))
		advise(advice, "aio.write_behind", true, psprintf("%d", WRITE_BEHIND),
			   _("%.0f %% of the most random writes/s"), share);
	else
		advise(advice, "aio.write_behind", false, psprintf("%d", knee(&writes)),
			   _("%d in flight write %.0f %% of the most"), WRITE_BEHIND, share);
}

/*
 * The fastest of the values of wal_sync_method, or NULL.  What syncs all of
 * the file's attributes, too, cannot be faster, even if it looks so.
 */
static const Result *
best_sync(const Results *in, FileMode mode)
{
	static const char *const names[] = {"fdatasync", "open_datasync"};
	const Result *found = NULL;

	for (int i = 0; i < lengthof(names); i++)
	{
		const Result *result = results_find(in, TEST_SYNC, mode, names[i],
											1, -1);

		if (result != NULL &&
			(found == NULL || surpasses(result, found)))
			found = result;
	}
	return found;
}

/*
 * Should the kernel's cache be bypassed?  A developer option is only ever
 * suggested, unless the user has asked for direct I/O.
 */
static void
advise_direct(Advice *advice)
{
	const Result *reads[NMODES];
	const Result *writes[NMODES];
	const Result *syncs[NMODES];
	double		faster_reads,
				faster_writes;
	bool		wal;

	for (FileMode mode = 0; mode < NMODES; mode++)
	{
		reads[mode] = best_of_all(advice->in, TEST_READ, mode);
		writes[mode] = best_of_all(advice->in, TEST_WRITE, mode);
		syncs[mode] = best_sync(advice->in, mode);
	}

	if (advice->mode == MODE_DIRECT)
	{
		advise(advice, "debug_io_direct", false, pstrdup("'data'"),
			   _("as measured; a developer option that wants large shared_buffers"));
		return;
	}
	if (reads[MODE_DIRECT] == NULL || reads[MODE_BUFFERED] == NULL ||
		writes[MODE_DIRECT] == NULL || writes[MODE_BUFFERED] == NULL)
		return;
	faster_reads = reads[MODE_DIRECT]->rate / reads[MODE_BUFFERED]->rate;
	faster_writes = writes[MODE_DIRECT]->rate / writes[MODE_BUFFERED]->rate;
	wal = syncs[MODE_DIRECT] != NULL && syncs[MODE_BUFFERED] != NULL &&
		surpasses(syncs[MODE_DIRECT], syncs[MODE_BUFFERED]);
	if (BETTER(faster_reads, 1))
	{
		advise(advice, "debug_io_direct", false,
			   pstrdup(wal ? "'data,wal'" : "'data'"),
			   _("try it: reads %.1f, writes %.1f times as fast; a developer option that wants large shared_buffers"),
			   faster_reads, faster_writes);
		advice->out[advice->n - 1].comment = true;
	}
	else
		advise(advice, "debug_io_direct", true, pstrdup("''"),
			   _("direct reads are %.1f, direct writes %.1f times as fast as buffered ones"),
			   faster_reads, faster_writes);
}

/* How many syncs should be in flight at a time? */
static void
advise_syncs(Advice *advice, FileMode mode)
{
	static const char *const names[] = {"io_uring", "worker"};

	for (int i = 0; i < lengthof(names); i++)
	{
		Curve		syncs = {advice->in, TEST_SYNC, mode, names[i]};
		const Result *one = point(&syncs, 1);

		if (one == NULL)
			continue;
		if (one->average < WAL_LONG_SYNC)
			advise(advice, "aio.wal_syncs", true, pstrdup("1"),
				   _("a sync takes %.0f us, and more than one is for those of %d us or more"),
				   one->average, WAL_LONG_SYNC);
		else if (knee(&syncs) == 1)
			advise(advice, "aio.wal_syncs", true, pstrdup("1"),
				   _("several at a time give no more syncs/s"));
		else
			advise(advice, "aio.wal_syncs", false,
				   psprintf("%d", Min(knee(&syncs), WAL_SYNCS_LIMIT)),
				   _("%.1f times as many syncs/s as one at a time"),
				   best(&syncs)->rate / one->rate);
		return;
	}
}

static void
advise_wal(Advice *advice)
{
	const Results *in = advice->in;
	FileMode	mode = MODE_BUFFERED;
	const Result *fastest;
	const Result *usual;

	if (best_sync(in, mode) == NULL)
		mode = MODE_DIRECT;
	fastest = best_sync(in, mode);
	usual = results_find(in, TEST_SYNC, mode, "fdatasync", 1, -1);
	if (usual == NULL)
		return;
	if (fastest == usual)
		advise(advice, "wal_sync_method", true, pstrdup("fdatasync"),
			   _("%.0f us, and nothing else is clearly faster"),
			   usual->average);
	else
		advise(advice, "wal_sync_method", false, pstrdup(fastest->how),
			   _("%.0f us; fdatasync, the default, takes %.0f us"),
			   fastest->average, usual->average);
	advise_syncs(advice, mode);
}

static void
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
		advise(advice, "aio.extend_ahead", false, pstrdup("0"),
			   _("the file system cannot allocate past the end of a file: %s"),
			   why_not);

	for (FileMode mode = 0; mode < NMODES; mode++)
	{
		const Result *ahead = results_find(in, TEST_EXTEND, mode,
										   "ahead", -1, 64);
		const Result *at_once = results_find(in, TEST_EXTEND, mode,
											 "fallocate", -1, 64);

		if (ahead == NULL || at_once == NULL)
			continue;
		if (BETTER(at_once->average, ahead->average))
			advise(advice, "aio.extend_ahead", true, psprintf("%dMB", BLOCKS_TO_KB(EXTEND_AHEAD) / 1024),
				   _("an extension by 64 blocks takes %.1f us, and %.1f us without"),
				   ahead->average, at_once->average);
		else
			advise(advice, "aio.extend_ahead", false, pstrdup("0"),
				   _("an extension by 64 blocks takes %.1f us, and %.1f us without"),
				   ahead->average, at_once->average);
	}
}

/* When should the kernel be asked to write what it has cached? */
static void
advise_pace(Advice *advice)
{
	const Result *found = NULL;
	const Result *usual = NULL;

	for (int i = 0; i < NPACES; i++)
	{
		const Result *result = results_find(advice->in, TEST_STREAM,
											MODE_BUFFERED, "append",
											1, BLOCKS_TO_KB(stream_paces[i]));

		if (result == NULL)
			continue;
		if (stream_paces[i] == BULK_FLUSH_AFTER)
			usual = result;
		if (found == NULL || result->rate > found->rate)
			found = result;
	}
	if (usual == NULL)
		return;
	if (surpasses(found, usual))
		advise(advice, "aio.bulk_flush_after", false,
			   found->size == 0 ? pstrdup("0") : psprintf("%dkB", found->size),
			   _("%.0f MB/s with the final sync; with the default %.0f MB/s"),
			   found->rate, usual->rate);
	else
		advise(advice, "aio.bulk_flush_after", true, psprintf("%dkB", BLOCKS_TO_KB(BULK_FLUSH_AFTER)),
			   _("%.0f MB/s with the final sync, and nothing is clearly faster"),
			   usual->rate);
}

/*
 * Recommend settings.  'out' has room for RECOMMENDATIONS_LIMIT; returns how
 * many there are.  Strings belong to the caller.
 */
int
recommend(const Results *in, Recommendation *out)
{
	Advice		advice = {.in = in,.out = out};

	advice.mode = in->requested[MODE_BUFFERED] ? MODE_BUFFERED : MODE_DIRECT;
	advise_method(&advice);
	if (advice.method != NULL)
	{
		if (strcmp(advice.method, "worker") == 0)
			advise_workers(&advice);
		advise_depths(&advice);
	}
	advise_direct(&advice);
	advise_wal(&advice);
	advise_extend(&advice);
	advise_pace(&advice);
	return advice.n;
}
