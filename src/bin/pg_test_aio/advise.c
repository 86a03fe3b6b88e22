/*-------------------------------------------------------------------------
 *
 * advise.c
 *	  Lines of a recommendation.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres_fe.h"

#include "recommend.h"

/* Add a line. */
static void
pg_attribute_printf(6, 0)
add(Advice *advice, const char *name, char *value, bool comment,
	const char *prefix, const char *fmt, va_list args)
{
	char		reason[512];

	vsnprintf(reason, sizeof(reason), fmt, args);
	Assert(advice->n < RECOMMENDATIONS_LIMIT);
	advice->out[advice->n++] = (Recommendation)
	{
		.name = name,
			.value = value,
			.reason = psprintf("%s%s", prefix, reason),
			.comment = comment,
	};
}

/* Recommend a value; a comment if that is the default. */
void
advise(Advice *advice, const char *name, bool is_default, char *value,
	   const char *fmt,...)
{
	va_list		args;

	va_start(args, fmt);
	add(advice, name, value, is_default, is_default ? _("default: ") : "",
		fmt, args);
	va_end(args);
}

/* Suggest a value, in a comment. */
void
suggest(Advice *advice, const char *name, char *value, const char *fmt,...)
{
	va_list		args;

	va_start(args, fmt);
	add(advice, name, value, true, "", fmt, args);
	va_end(args);
}

/*
 * Can settings be concluded from a curve?  If not, say so, in place of what it
 * would have been about.
 */
bool
advise_if_possible(Advice *advice, const char *name, const Curve *curve)
{
	const Result *most = curve_best(curve);

	if (curve_is_possible(curve))
		return true;
	suggest(advice, name, NULL,
			_("nothing is recommended, for %.1f times as many with %d in flight as with one cannot be: something was in the way"),
			most->rate / curve_point(curve, 1)->rate, most->depth);
	return false;
}
