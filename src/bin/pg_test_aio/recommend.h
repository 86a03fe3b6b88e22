/*-------------------------------------------------------------------------
 *
 * recommend.h
 *	  What the parts of the recommendations have in common.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef RECOMMEND_H
#define RECOMMEND_H

#include "pg_test_aio.h"

/* less than this does not count */
#define NOISE			0.05
#define BETTER(a, b)	((a) > (b) * (1 + NOISE))

/* for the curves of the method worker, for instance */
typedef struct Curve
{
	const Results *in;
	TestKind	test;
	FileMode	mode;
	const char *how;
} Curve;

typedef struct Advice
{
	const Results *in;
	Recommendation *out;
	int			n;
	FileMode	mode;			/* of the server's data files */
	const char *method;			/* that the server will use, or NULL */
} Advice;

/* curve.c */
extern bool surpasses(const Result *one, const Result *other);
extern const Result *curve_point(const Curve *curve, int depth);
extern const Result *curve_best(const Curve *curve);
extern int	curve_knee(const Curve *curve);
extern Result curve_at(const Curve *curve, int depth);
extern bool curve_is_possible(const Curve *curve);

/* advise.c */
extern void advise(Advice *advice, const char *name, bool is_default,
				   char *value, const char *fmt,...)
			pg_attribute_printf(5, 6);
extern void suggest(Advice *advice, const char *name, char *value,
					const char *fmt,...) pg_attribute_printf(4, 5);
extern bool advise_if_possible(Advice *advice, const char *name,
							   const Curve *curve);

/* recommend_depth.c, recommend_files.c */
extern void advise_depths(Advice *advice);
extern void advise_workers(Advice *advice);
extern void advise_wal(Advice *advice);
extern void advise_extend(Advice *advice);
extern void advise_pace(Advice *advice);

#endif							/* RECOMMEND_H */
