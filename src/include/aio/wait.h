/*-------------------------------------------------------------------------
 *
 * wait.h
 *	  Waiting for several futures at once, and futures on sockets.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AIO_WAIT_H
#define AIO_WAIT_H

#include "aio/future.h"
#include "storage/waiteventset.h"

/* complete when a socket is ready */
typedef struct AioSocketFuture
{
	AioFuture	future;			/* must be first */
	pgsocket	socket;
	uint32		events;
	bool		ready;
} AioSocketFuture;

extern void AioSocketFutureInit(AioSocketFuture *future, pgsocket socket,
								uint32 events);
extern bool AioWaitForAny(AioFuture *const *futures, int n,
						  uint32 wait_event_info);
extern int	AioWaitEventSetWait(WaitEventSet *set, long timeout,
								WaitEvent *events, int nevents,
								AioFuture *const *futures, int n,
								uint32 wait_event_info);

#endif							/* AIO_WAIT_H */
