/*-------------------------------------------------------------------------
 *
 * read.h
 *	  Buffer reads as futures, and what they share with writes.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AIO_READ_H
#define AIO_READ_H

#include "aio/future.h"
#include "aio/task.h"
#include "storage/aio_types.h"
#include "storage/smgr.h"

/*
 * Completion of one AIO, of this backend or of another one.  Lives on the
 * awaiting task's stack.
 */
typedef struct AioIOFuture
{
	AioFuture	future;			/* must be first */
	PgAioWaitRef wref;
	int			io_context;		/* for pg_stat_io, or AIO_IO_NOT_COUNTED */
} AioIOFuture;

/* somebody else has counted that I/O, or will */
#define AIO_IO_NOT_COUNTED	(-1)

extern void AioReadFutureInit(AioIOFuture *future, const PgAioWaitRef *wref,
							  int io_context);
extern void AioWriteFutureInit(AioIOFuture *future, const PgAioWaitRef *wref,
							   int io_context);
extern bool AioFutureIsRead(const AioFuture *future);
extern void AioReadAbandon(AioIOFuture *read);
extern void AioReadAbandonAll(void);
extern void AioReadReap(void);
extern bool AioTaskAwaits(const AioTask *task, const SMgrRelationData *smgr,
						  ForkNumber forknum);

#endif							/* AIO_READ_H */
