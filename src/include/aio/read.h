/*-------------------------------------------------------------------------
 *
 * read.h
 *	  Buffer reads as futures.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AIO_READ_H
#define AIO_READ_H

#include "aio/future.h"
#include "storage/aio_types.h"

/*
 * Completion of one AIO, of this backend or of another one.  Lives on the
 * awaiting task's stack.
 */
typedef struct AioReadFuture
{
	AioFuture	future;			/* must be first */
	PgAioWaitRef wref;
} AioReadFuture;

extern void AioReadFutureInit(AioReadFuture *future, const PgAioWaitRef *wref);
extern bool AioFutureIsRead(const AioFuture *future);
extern void AioReadAbandon(AioReadFuture *read);
extern void AioReadAbandonAll(void);
extern void AioReadReap(void);

#endif							/* AIO_READ_H */
