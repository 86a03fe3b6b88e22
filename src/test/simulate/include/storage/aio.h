/*-------------------------------------------------------------------------
 *
 * aio.h
 *	  Stands in for upstream's header of this name; see ../postgres.h.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef SIMULATE_AIO_H
#define SIMULATE_AIO_H

#include "storage/aio_types.h"

#define AIO_OP_FALLOCATE	3

typedef struct PgAioTargetInfo PgAioTargetInfo;
typedef struct PgAioHandleCallbacks PgAioHandleCallbacks;

#endif							/* SIMULATE_AIO_H */
