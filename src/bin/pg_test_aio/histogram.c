/*-------------------------------------------------------------------------
 *
 * histogram.c
 *	  Latencies, counted in classes whose width grows with the value.
 *
 * A class is a sixteenth of a power of two wide, so a percentile is exact to
 * some 6 %, at the cost of one increment per I/O and without a sorted list.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres_fe.h"

#include <math.h>

#include "pg_test_aio.h"
#include "port/pg_bitutils.h"

#define CLASS_BITS		4
#define NCLASSES		(1 << CLASS_BITS)

static int
class_of(int64 ns)
{
	int			power;

	if (ns < NCLASSES)
		return (int) Max(ns, 0);
	power = pg_leftmost_one_pos64((uint64) ns);
	return (power - CLASS_BITS + 1) * NCLASSES +
		(int) ((ns >> (power - CLASS_BITS)) & (NCLASSES - 1));
}

/* The middle of a class, in nanoseconds. */
static double
value_of(int class)
{
	int			shift = class / NCLASSES - 1;

	if (shift < 0)
		return class;
	return ldexp(NCLASSES + class % NCLASSES + 0.5, shift);
}

/* Count one I/O that took so many nanoseconds. */
void
histogram_add(Histogram *histogram, int64 ns)
{
	histogram->count[class_of(ns)]++;
	histogram->n++;
	histogram->max = Max(histogram->max, ns);
	histogram->sum += ns;
}

/* Set average, p99 and max of a result. */
void
histogram_summary(const Histogram *histogram, Result *result)
{
	int64		above = histogram->n / 100;
	int			class = HISTOGRAM_SIZE - 1;

	if (histogram->n == 0)
		return;
	while (class > 0 && histogram->count[class] <= above)
		above -= histogram->count[class--];
	result->average = histogram->sum / histogram->n / 1000;
	result->p99 = Min(value_of(class), histogram->max) / 1000;
	result->max = histogram->max / 1000.0;
}
