/*-------------------------------------------------------------------------
 *
 * pgstat.h
 *	  Stands in for upstream's header of this name; see ../postgres.h.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef SIMULATE_PGSTAT_H
#define SIMULATE_PGSTAT_H

#include "utils/wait_event.h"

#endif							/* SIMULATE_PGSTAT_H */
