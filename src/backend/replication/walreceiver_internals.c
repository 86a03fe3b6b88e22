/*-------------------------------------------------------------------------
 *
 * walreceiver_internals.c
 *	  Included at the end of replication/walreceiver.c: WAL is received while
 *	  what was received before is synced.
 *
 * Upstream's walreceiver takes what has come, syncs it, and takes nothing
 * meanwhile.  Here the main loop begins a sync, by an I/O of upstream's AIO,
 * and goes on.  Where a file is about to be closed, and when the process ends,
 * it waits as upstream does.
 *
 * INVARIANT-81: WAL counts as flushed on a standby, for the startup process,
 * for cascading walsenders and for the primary, when a sync that began after it
 * was written is complete.  There is one at a time, and its segment stays open
 * until it is.
 *
 * Tests: src/test/aio/replay/t/006_walreceiver.pl.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "aio/read.h"
#include "aio/wait.h"
#include "aio/wal.h"
#include "storage/aio_internal.h"

/*
 * While more and more comes, what has been written is synced at intervals of so
 * many bytes; when nothing more is there, at once.
 */
#define RECEIVED_BEFORE_SYNC	(1024 * 1024)

static AioWalSync received_sync;
static bool sync_in_flight = false;

/* what that covers */
static XLogRecPtr sync_upto;

/* XLogWalRcvFlush() need not wait */
static bool may_go_on = false;

/*
 * In place of issue_xlog_fsync() in XLogWalRcvFlush(): up to where is received
 * WAL on disk?  At least up to the end if the caller has to wait.  Raises what
 * that raises.
 */
XLogRecPtr
AioSyncReceivedWal(bool dying, TimeLineID tli)
{
	XLogRecPtr	synced = LogstreamResult.Flush;
	bool		waits = dying || !may_go_on;

	if (sync_in_flight)
	{
		if (!waits && !AioWalSyncIsComplete())
			return synced;
		sync_in_flight = false;
		if (AioWalFinishSync(&received_sync))
			synced = Max(synced, sync_upto);
		else
			waits = true;
	}
	if (synced >= LogstreamResult.Write)
		return synced;
	if (!waits && AioWalCanStartSync())
	{
		AioWalStartSync(&received_sync, recvFile, recvSegNo, tli);
		sync_in_flight = true;
		sync_upto = LogstreamResult.Write;
		return synced;
	}
	issue_xlog_fsync(recvFile, recvSegNo, tli);
	return LogstreamResult.Write;
}

/*
 * In the main loop, in place of XLogWalRcvFlush(): have received WAL synced,
 * and tell others of what has been.  When all there is has been received, the
 * primary can be told only now.
 */
void
AioFlushReceivedWal(TimeLineID tli, bool end_of_wal)
{
	may_go_on = !end_of_wal;
	XLogWalRcvFlush(false, tli);
	may_go_on = false;
}

/* A message has been received; others may be there already. */
void
AioReceivedWalMessage(TimeLineID tli)
{
	if (sync_in_flight ? AioWalSyncIsComplete() :
		LogstreamResult.Write >= LogstreamResult.Flush + RECEIVED_BEFORE_SYNC &&
		AioWalCanStartSync())
		AioFlushReceivedWal(tli, false);
}

/*
 * In place of WaitLatchOrSocket() in the main loop: also wait for a sync that
 * is in flight, which sets the latch when it is complete.
 */
int
AioWaitForReceivedWal(TimeLineID tli, Latch *latch, int wake_events,
					  pgsocket sock, long timeout, uint32 wait_event_info)
{
	WaitEventSet *set;
	WaitEvent	events[3];
	AioIOFuture io;
	AioFuture  *future = &io.future;
	int			nevents;
	int			result = 0;

	if (!sync_in_flight)
		return WaitLatchOrSocket(latch, wake_events, sock, timeout,
								 wait_event_info);

	AioWriteFutureInit(&io, &received_sync.wref, AIO_IO_NOT_COUNTED);
	set = CreateWaitEventSet(CurrentResourceOwner, 4);
	AddWaitEventToSet(set, WL_LATCH_SET, PGINVALID_SOCKET, latch, NULL);
	AddWaitEventToSet(set, WL_EXIT_ON_PM_DEATH, PGINVALID_SOCKET, NULL, NULL);
	AddWaitEventToSet(set, WL_SOCKET_READABLE, sock, NULL, NULL);

	/* it may set the latch, which has been reset since, before it is done */
	if (AioWalSyncIsComplete())
		timeout = 0;
	nevents = AioWaitEventSetWait(set, timeout, events, lengthof(events),
								  &future, 1, wait_event_info);
	for (int i = 0; i < nevents; i++)
		result |= events[i].events & (WL_LATCH_SET | WL_SOCKET_MASK);
	FreeWaitEventSet(set);
	if (AioWalSyncIsComplete())
		AioFlushReceivedWal(tli, false);
	else if (result == 0)
		result = WL_TIMEOUT;
	return result;
}
