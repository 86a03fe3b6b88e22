/*-------------------------------------------------------------------------
 *
 * commit.c
 *	  Pipelined commits: the next transaction begins while the last one's
 *	  commit is on its way to disk.
 *
 * If a client has sent more before it got the reply to a commit, the server
 * need not be idle until the commit is on disk.  For the server it is then an
 * asynchronous commit, but the reply is not sent before WAL has been flushed.
 * This is checked where bytes leave the process, whatever they are.
 *
 * Replies are held back as long as there is something to read and the buffer
 * of libpq has room, but only for a moment.
 *
 * Upholds INVARIANT-54.
 *
 * Tests: src/test/aio/wal/t/006_pipelined_commits.pl,
 *		  src/test/aio/core/t/003_client.pl.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <poll.h>

#include "access/xact.h"
#include "access/xlog.h"
#include "aio/client.h"
#include "aio/commit.h"
#include "aio/io_internal.h"
#include "aio/slots.h"
#include "aio/stats.h"
#include "libpq/libpq-be.h"
#include "libpq/libpq.h"
#include "miscadmin.h"
#include "replication/syncrep.h"
#include "replication/walsender.h"
#include "replication/walsender_private.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "storage/lwlock.h"
#include "tcop/dest.h"
#include "tcop/pquery.h"
#include "tcop/tcopprot.h"
#include "utils/guc.h"
#include "utils/portal.h"
#include "utils/timeout.h"

/* aio.pipelined_commits */
bool		aio_pipelined_commits = false;

XLogRecPtr	aio_held_commit = InvalidXLogRecPtr;
bool		aio_replies_held = false;
volatile sig_atomic_t aio_replies_due = false;

/* replies are held so long at most, in milliseconds */
#define HOLD_TIMEOUT	10

/* bytes of the message Sync */
#define SYNC_LENGTH		5

static TimeoutId hold_timeout = MAX_TIMEOUTS;

static void
at_timeout(void)
{
	aio_replies_due = true;
	InterruptPending = true;
	SetLatch(MyLatch);
}

/*
 * The client may read until the end before it closes the connection.  A FATAL
 * error has sent everything when it comes here.
 */
static void
send_at_exit(int code, Datum arg)
{
	if (code == 0 && aio_replies_held)
		AioSendReplies();
}

/*
 * The process ends in the middle of anything: by quickdie(), a signal handler,
 * or with a PANIC, which may hold any lock when it tells the client.
 */
void
AioForbidReplies(void)
{
	AioForbidKeeping();
}

/* What may fail or needs memory is not left for a commit. */
static void
prepare(void)
{
	Assert(hold_timeout == MAX_TIMEOUTS);
	before_shmem_exit(send_at_exit, 0);
	hold_timeout = RegisterTimeout(AIO_TIMEOUT_HOLD, at_timeout);
}

/*
 * Has the client sent more than the message that is being processed?  The Sync
 * behind it does not count.
 */
static bool
more_to_read(void)
{
	struct pollfd fd;

	if (pq_buffer_remaining_data() > SYNC_LENGTH)
		return true;
	fd.fd = MyProcPort->sock;
	fd.events = POLLIN;
	fd.revents = 0;
	return poll(&fd, 1, 0) > 0 && (fd.revents & POLLIN) != 0;
}

/*
 * A transaction commits, with a record that ends at 'lsn'; in a critical
 * section.  Returns whether the reply will be held until that is on disk, so
 * that nobody need wait now.
 *
 * A commit in the middle of a statement, as procedures do them, is waited for:
 * there is no telling what the statement does next.  So is one that a standby
 * must confirm.
 */
bool
AioTryHoldCommit(XLogRecPtr lsn)
{
	if (hold_timeout == MAX_TIMEOUTS || whereToSendOutput != DestRemote ||
		MyProcPort == NULL || MyBackendType != B_BACKEND ||
		ActivePortal != NULL || client_min_messages < NOTICE ||
		!more_to_read())
		return false;
	if (SyncRepRequested() &&
		((volatile WalSndCtlData *) WalSndCtl)->sync_standbys_status & SYNC_STANDBY_DEFINED)
		return false;

	Assert(CritSectionCount > 0);
	Assert(lsn > aio_held_commit);
	aio_held_commit = lsn;
	aio_session_stats_data.commits_held++;
	return true;
}

/*
 * May this process wait for a flush, or has it what a flush needs?  Messages
 * for the client may come from anywhere.
 */
static bool
may_flush(void)
{
	if (AioIsEnding() || CritSectionCount > 0)
		return false;
	if (client_min_messages < NOTICE)
		return AioHeldLWLocks() == 0;
	return !LWLockHeldByMe(ControlFileLock) &&
		!LWLockHeldByMe(WALWriteLock) && !LWLockHeldByMe(WALBufMappingLock);
}

/*
 * Wait until what is held may be sent.  Returns false where this process may
 * not wait; the connection is lost then, and nothing has been acknowledged.
 */
bool
AioReleaseCommits(void)
{
	Assert(aio_held_commit != InvalidXLogRecPtr);
	if (!may_flush() && (AioIsEnding() || XLogNeedsFlush(aio_held_commit)))
	{
		errno = ECONNABORTED;
		return false;
	}
	XLogFlush(aio_held_commit);
	Assert(!XLogNeedsFlush(aio_held_commit));
	aio_held_commit = InvalidXLogRecPtr;
	return true;
}

/*
 * This session is about to look how far WAL has been flushed, and expects its
 * own commits there: what it reads next may be what they have written.
 */
void
AioFlushHeldCommits(void)
{
	if (may_flush() && AioHeldLWLocks() == 0)
		(void) AioReleaseCommits();
}

/* Send all replies there are. */
void
AioSendReplies(void)
{
	bool		held = aio_replies_held;

	aio_replies_held = false;
	if (held)
		disable_timeout(hold_timeout, false);
	aio_replies_due = false;
	pq_flush();

	/*
	 * a caller that is about to sleep must not miss a wakeup that came
	 * meanwhile
	 */
	if (held)
		SetLatch(MyLatch);
}

/*
 * Interrupts are processed, and replies have been held long enough.  That may
 * be in the middle of a read, which others may be waiting for, or in a task,
 * whose siblings have pages pinned: try again soon.
 */
void
AioSendRepliesIfAllowed(void)
{
	if (AioMayWaitForClient())
		AioSendReplies();
	else
	{
		aio_replies_due = false;
		if (aio_replies_held)
			enable_timeout_after(hold_timeout, HOLD_TIMEOUT);
	}
}

/*
 * Send what there is, now or later.  Called where upstream would send it, when
 * the server is ready for the next command.
 */
void
AioHoldReplies(void)
{
	if (hold_timeout == MAX_TIMEOUTS)
		prepare();
	if (aio_held_commit == InvalidXLogRecPtr ||
		client_min_messages < NOTICE || !more_to_read())
	{
		AioSendReplies();
		return;
	}

	/* an error disables all timeouts */
	if (!aio_replies_held || !(aio_replies_due || get_timeout_active(hold_timeout)))
		enable_timeout_after(hold_timeout, HOLD_TIMEOUT);
	aio_replies_held = true;
}
