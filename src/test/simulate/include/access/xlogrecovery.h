/*-------------------------------------------------------------------------
 *
 * xlogrecovery.h
 *	  Stands in for upstream's header of this name; see ../postgres.h.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef SIMULATE_XLOGRECOVERY_H
#define SIMULATE_XLOGRECOVERY_H

#include "access/xlogdefs.h"

extern XLogRecPtr GetCurrentReplayRecPtr(TimeLineID *tli);

#endif							/* SIMULATE_XLOGRECOVERY_H */
