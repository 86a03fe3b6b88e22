/*-------------------------------------------------------------------------
 *
 * pqmq_internals.c
 *	  Included at the end of libpq/pqmq.c: whether a message is being sent.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "aio/client.h"

/* Is a worker in the middle of a message to its leader? */
bool
AioQueueBusy(void)
{
	return pq_mq_busy;
}
