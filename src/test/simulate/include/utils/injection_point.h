/*-------------------------------------------------------------------------
 *
 * injection_point.h
 *	  Stands in for upstream's header of this name; see ../postgres.h.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef SIMULATE_INJECTION_POINT_H
#define SIMULATE_INJECTION_POINT_H

extern void SimPoint(void);

#define INJECTION_POINT(name, arg)		SimPoint()
#define INJECTION_POINT_CACHED(name, arg)	SimPoint()

#endif							/* SIMULATE_INJECTION_POINT_H */
