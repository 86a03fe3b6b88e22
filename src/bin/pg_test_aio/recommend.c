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
 * Tests: src/bin/pg_test_aio/t/003_recommend.pl.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres_fe.h"

#include "recommend.h"

/* The highest point of all methods, or NULL */
static const Result *
best_of_all(const Results *in, TestKind test, FileMode mode)
{
	const Result *found = NULL;

	for (int i = 0; all_methods[i] != NULL; i++)
	{
		Curve		curve = {in, test, mode, all_methods[i]->name};
		const Result *result = curve_best(&curve);

		if (result != NULL && (found == NULL || result->rate > found->rate))
			found = result;
	}
	return found;
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
		if (curve_best(&curve) != NULL)
			return curve_best(&curve);
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
		const Result *result = curve_best(&curve);

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

/* Of two results, how many times is the first one as fast? */
static double
ratio(const Result *one, const Result *other)
{
	return one->rate / other->rate;
}

/*
 * Should the kernel's cache be bypassed?  That is a developer option, and no
 * test tells whether shared_buffers can stand for the cache: so a suggestion is
 * all there is, also if the user has asked for direct I/O.
 */
static void
advise_direct(Advice *advice)
{
	static const char name[] = "debug_io_direct";
	const Result *reads[NMODES];
	const Result *writes[NMODES];
	const Result *syncs[NMODES];
	bool		wal;

	for (FileMode mode = 0; mode < NMODES; mode++)
	{
		reads[mode] = best_of_all(advice->in, TEST_READ, mode);
		writes[mode] = best_of_all(advice->in, TEST_WRITE, mode);
		syncs[mode] = results_find(advice->in, TEST_SYNC, mode, "fdatasync",
								   1, -1);
	}
	if (reads[MODE_DIRECT] == NULL || writes[MODE_DIRECT] == NULL)
		return;
	if (advice->mode == MODE_DIRECT)
	{
		suggest(advice, name, pstrdup("'data'"),
				_("the other settings are for this; a developer option that wants large shared_buffers"));
		return;
	}
	if (reads[MODE_BUFFERED] == NULL || writes[MODE_BUFFERED] == NULL)
		return;

	wal = syncs[MODE_DIRECT] != NULL && syncs[MODE_BUFFERED] != NULL &&
		surpasses(syncs[MODE_DIRECT], syncs[MODE_BUFFERED]);
	if (surpasses(reads[MODE_DIRECT], reads[MODE_BUFFERED]))
		suggest(advice, name, pstrdup(wal ? "'data,wal'" : "'data'"),
				_("try it: reads %.1f, writes %.1f times as fast; a developer option that wants large shared_buffers"),
				ratio(reads[MODE_DIRECT], reads[MODE_BUFFERED]),
				ratio(writes[MODE_DIRECT], writes[MODE_BUFFERED]));
	else
		advise(advice, name, true, pstrdup("''"),
			   _("direct reads are %.1f, direct writes %.1f times as fast as buffered ones"),
			   ratio(reads[MODE_DIRECT], reads[MODE_BUFFERED]),
			   ratio(writes[MODE_DIRECT], writes[MODE_BUFFERED]));
}

/*
 * Recommend settings.  'out' has room for RECOMMENDATIONS_LIMIT; returns how
 * many there are.  Their strings are never freed.
 */
int
recommend(const Results *in, Recommendation *out)
{
	Advice		advice = {.in = in,.out = out};

	advice.mode = in->requested[MODE_BUFFERED] ? MODE_BUFFERED : MODE_DIRECT;
	advise_method(&advice);
	advise_workers(&advice);
	if (advice.method != NULL)
		advise_depths(&advice);
	advise_direct(&advice);
	advise_wal(&advice);
	advise_extend(&advice);
	advise_pace(&advice);
	return advice.n;
}
