/*-------------------------------------------------------------------------
 *
 * receive_ahead.c
 *	  Logical replication: where messages come from, which may be kept ahead.
 *
 * A worker gets its messages from the publisher, from the subscription's
 * leading worker, or from a file to which the latter has written them.
 * Functions here stand in for those that get the next one.  While nothing has
 * to be looked up ahead (apply_ahead.c) they pass the call on.
 *
 * The end of messages, and an error that is met while they are received ahead,
 * are kept until all messages before have been returned (INVARIANT-67).  But a
 * keepalive has the worker answer: after the end it is not returned, as there
 * is nobody to answer to.
 *
 * A file is read ahead through the same handle, which is moved back.
 *
 * Tests: src/test/aio/replication.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "aio/apply_ahead.h"
#include "aio/backlog.h"
#include "miscadmin.h"
#include "replication/logicalproto.h"
#include "replication/walreceiver.h"
#include "replication/worker_internal.h"
#include "storage/buffile.h"
#include "storage/latch.h"
#include "storage/shm_mq.h"
#include "utils/memutils.h"
#include "utils/wait_event.h"

/* 'w', two positions and a time */
#define BYTES_BEFORE_CHANGE	(1 + 2 * (int) sizeof(XLogRecPtr) + (int) sizeof(TimestampTz))

/* first byte of a message that only asks whether somebody is there */
#define KEEPALIVE	'k'

/* Messages of the publisher, or of the leading worker. */
static AioApplyAhead *received = NULL;

/* How they have ended, if they have: what is returned then, or an error. */
static int	end_result = 0;
static ErrorData *end_error = NULL;

/* Messages of a file. */
static AioApplyAhead *spooled = NULL;

typedef struct SpoolPosition
{
	int			fileno;
	off_t		offset;
} SpoolPosition;

static SpoolPosition spool_ahead;	/* behind the last message that is kept */
static char *spool_message = NULL;	/* read last */
static size_t spool_room = 0;	/* for it */

/*
 * Milliseconds that the worker waits for a message with indexes locked.
 */
#define PAUSE_MAX	10L

/* room for a message of a file that is not given back */
#define SPOOL_ROOM_KEPT		(64 * 1024)

/*
 * walrcv_receive(), but with an error of the connection as a result, -1, and in
 * end_error.  Such an error leaves nothing behind that has to be cleaned up.
 */
static int
receive(WalReceiverConn *conn, char **data)
{
	MemoryContext context = CurrentMemoryContext;
	pgsocket	wait_fd;
	volatile int len = -1;

	PG_TRY();
	{
		len = walrcv_receive(conn, data, &wait_fd);
	}
	PG_CATCH();
	{
		MemoryContextSwitchTo(TopMemoryContext);
		end_error = CopyErrorData();
		MemoryContextSwitchTo(context);
		if (ERRCODE_TO_CATEGORY(end_error->sqlerrcode) != ERRCODE_CONNECTION_EXCEPTION)
			PG_RE_THROW();
		FlushErrorState();
	}
	PG_END_TRY();
	return len;
}

/* AioMessageSource.next: from the publisher */
static AioNextMessage
next_of_publisher(void *arg, char **data, int *len)
{
	*len = receive(arg, data);
	if (*len == 0)
		return AIO_MESSAGE_NOT_YET;
	if (*len < 0)
	{
		end_result = *len;
		return AIO_MESSAGE_NEVER;
	}
	return AIO_MESSAGE_READY;
}

/* AioMessageSource.next: from the leading worker */
static AioNextMessage
next_of_leader(void *arg, char **data, int *len)
{
	Size		nbytes;
	void	   *bytes;

	shm_mq_result result = shm_mq_receive(arg, &nbytes, &bytes, true);

	if (result == SHM_MQ_WOULD_BLOCK)
		return AIO_MESSAGE_NOT_YET;
	if (result != SHM_MQ_SUCCESS)
	{
		end_result = result;
		return AIO_MESSAGE_NEVER;
	}
	*data = bytes;
	*len = (int) nbytes;
	return AIO_MESSAGE_READY;
}

static bool
keeps_messages(const AioApplyAhead *ahead)
{
	return AioApplyMayBegin() || (ahead != NULL && AioApplyAheadActive(ahead));
}

/* The next message that has been kept, after keeping others. */
static bool
take_received(const AioMessageSource *source, char **data, int *len)
{
	if (received == NULL)
		received = AioApplyAheadMake(source);
	AioApplyAheadDue(received);
	return AioApplyAheadTake(received, data, len);
}

