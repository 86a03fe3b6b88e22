/*-------------------------------------------------------------------------
 *
 * copy_wait.c
 *	  COPY does not keep keys back while it waits for its rows.
 *
 * PostgreSQL inserts the keys of rows that COPY has got 1,000 rows later, or
 * sooner.  Keys of a backlog wait much longer, but only while the session is
 * busy: as long as others cannot see them, others can insert the same ones,
 * and the COPY fails.  So it does not sleep for long while it has some: they
 * are inserted when the client pauses, and also when it has been waited for so
 * long altogether, because it is slow.  That is INVARIANT-89.
 *
 * Inserting a few keys at a time costs more, so what is a pause depends on how
 * long it took the last time.  A pause is as long as that, and the waits for a
 * slow client have to be ten times as long altogether.
 *
 * A client may pause in the middle of a message: those that are built on libpq
 * do, as it sends what fills its buffer.  If there is a duplicate among the
 * keys then, the rest of the message is skipped when it has come.
 *
 * The same holds for a program or another process from which rows come through
 * a pipe, and for the publisher of a table that a subscriber copies.
 *
 * Suspends:  nothing here does.
 * Errors:    as of the rows whose keys are inserted.
 * Tests:     src/test/aio/index/t/020_paused_copy.pl.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <sys/stat.h>
#include <unistd.h>

#include "aio/copy_wait.h"
#include "aio/index_backlog.h"
#include "commands/copyfrom_internal.h"
#include "libpq/libpq.h"
#include "miscadmin.h"
#include "portability/instr_time.h"
#include "storage/latch.h"
#include "utils/wait_event.h"

CopyFromState aio_copy_reading = NULL;

/* milliseconds that keys wait for the client, in one pause and altogether */
#define PAUSE_MIN	100.0
#define TOTAL_MIN	1000.0

/* how many times as long as inserting them took, altogether */
#define TOTAL_FACTOR	10

/* bytes of the shortest message */
#define MESSAGE_MIN	5

static double
now_ms(void)
{
	instr_time	now;

	INSTR_TIME_SET_CURRENT(now);
	return INSTR_TIME_GET_MILLISEC(now);
}

/*
 * The backlog of a COPY, or of any if that is NULL, if it has keys that are
 * enforced; or NULL.
 */
static AioStatementBacklog *
find_keys(CopyFromState cstate)
{
	for (AioStatementBacklog *statement = AioNextStatement(NULL);
		 statement != NULL; statement = AioNextStatement(statement))
	{
		if (cstate != NULL ? statement->cstate == cstate : statement->cstate != NULL)
			return statement->keys && !statement->draining && !statement->failed &&
				AioStatementIsAlive(statement) ? statement : NULL;
	}
	return NULL;
}

/* For how many milliseconds the keys may wait now. */
static double
patience(AioStatementBacklog *statement)
{
	return Min(Max(statement->client_drain_ms, PAUSE_MIN),
			   Max(statement->client_drain_ms * TOTAL_FACTOR, TOTAL_MIN) - statement->client_wait_ms);
}

/*
 * Wait for so many bytes from the client, as long as the keys may wait.  Have
 * they come?
 */
static bool
come_soon(AioStatementBacklog *statement, int nbytes)
{
	double		begin = now_ms();
	double		now = begin;
	double		time = patience(statement);
	bool		come = false;

	while (now < begin + time && !come)
	{
		AioWaitForClient((long) (begin + time - now) + 1);
		come = AioReceived(nbytes);
		now = now_ms();
	}
	statement->client_wait_ms += now - begin;
	return come;
}

static void
drain(AioStatementBacklog *statement)
{
	double		begin = now_ms();

	AioClaimKeys(statement->estate);
	statement->client_drain_ms = Min(now_ms() - begin, AIO_DRAIN_MS_MAX);
}

/* COPY is about to read a message: the keys do not wait for its beginning. */
void
AioAwaitMessage(CopyFromState cstate)
{
	AioStatementBacklog *statement;

	if (AioReceived(MESSAGE_MIN))
		return;
	statement = find_keys(cstate);
	if (statement != NULL && !come_soon(statement, MESSAGE_MIN))
		drain(statement);
}

/*
 * Nor do they wait for the rest of a message, of which so many bytes are
 * missing.  Returns whether some have come.
 */
bool
AioReceiveRest(size_t rest)
{
	uint32		holdoff = QueryCancelHoldoffCount;
	AioStatementBacklog *statement;

	if (AioReceived(1))
		return pq_buffer_remaining_data() > 0;
	statement = find_keys(aio_copy_reading);
	if (statement == NULL)
		return false;
	if (come_soon(statement, 1))
		return pq_buffer_remaining_data() > 0;
	PG_TRY();
	{
		/* it may have to wait for another transaction */
		QueryCancelHoldoffCount = 0;
		drain(statement);
		QueryCancelHoldoffCount = holdoff;
	}
	PG_CATCH();
	{
		AioLeaveMessage(rest);
		PG_RE_THROW();
	}
	PG_END_TRY();
	return false;
}

/*
 * Wait until 'fd' can be read, or for another of these events, but for no
 * longer than the keys may wait; if nothing has come then, they are inserted.
 */
static void
await_descriptor(AioStatementBacklog *statement, int fd, int events,
				 uint32 wait_event)
{
	double		begin = now_ms();
	double		time = patience(statement);
	int			happened = WL_TIMEOUT;

	if (time > 0)
		happened = WaitLatchOrSocket(MyLatch,
									 events | WL_SOCKET_READABLE | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
									 fd, (long) time + 1, wait_event);
	statement->client_wait_ms += now_ms() - begin;
	if (happened & WL_TIMEOUT)
		drain(statement);
}

/*
 * fread(), for COPY from a file: so many bytes, or as many as there are up to
 * the end.  An error is raised as upstream raises it.
 *
 * What comes through a pipe is not buffered in the stream.  So it can be told
 * whether a read would wait.  That holds only for a stream that COPY has opened
 * itself: a server in single-user mode has read its commands from the standard
 * input, and some of the rows with them.
 */
size_t
AioReadCopyFile(void *buffer, size_t nbytes, CopyFromState cstate)
{
	struct stat st;
	int			fd = fileno(cstate->copy_file);
	size_t		done = 0;

	if (cstate->filename == NULL || fstat(fd, &st) != 0 || !S_ISFIFO(st.st_mode))
		return fread(buffer, 1, nbytes, cstate->copy_file);
	while (done < nbytes)
	{
		AioStatementBacklog *statement = aio_backlogs_exist ? find_keys(cstate) : NULL;
		ssize_t		nread;

		if (statement != NULL)
			await_descriptor(statement, fd, 0, WAIT_EVENT_COPY_FILE_READ);
		nread = read(fd, (char *) buffer + done, nbytes - done);
		if (nread < 0 && errno == EINTR)
			continue;
		if (nread < 0)
			ereport(ERROR,
					(errcode_for_file_access(),
					 errmsg("could not read from COPY file: %m")));
		if (nread == 0)
			break;
		done += nread;
	}
	return done;
}

/*
 * A subscriber that copies a table is about to wait for its publisher, or for
 * its latch.
 */
void
AioBeforeAwaitingPublisher(pgsocket socket)
{
	AioStatementBacklog *statement = aio_backlogs_exist ? find_keys(NULL) : NULL;

	if (statement != NULL)
		await_descriptor(statement, socket, WL_LATCH_SET, WAIT_EVENT_LOGICAL_SYNC_DATA);
}
