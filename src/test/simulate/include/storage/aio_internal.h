/*-------------------------------------------------------------------------
 *
 * aio_internal.h
 *	  Stands in for upstream's header of this name; see ../postgres.h.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef SIMULATE_AIO_INTERNAL_H
#define SIMULATE_AIO_INTERNAL_H

#include <sys/uio.h>

#include "storage/aio_types.h"
#include "storage/relfilelocator.h"

#define PGAIO_HF_SYNCHRONOUS	1

struct PgAioHandle
{
	int			owner_procno;
	int			flags;
	union
	{
		struct
		{
			RelFileLocator rlocator;
		}			smgr;
	}			target_data;
	struct iovec iov;
};

extern int	pgaio_io_get_iovec_length(PgAioHandle *ioh, struct iovec **iov);

#endif							/* SIMULATE_AIO_INTERNAL_H */
