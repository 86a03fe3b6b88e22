/*-------------------------------------------------------------------------
 *
 * recommend_depth.c
 *	  Settings that say how many I/Os may be in flight.
 *
 * A default stays unless the best depth is clearly better.  Then the smallest
 * depth that is as good as the best one is recommended, so far as a process can
 * have as many in flight.
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

#include "port/pg_bitutils.h"
#include "recommend.h"

/* defaults of the server */
#define IO_WORKERS				3
#define IO_CONCURRENCY			16	/* effective_, maintenance_ */
#define IO_MAX_CONCURRENCY		64	/* what -1 stands for, at most */
#define MAX_TASKS				64
#define WRITE_BEHIND			32

/*
 * More is not recommended: each process of the server has memory for so many,
 * and with io_uring a ring that is as large, of memory that is locked.
 */
#define IO_MAX_CONCURRENCY_MOST 256

/* what one process may use of io_max_concurrency, for reads and for writes */
#define READS_OF(n)				((n) / 2)
#define WRITES_OF(n)			((n) * 3 / 8)

/* and how much that has to be for so many; the inverse, rounded up */
#define FOR_READS(n)			(2 * (n))
#define FOR_WRITES(n)			(((n) * 8 + 2) / 3)

/* Is no depth clearly better than this one? */
static bool
is_enough(const Curve *curve, int depth)
{
	Result		here = curve_at(curve, depth);

	return !surpasses(curve_best(curve), &here);
}

/* In per cent of the highest; more than that is not known to be more */
static double
share_at(const Curve *curve, int depth)
{
	return 100 * curve_at(curve, depth).rate / curve_best(curve)->rate;
}

/* Recommend a depth, the default or one that is not more than 'most'. */
static void
advise_depth(Advice *advice, const char *name, const Curve *curve,
			 int usual, int most)
{
	const char *what = curve->test == TEST_WRITE ? _("writes") : _("reads");
	double		share = share_at(curve, usual);
	int			wanted = Min(curve_knee(curve), most);

	if (is_enough(curve, usual) || wanted == usual)
		advise(advice, name, true, psprintf("%d", usual),
			   _("%.0f %% of the most random %s/s, and nothing is clearly better"),
			   share, what);
	else
		advise(advice, name, false, psprintf("%d", wanted),
			   _("%.0f %% of the most random %s/s with the default, %d"),
			   share, what, usual);
}

/*
 * How many workers?  Only the method worker has them; but a server that has to
 * do without another one falls back to it, so they are told in any case.
 */
void
advise_workers(Advice *advice)
{
	Curve		reads = {advice->in, TEST_READ, advice->mode, "worker"};

	/* the default must have been measured, or lie between what was */
	if (curve_point(&reads, 4) == NULL ||
		!advise_if_possible(advice, "io_workers", &reads))
		return;
	if (advice->method != NULL && strcmp(advice->method, "worker") == 0)
		advise_depth(advice, "io_workers", &reads, IO_WORKERS, WORKERS_LIMIT);
	else if (is_enough(&reads, IO_WORKERS))
		suggest(advice, "io_workers", psprintf("%d", IO_WORKERS),
				_("default, and enough for io_method = worker"));
	else
		suggest(advice, "io_workers", psprintf("%d", curve_knee(&reads)),
				_("for io_method = worker: %.0f %% of the most random reads/s with the default, %d"),
				share_at(&reads, IO_WORKERS), IO_WORKERS);
}

/*
 * How many I/Os may one process have in flight?  Of these it uses a share for
 * reads and another one for writes, which there are only with direct I/O.
 */
static void
advise_limit(Advice *advice, const Curve *reads, const Curve *writes)
{
	static const char name[] = "io_max_concurrency";
	double		reads_share = share_at(reads, READS_OF(IO_MAX_CONCURRENCY));
	int			for_reads = 0;
	int			for_writes = 0;
	uint32		wanted;

	/* more is not better where the curve falls again */
	if (!is_enough(reads, READS_OF(IO_MAX_CONCURRENCY)))
		for_reads = FOR_READS(curve_knee(reads));
	if (writes != NULL && !is_enough(writes, WRITES_OF(IO_MAX_CONCURRENCY)))
		for_writes = FOR_WRITES(curve_knee(writes));
	wanted = Max(for_reads, for_writes);

	if (wanted <= IO_MAX_CONCURRENCY)
	{
		advise(advice, name, true, pstrdup("-1"),
			   _("up to %d; one session's share of that reads %.0f %% of the most"),
			   IO_MAX_CONCURRENCY, reads_share);
		return;
	}
	/* a ring is a power of two in any case */
	wanted = Min(pg_nextpower2_32(wanted), IO_MAX_CONCURRENCY_MOST);
	if (for_reads >= for_writes)
		advise(advice, name, false, psprintf("%u", wanted),
			   _("with %d, the most that -1 chooses, one session reads %.0f %% of the most"),
			   IO_MAX_CONCURRENCY, reads_share);
	else
		advise(advice, name, false, psprintf("%u", wanted),
			   _("with %d, the most that -1 chooses, one session writes %.0f %% of the most"),
			   IO_MAX_CONCURRENCY,
			   share_at(writes, WRITES_OF(IO_MAX_CONCURRENCY)));
}

/* How many of each kind should be in flight?  The method is known. */
void
advise_depths(Advice *advice)
{
	Curve		reads = {advice->in, TEST_READ, advice->mode, advice->method};
	Curve		writes = {advice->in, TEST_WRITE, advice->mode, advice->method};
	bool		has_writes = advice->mode == MODE_DIRECT &&
		curve_best(&writes) != NULL;

	/* what lies beyond the depths that were measured, nobody knows */
	if (curve_point(&reads, READS_OF(IO_MAX_CONCURRENCY)) == NULL ||
		!advise_if_possible(advice, "effective_io_concurrency", &reads))
		return;
	if (has_writes && !advise_if_possible(advice, "aio.write_behind", &writes))
		has_writes = false;

	advise_limit(advice, &reads, has_writes ? &writes : NULL);
	advise_depth(advice, "effective_io_concurrency", &reads,
				 IO_CONCURRENCY, DEPTH_LIMIT);
	advise_depth(advice, "maintenance_io_concurrency", &reads,
				 IO_CONCURRENCY, DEPTH_LIMIT);
	advise_depth(advice, "aio.max_tasks", &reads, MAX_TASKS,
				 READS_OF(IO_MAX_CONCURRENCY_MOST));
	if (has_writes)
		advise_depth(advice, "aio.write_behind", &writes, WRITE_BEHIND,
					 WRITES_OF(IO_MAX_CONCURRENCY_MOST));
}
