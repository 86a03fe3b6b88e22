/*-------------------------------------------------------------------------
 *
 * client.h
 *	  Nobody waits for a client that somebody else waits for.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AIO_CLIENT_H
#define AIO_CLIENT_H

#include "libpq/protocol.h"
#include "utils/elog.h"

/* messages for the client wait until they may be sent */
extern PGDLLIMPORT bool aio_messages_kept;

extern ErrorData *AioBeforeTelling(ErrorData *edata);
extern bool AioKeepOrSend(char type, const char *body, size_t len);
extern void AioFlushMessage(void);
extern void AioSendKept(void);
extern void AioSendKeptIfAllowed(void);
extern void AioSendKeptBeforeWait(void);
extern void AioScopeHasKept(void);
extern bool AioMayWaitToSend(void);
extern void AioForbidKeeping(void);
extern bool AioIsEnding(void);
extern bool AioHoldsUpOthers(void);
extern bool AioMayWaitForClient(void);

/* pqcomm_internals.c and pqmq_internals.c: is a message being sent? */
extern bool AioSocketBusy(void);
extern bool AioQueueBusy(void);

#ifdef USE_ASSERT_CHECKING
extern void AioAssertMayTell(void);
#else
#define AioAssertMayTell()	((void) 0)
#endif

/* socket_putmessage(), mq_putmessage(): is a message kept, to be sent later? */
static inline bool
AioKeepMessage(char type, const char *body, size_t len)
{
	return unlikely(aio_messages_kept || type == PqMsg_NoticeResponse ||
					type == PqMsg_ErrorResponse) &&
		AioKeepOrSend(type, body, len);
}

#endif							/* AIO_CLIENT_H */