static int
receive_message(WalReceiverConn *conn, char **buffer, pgsocket *wait_fd)
{
	AioMessageSource source = {.next = next_of_publisher,.arg = conn,
	.prefix = BYTES_BEFORE_CHANGE};
	int			len;

	if (!keeps_messages(received))
		return walrcv_receive(conn, buffer, wait_fd);
	while (take_received(&source, buffer, &len))
	{
		if (end_result == 0 || (*buffer)[0] != KEEPALIVE)
			return len;
	}
	if (end_error != NULL)
		ReThrowError(end_error);
	if (end_result != 0)
		return end_result;
	return walrcv_receive(conn, buffer, wait_fd);
}

/*
 * LogicalRepApplyLoop(): the next message, as by walrcv_receive().
 */
int
AioReceiveMessage(WalReceiverConn *conn, char **buffer, pgsocket *wait_fd)
{
	int			len = receive_message(conn, buffer, wait_fd);

	if (len == 0 && AioApplyHasLocks())
	{
		(void) WaitLatchOrSocket(NULL, WL_SOCKET_READABLE | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
								 *wait_fd, PAUSE_MAX, WAIT_EVENT_LOGICAL_APPLY_MAIN);
		len = receive_message(conn, buffer, wait_fd);
		if (len == 0)
			AioEndApply();
	}
	return len;
}

static int
receive_from_leader(shm_mq_handle *queue, Size *len, void **data, bool nowait)
{
	AioMessageSource source = {.next = next_of_leader,.arg = queue,
	.prefix = BYTES_BEFORE_CHANGE,.has_xid = true};
	char	   *message;
	int			length;

	if (!keeps_messages(received))
		return shm_mq_receive(queue, len, data, nowait);
	if (take_received(&source, &message, &length))
	{
		*data = message;
		*len = length;
		return SHM_MQ_SUCCESS;
	}
	if (end_result != 0)
		return end_result;
	return shm_mq_receive(queue, len, data, nowait);
}

/*
 * LogicalParallelApplyLoop(): the next message, as by shm_mq_receive().
 */
int
AioReceiveFromLeader(shm_mq_handle *queue, Size *len, void **data, bool nowait)
{
	int			result = receive_from_leader(queue, len, data, nowait);

	if (result == SHM_MQ_WOULD_BLOCK && AioApplyHasLocks())
	{
		/* the caller resets it */
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
						 PAUSE_MAX, WAIT_EVENT_LOGICAL_PARALLEL_APPLY_MAIN);
		result = receive_from_leader(queue, len, data, nowait);
		if (result == SHM_MQ_WOULD_BLOCK)
			AioEndApply();
	}
	return result;
}

/* AioMessageSource.next: from a file, whose position moves */
static AioNextMessage
next_of_spool(void *arg, char **data, int *len)
{
	BufFile    *file = *(BufFile **) arg;

	if (BufFileSeek(file, spool_ahead.fileno, spool_ahead.offset, SEEK_SET) != 0 ||
		BufFileRead(file, len, sizeof(*len)) != sizeof(*len) ||
		*len <= 0 || *len > MaxAllocSize)
		return AIO_MESSAGE_NOT_YET;
	if (spool_room < *len)
	{
		spool_message = spool_message == NULL ?
			MemoryContextAlloc(TopMemoryContext, *len) :
			repalloc(spool_message, *len);
		spool_room = *len;
	}
	if (BufFileRead(file, spool_message, *len) != *len)
		return AIO_MESSAGE_NOT_YET;
	BufFileTell(file, &spool_ahead.fileno, &spool_ahead.offset);
	*data = spool_message;
	return AIO_MESSAGE_READY;
}

/* A message that was large may not be followed by others. */
static void
give_back_room(void)
{
	if (spool_room <= SPOOL_ROOM_KEPT)
		return;
	pfree(spool_message);
	spool_message = NULL;
	spool_room = 0;
}

/*
 * apply_spooled_messages(): read the next message, as by BufFileReadExact().
 */
void
AioReadSpooledMessage(BufFile *file, void *buffer, size_t len)
{
	static BufFile *source_file;
	AioMessageSource source = {.next = next_of_spool,.arg = &source_file,
	.has_xid = am_parallel_apply_worker()};
	SpoolPosition next;
	char	   *kept;
	int			kept_len;

	BufFileReadExact(file, buffer, len);
	if (!keeps_messages(spooled))
		return;
	if (spooled == NULL)
		spooled = AioApplyAheadMake(&source);

	/* this one has been kept, or it is the first of those that will be */
	source_file = file;
	BufFileTell(file, &next.fileno, &next.offset);
	if (!AioApplyAheadTake(spooled, &kept, &kept_len))
		spool_ahead = next;
	else
		Assert(kept_len == len && memcmp(kept, buffer, len) == 0);
	AioApplyAheadDue(spooled);
	give_back_room();
	if (BufFileSeek(file, next.fileno, next.offset, SEEK_SET) != 0)
		ereport(ERROR,
				(errcode_for_file_access(),
				 errmsg("could not go back in a file of streamed changes")));
}
