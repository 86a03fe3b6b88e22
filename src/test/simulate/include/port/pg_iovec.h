/*-------------------------------------------------------------------------
 *
 * pg_iovec.h
 *	  Stands in for upstream's header of this name; see ../postgres.h.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef SIMULATE_PG_IOVEC_H
#define SIMULATE_PG_IOVEC_H

#include <sys/uio.h>

#endif							/* SIMULATE_PG_IOVEC_H */
