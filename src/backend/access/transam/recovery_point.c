/*-------------------------------------------------------------------------
 *
 * recovery_point.c
 *	  The minimum recovery point is noted in pg_control ahead of need.
 *
 * A standby that crashes is not consistent before it has replayed all that its
 * pages on disk may hold; pg_control says up to where that is, and has to say
 * it before a page is written.  Whoever writes the page sees to that, and
 * notes all that has been replayed so far, so that the next pages need not ask.
 * But the startup process does not replay while it waits for that, which takes
 * long on a disk that is busy with its writes.
 *
 * So a victim that was changed since is passed over, and the background writer
 * is asked to note what has been replayed.  Most victims were changed before,
 * though some may have been changed just now: redo does not count as use of a
 * page that was in memory when its record was decoded.
 *
 * Who notes, and what, is upstream's UpdateMinRecoveryPoint() alone: only what
 * has been replayed is noted, and never less than before.
 *
 * Tests: src/test/aio/replay/t/005_writes.pl.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xlog.h"
#include "access/xlogrecovery.h"
#include "aio/recovery_point.h"
#include "aio/shared_state.h"
#include "miscadmin.h"
#include "port/atomics.h"
#include "postmaster/bgwriter.h"
#include "storage/bufmgr.h"
#include "storage/latch.h"
#include "storage/proc.h"
#include "utils/timestamp.h"

/*
 * A process does not ask again sooner.  A note covers all that was replayed
 * before, and victims are seldom that young.
 */
#define REQUEST_INTERVAL_MS		10

typedef struct RecoveryPointRequest
{
	/* the background writer's number, or INVALID_PROC_NUMBER */
	pg_atomic_uint32 writer;

	/* 1 if it is to note what has been replayed, until it has */
	pg_atomic_uint32 wanted;
} RecoveryPointRequest;

static RecoveryPointRequest *request = NULL;

/* storage/smgr/trim.c; returns whether there was anything to do */
bool		(*aio_background_work) (void) = NULL;

static Size
request_size(void)
{
	return sizeof(RecoveryPointRequest);
}

static void
initialize_request(void)
{
	pg_atomic_init_u32(&request->writer, (uint32) INVALID_PROC_NUMBER);
	pg_atomic_init_u32(&request->wanted, 0);
}

static const AioSharedState request_state = {
	.name = "AIO recovery point",
	.size = request_size,
	.address = (void **) &request,
	.initialize = initialize_request,
};

void
AioRecoveryPointInitialize(void)
{
	AioShareState(&request_state);
}

/* There is something to do for it, besides what it does anyway. */
void
AioWakeBackgroundWriter(void)
{
	ProcNumber	writer = request == NULL ? INVALID_PROC_NUMBER :
		(ProcNumber) pg_atomic_read_u32(&request->writer);

	if (writer != INVALID_PROC_NUMBER)
		SetLatch(&GetPGProcByNumber(writer)->procLatch);
}

/*
 * In recovery: have what has been replayed noted, for pages that are to be
 * written soon.
 */
void
AioRequestRecoveryPoint(void)
{
	static TimestampTz asked = 0;
	TimestampTz now;

	if (request == NULL || pg_atomic_read_u32(&request->wanted) != 0)
		return;
	now = GetCurrentTimestamp();
	if (!TimestampDifferenceExceeds(asked, now, REQUEST_INTERVAL_MS))
		return;
	asked = now;
	pg_atomic_write_u32(&request->wanted, 1);
	AioWakeBackgroundWriter();
}

/*
 * In place of BgBufferSync() in the background writer's loop: note what has
 * been replayed, and do other work, if that has been asked for.  Buffers are
 * written as often as without that: how many are depends on it.
 *
 * A background writer that was started before a standby has reached the end of
 * its own WAL never notes anything in upstream.  Nothing is lost then.
 */
bool
AioBackgroundWriterCycle(WritebackContext *wb_context)
{
	static TimestampTz synced = 0;
	bool		asked = false;

	if (request != NULL)
	{
		pg_atomic_write_u32(&request->writer, (uint32) MyProcNumber);
		if (pg_atomic_read_u32(&request->wanted) != 0)
		{
			if (RecoveryInProgress())
				XLogFlush(GetXLogReplayRecPtr(NULL));

			/* not before: what it covers would be asked for again */
			pg_atomic_write_u32(&request->wanted, 0);
			asked = true;
		}
	}
	if (aio_background_work != NULL)
		asked |= aio_background_work();
	if (asked && !TimestampDifferenceExceeds(synced, GetCurrentTimestamp(),
											 BgWriterDelay))
		return false;
	synced = GetCurrentTimestamp();

	/* who has asked for something is looked at again soon */
	return BgBufferSync(wb_context) && !asked;
}
