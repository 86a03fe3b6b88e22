/*-------------------------------------------------------------------------
 *
 * progress.c
 *	  How much there is to measure, and how much has been.
 *
 * All tests are run twice: first to count the measurements, then to make them.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres_fe.h"

#include <math.h>
#include <unistd.h>

#include "pg_test_aio.h"

/* of all measurements, in units of the time of one */
static bool counting = true;
static double total = 0;
static double complete = 0;

/*
 * Announce a measurement that takes 'weight' times the time of a test, with a
 * description.  Returns whether it is to be made now; otherwise it has only
 * been counted.
 */
bool
begin_measurement(double weight, const char *fmt,...)
{
	if (counting)
	{
		total += weight;
		return false;
	}
	if (options.progress)
	{
		char		what[128];
		va_list		args;

		va_start(args, fmt);
		vsnprintf(what, sizeof(what), fmt, args);
		va_end(args);
		fprintf(stderr, _("%3.0f %%, about %.0f s left: %-50s"), 100 * complete / total,
				ceil((total - complete) * options.seconds), what);
		fputc(isatty(fileno(stderr)) ? '\r' : '\n', stderr);
	}
	complete += weight;
	return true;
}

/* Wipe out the line of progress, if it is one that is overwritten. */
void
end_progress(void)
{
	if (options.progress && isatty(fileno(stderr)))
		fprintf(stderr, "%79s\r", "");
}

/* Are measurements only counted yet? */
bool
counting_measurements(void)
{
	return counting;
}

/* All have been counted; from now on they are made. */
void
end_counting(void)
{
	counting = false;
}

/* The time for all that have been counted. */
double
seconds_of_all(void)
{
	return total * options.seconds;
}
