/*-------------------------------------------------------------------------
 *
 * aio_subsys.h
 *	  Stands in for upstream's header of this name; see ../postgres.h.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef SIMULATE_AIO_SUBSYS_H
#define SIMULATE_AIO_SUBSYS_H

#include "storage/aio.h"

#endif							/* SIMULATE_AIO_SUBSYS_H */
