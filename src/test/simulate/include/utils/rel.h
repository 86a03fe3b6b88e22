/*-------------------------------------------------------------------------
 *
 * rel.h
 *	  Stands in for upstream's header of this name; see ../postgres.h.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef SIMULATE_REL_H
#define SIMULATE_REL_H

#include "utils/relcache.h"

#endif							/* SIMULATE_REL_H */
