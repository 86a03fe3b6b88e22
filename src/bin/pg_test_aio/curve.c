/*-------------------------------------------------------------------------
 *
 * curve.c
 *	  Rates over depth, and what is clearly better than what.
 *
 * Each point is the median of some rounds, with the slowest and the fastest
 * beside it.  The highest of many points is high by chance, too; so nothing is
 * concluded from it before it has been compared by surpasses().
 *
 * Tests: src/bin/pg_test_aio/t/003_recommend.pl.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres_fe.h"

#include "recommend.h"

/*
 * Is a result clearly better than another one?  Where there were rounds, the
 * worst of the one is better than the best of the other.
 */
bool
surpasses(const Result *one, const Result *other)
{
	return BETTER(one->rate, other->rate) &&
		(one->low == 0 || other->high == 0 || one->low > other->high);
}

/* One point of a curve, or NULL */
const Result *
curve_point(const Curve *curve, int depth)
{
	return results_find(curve->in, curve->test, curve->mode, curve->how,
						depth, -1);
}

/* The highest point of a curve, or NULL if it has none */
const Result *
curve_best(const Curve *curve)
{
	const Result *found = NULL;

	for (int depth = 1; depth <= DEPTH_LIMIT; depth *= 2)
	{
		const Result *result = curve_point(curve, depth);

		if (result != NULL && (found == NULL || result->rate > found->rate))
			found = result;
	}
	return found;
}

/* The smallest depth that is as good as any.  The curve has a point. */
int
curve_knee(const Curve *curve)
{
	double		most = curve_best(curve)->rate;

	for (int depth = 1;; depth *= 2)
	{
		const Result *result = curve_point(curve, depth);

		if (result != NULL && !BETTER(most, result->rate))
			return depth;
	}
}

static double
between(double below, double above, double part)
{
	return below + (above - below) * part;
}

/*
 * What there would be at any depth: between two that were measured, on the line
 * between them; beyond all, that of the nearest.  The curve has a point.
 */
Result
curve_at(const Curve *curve, int depth)
{
	const Result *below = NULL;

	for (int d = 1; d <= DEPTH_LIMIT; d *= 2)
	{
		const Result *above = curve_point(curve, d);

		if (above == NULL)
			continue;
		if (d >= depth && below != NULL)
		{
			double		part = (double) (depth - below->depth) /
				(d - below->depth);
			Result		result = *above;

			result.rate = between(below->rate, above->rate, part);
			result.low = between(below->low, above->low, part);
			result.high = between(below->high, above->high, part);
			return result;
		}
		if (d >= depth)
			return *above;
		below = above;
	}
	return *below;
}

/*
 * With n in flight there cannot be more than n times as many as with one.  If
 * there are, something else has slowed down that one.  The curve has a point.
 */
bool
curve_is_possible(const Curve *curve)
{
	const Result *one = curve_point(curve, 1);
	const Result *most = curve_best(curve);

	return one == NULL || !BETTER(most->rate, one->rate * most->depth);
}
