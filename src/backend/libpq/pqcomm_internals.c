/*-------------------------------------------------------------------------
 *
 * pqcomm_internals.c
 *	  Included at the end of libpq/pqcomm.c: whether a message is being sent,
 *	  and what of one has come.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include <poll.h>

#include "aio/client.h"
#include "tcop/tcopprot.h"

/* bytes that are still to come of a message that nobody wants any more */
size_t		aio_message_rest = 0;

/* Is a message being sent to the client? */
bool
AioSocketBusy(void)
{
	return PqCommBusy;
}

/*
 * Has the connection failed?  To read would tell, but the kernel tells it once
 * only, and whoever waits for the client says it to the log.
 */
static bool
has_failed(void)
{
	struct pollfd connection = {.fd = MyProcPort->sock,.events = POLLIN};

	return poll(&connection, 1, 0) > 0 &&
		(connection.revents & (POLLERR | POLLHUP | POLLNVAL)) != 0;
}

/*
 * Are so many bytes in the buffer, or can be read into it without waiting?
 * Says yes, too, if the connection has failed.
 */
bool
AioReceived(int nbytes)
{
	Assert(nbytes <= PQ_RECV_BUFFER_SIZE);
	while (PqRecvLength - PqRecvPointer < nbytes)
	{
		ssize_t		r;

		if (has_failed())
			return true;
		if (PqRecvPointer > 0)
			memmove(PqRecvBuffer, PqRecvBuffer + PqRecvPointer,
					PqRecvLength - PqRecvPointer);
		PqRecvLength -= PqRecvPointer;
		PqRecvPointer = 0;

		socket_set_nonblocking(true);
		errno = 0;
		r = secure_read(MyProcPort, PqRecvBuffer + PqRecvLength,
						PQ_RECV_BUFFER_SIZE - PqRecvLength);
		if (r < 0)
			return errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR;
		if (r == 0)
			return true;
		PqRecvLength += r;
	}
	return true;
}

/*
 * Wait for the client to send something, so many milliseconds at most.  May
 * return early.
 */
void
AioWaitForClient(long timeout)
{
	WaitEvent	event;

	ModifyWaitEvent(FeBeWaitSet, FeBeWaitSetSocketPos, WL_SOCKET_READABLE, NULL);
	if (WaitEventSetWait(FeBeWaitSet, timeout, &event, 1, WAIT_EVENT_CLIENT_READ) == 0)
		return;
	if (event.events & WL_POSTMASTER_DEATH)
		ereport(FATAL,
				(errcode(ERRCODE_ADMIN_SHUTDOWN),
				 errmsg("terminating connection due to unexpected postmaster exit")));
	if (event.events & WL_LATCH_SET)
	{
		ResetLatch(MyLatch);
		ProcessClientReadInterrupt(true);
	}
}

/*
 * A message, of which so many bytes are still to come, is not read any further:
 * they will be skipped before the next one.
 */
void
AioLeaveMessage(size_t rest)
{
	Assert(PqCommReadingMsg && aio_message_rest == 0);
	aio_message_rest = rest;
	PqCommReadingMsg = false;
}

/* Before another message: skip what was left. */
void
AioSkipRest(void)
{
	size_t		rest = aio_message_rest;

	aio_message_rest = 0;
	(void) pq_discardbytes(rest);
}
