/*-------------------------------------------------------------------------
 *
 * guc.h
 *	  Stands in for upstream's header of this name; see ../postgres.h.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef SIMULATE_GUC_H
#define SIMULATE_GUC_H

enum
{
	PGC_POSTMASTER,
	PGC_S_DYNAMIC_DEFAULT,
	PGC_S_OVERRIDE,
};

extern void SetConfigOption(const char *name, const char *value, int context,
							int source);

#endif							/* SIMULATE_GUC_H */
