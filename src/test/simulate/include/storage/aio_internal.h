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

#include "storage/aio.h"

#define PGAIO_HF_SYNCHRONOUS	1

struct PgAioHandle
{
	int			owner_procno;
	int			flags;
	int			op;
	uint32		iovec_off;
	PgAioTargetData target_data;
	struct iovec iov;
};

typedef struct PgAioCtl
{
	struct iovec *iovecs;
	PgAioHandle *io_handles;
} PgAioCtl;

typedef struct PgAioBackend
{
	int			num_staged_ios;
	PgAioHandle *handed_out_io;
} PgAioBackend;

extern PgAioCtl *pgaio_ctl;
extern PgAioBackend *pgaio_my_backend;

extern int	pgaio_io_get_iovec_length(PgAioHandle *ioh, struct iovec **iov);

#endif							/* SIMULATE_AIO_INTERNAL_H */
