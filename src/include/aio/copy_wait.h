/*-------------------------------------------------------------------------
 *
 * copy_wait.h
 *	  COPY does not keep keys back while it waits for its rows.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AIO_COPY_WAIT_H
#define AIO_COPY_WAIT_H

#include "aio/backlog.h"
#include "commands/copy.h"

/* the COPY that reads a message, until another one is read; or NULL */
extern PGDLLIMPORT CopyFromState aio_copy_reading;

/* pqcomm_internals.c */
extern PGDLLIMPORT size_t aio_message_rest;

extern bool AioReceived(int nbytes);
extern void AioWaitForClient(long timeout);
extern void AioLeaveMessage(size_t rest);
extern void AioSkipRest(void);

extern void AioAwaitMessage(CopyFromState cstate);
extern bool AioReceiveRest(size_t rest);

/* CopyGetData(): instead of fread() */
extern size_t AioReadCopyFile(void *buffer, size_t nbytes,
							  CopyFromState cstate);

/* copy_read_data() */
extern void AioBeforeAwaitingPublisher(pgsocket socket);

/* query_wait.c */
extern void AioClaimKeysOfCopy(CopyFromState cstate);

/* CopyFrom(): another row is wanted */
static inline void
AioBeforeCopyRow(CopyFromState cstate)
{
	if (unlikely(aio_rows_are_few))
		AioClaimKeysOfCopy(cstate);
}

/* CopyGetData(): another message is wanted */
static inline void
AioBeforeCopyMessage(CopyFromState cstate)
{
	if (unlikely(aio_backlogs_exist))
		AioAwaitMessage(cstate);
}

/* pq_startmsgread(): a message is going to be read */
static inline void
AioStartMessage(void)
{
	aio_copy_reading = NULL;
	if (unlikely(aio_message_rest > 0))
		AioSkipRest();
}

/* CopyGetData(): by this COPY */
static inline void
AioCopyReads(CopyFromState cstate)
{
	if (unlikely(aio_backlogs_exist))
		aio_copy_reading = cstate;
}

/* pq_getbytes(): so many bytes are wanted, and none are there; are some now? */
static inline bool
AioReceiveMore(size_t rest)
{
	return unlikely(aio_copy_reading != NULL) && AioReceiveRest(rest);
}

#endif							/* AIO_COPY_WAIT_H */
