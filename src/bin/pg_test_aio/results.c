/*-------------------------------------------------------------------------
 *
 * results.c
 *	  What is to be measured, and what has been.
 *
 * Tests: src/bin/pg_test_aio/t/001_pg_test_aio.pl.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres_fe.h"

#include "pg_test_aio.h"

const char *const test_names[NTESTS] = {
	"read", "write", "mixed", "sync", "extend", "stream"
};
const char *const mode_names[NMODES] = {"direct", "buffered"};

Options		options = {
	.directory = ".",
	.seconds = 0.5,
	.file_size = 1024 * MEGABYTE,
	.max_depth = DEPTH_LIMIT,
};

/* settings are for buffered I/O unless somebody says otherwise */
Results		results = {
	.requested[MODE_BUFFERED] = true,
};

/*
 * A copy that fits on a line, wherever the string comes from: it goes into
 * comments of postgresql.conf, to gnuplot, and into JSON.
 */
char *
one_line(const char *string)
{
	char	   *copy = pg_strdup(string);

	for (char *c = copy; *c != '\0'; c++)
	{
		if ((unsigned char) *c < ' ')
			*c = '?';
	}
	return copy;
}

/*
 * Add a result, whose numbers are zero.  The pointer is good until the next
 * one is added.
 */
Result *
results_add(TestKind test, FileMode mode, const char *how, int depth, int size)
{
	Result	   *result;

	results.results = pg_realloc_array(results.results, Result,
									   results.nresults + 1);
	result = &results.results[results.nresults++];
	*result = (Result)
	{
		.test = test,.mode = mode,.depth = depth,.size = size
	};
	strlcpy(result->how, how, NAME_LIMIT);
	return result;
}

static int
compare_rates(const void *a, const void *b)
{
	double		rate_a = ((const Result *) a)->rate;
	double		rate_b = ((const Result *) b)->rate;

	return rate_a < rate_b ? -1 : rate_a > rate_b;
}

/*
 * Add the median of some rounds, which are sorted here.  What took longest did
 * so in any of them.
 */
void
results_add_median(TestKind test, FileMode mode, const char *how, int depth,
				   int size, Result *rounds)
{
	Result	   *result = results_add(test, mode, how, depth, size);
	const Result *median = &rounds[ROUNDS / 2];

	qsort(rounds, ROUNDS, sizeof(Result), compare_rates);
	result->rate = median->rate;
	result->low = rounds[0].rate;
	result->high = rounds[ROUNDS - 1].rate;
	result->average = median->average;
	result->p99 = median->p99;
	result->aside = median->aside;
	result->meanwhile = median->meanwhile;
	for (int round = 0; round < ROUNDS; round++)
		result->max = Max(result->max, rounds[round].max);
}

/* Note that something cannot be measured. */
void
results_skip(const char *what, const char *why)
{
	results.skips = pg_realloc_array(results.skips, Skip, results.nskips + 1);
	results.skips[results.nskips++] = (Skip)
	{
		one_line(what), one_line(why)
	};
}

/* Returns a result, or NULL.  'depth' or 'size' may be -1, for any. */
const Result *
results_find(const Results *in, TestKind test, FileMode mode, const char *how,
			 int depth, int size)
{
	for (int i = 0; i < in->nresults; i++)
	{
		const Result *result = &in->results[i];

		if (result->test == test && result->mode == mode &&
			strcmp(result->how, how) == 0 &&
			(depth == -1 || result->depth == depth) &&
			(size == -1 || result->size == size))
			return result;
	}
	return NULL;
}

/* Returns why something has not been measured, or NULL if it has been. */
const char *
results_why_not(const Results *in, const char *what)
{
	for (int i = 0; i < in->nskips; i++)
	{
		if (strcmp(in->skips[i].what, what) == 0)
			return in->skips[i].why;
	}
	return NULL;
}
