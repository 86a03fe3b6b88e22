/*-------------------------------------------------------------------------
 *
 * relpath.h
 *	  Stands in for upstream's header of this name; see ../postgres.h.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef SIMULATE_RELPATH_H
#define SIMULATE_RELPATH_H

#include "storage/relfilelocator.h"

typedef struct RelPathStr
{
	char		str[32];
} RelPathStr;

extern RelPathStr relpathbackend(RelFileLocator locator, int backend,
								 ForkNumber forknum);
extern RelPathStr relpathperm(RelFileLocator locator, ForkNumber forknum);

#endif							/* SIMULATE_RELPATH_H */
