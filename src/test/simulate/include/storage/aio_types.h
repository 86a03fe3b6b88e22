/*-------------------------------------------------------------------------
 *
 * aio_types.h
 *	  Stands in for upstream's header of this name; see ../postgres.h.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef SIMULATE_AIO_TYPES_H
#define SIMULATE_AIO_TYPES_H

typedef struct PgAioHandle PgAioHandle;

typedef struct PgAioWaitRef
{
	PgAioHandle *handle;
	uint64		generation;
} PgAioWaitRef;

#endif							/* SIMULATE_AIO_TYPES_H */
