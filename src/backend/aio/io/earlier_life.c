/*-------------------------------------------------------------------------
 *
 * earlier_life.c
 *	  Nothing that an earlier life of the server has begun is in flight when
 *	  recovery begins, nor when the postmaster has ended.
 *
 * The kernel does not end a process before its pwrite() or its libaio is
 * complete.  What a process has submitted to io_uring outlives it.  A write
 * that reached the disk after recovery would put an old version of a page over
 * a newer one that a checkpoint relies on, or old WAL over new.
 *
 * If the postmaster lives, it compares what the kernel has taken from each
 * ring with what it has completed, when all children are gone: before it
 * starts anew after a crash, and before it ends.  It does so from its loop,
 * and so remains responsive to signals.  It waits as long as it takes, as it
 * does for a child that hangs in a pwrite() on the same disk.
 *
 * If the postmaster has been killed, rings and counters are gone when the last
 * of its children is.  But the kernel frees a ring no sooner than everything
 * submitted to it is complete, and until then keeps the files that are
 * registered with it.  So a file of the data directory, which the postmaster
 * has locked, is registered with each ring.  Such a lock belongs to the open
 * file, not to a process: it is held until the last ring is gone, and the next
 * postmaster waits for it.  Who ends in order unlocks the file, as the kernel
 * takes some time to free rings.
 *
 * Tests: src/test/aio/io_method/t/004_in_flight.pl.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "aio/io_method.h"
#include "miscadmin.h"
#include "storage/aio.h"
#include "utils/timestamp.h"

/* the file is in every data directory, and is never replaced */
#define LOCKED_FILE		"PG_VERSION"

/* how often to look, in ms: more often in the beginning */
#define LOOK_MIN		1
#define LOOK_MAX		100

/* after how long to say that we wait, in ms, and again at twice as long */
#define REPORT_AFTER	1000

/* the file, as this life has opened and locked it, or -1 */
static int	locked_file = -1;

/* nothing is in flight, and nobody is there who could submit anything */
static bool quiet = false;

/* counters of rings make no sense: those are closed, and the lock tells */
static bool by_lock = false;

/* since when the wait goes on, or 0, and when it is to be told about next */
static TimestampTz waiting_since = 0;
static TimestampTz report_next = 0;

/*
 * It has to be waited for what an earlier postmaster's processes, or this
 * one's, have begun.  Returns in how many ms to look again.
 */
static int
wait_on(bool earlier)
{
	TimestampTz now = GetCurrentTimestamp();
	long		waited;

	if (waiting_since == 0)
	{
		waiting_since = now;
		report_next = TimestampTzPlusMilliseconds(now, REPORT_AFTER);
	}
	waited = TimestampDifferenceMilliseconds(waiting_since, now);
	if (now >= report_next)
	{
		report_next = TimestampTzPlusMilliseconds(now, waited);
		ereport(LOG,
				(earlier ?
				 errmsg("waiting for I/O that processes of an earlier postmaster have begun, for %ld s by now",
						waited / 1000) :
				 errmsg("waiting for I/O that terminated server processes have begun, for %ld s by now",
						waited / 1000),
				 errdetail("It was submitted to io_uring, and could reach the disk after recovery.")));
	}
	return Min(Max(waited / 8, LOOK_MIN), LOOK_MAX);
}

static void
end_wait(void)
{
	if (waiting_since != 0 && report_next > TimestampTzPlusMilliseconds(waiting_since, REPORT_AFTER))
		ereport(LOG, (errmsg("I/O that had been waited for is complete")));
	waiting_since = 0;
}

/* Lock the file, or find that it cannot be.  False: somebody has locked it. */
static bool
lock_file(void)
{
	const char *failed = NULL;

	if (locked_file < 0 &&
		(locked_file = open(LOCKED_FILE, O_RDWR | O_CLOEXEC | PG_BINARY)) < 0)
		failed = "open";
	else if (flock(locked_file, LOCK_EX | LOCK_NB) != 0)
	{
		if (errno == EWOULDBLOCK || errno == EINTR)
			return false;
		failed = "lock";
	}
	if (failed != NULL)
	{
		ereport(LOG,
				(errmsg("could not %s file \"%s\": %m", failed, LOCKED_FILE),
				 errdetail("If all processes of this server are killed, the next start will not wait for I/O that they have submitted to io_uring.")));
		AioForgetLock();
	}
	return true;
}

/* Does not unlock what others have open, too. */
void
AioForgetLock(void)
{
	if (locked_file >= 0)
		close(locked_file);
	locked_file = -1;
}

/* The file to be registered with a ring, or -1 */
int
AioLockedFile(void)
{
	return locked_file;
}

/*
 * AioShmemInit(), before there are rings: wait until nothing of an earlier
 * life is in flight.  Its processes are gone, as shared memory tells.
 */
void
AioAwaitEarlierLife(void)
{
	if (IsUnderPostmaster)
		return;

	Assert(locked_file < 0);
	quiet = by_lock = false;
	while (!lock_file())
	{
		int			ms = wait_on(true);

		if (AioPostmasterIsToStop())
			ereport(FATAL,
					(errcode(ERRCODE_ADMIN_SHUTDOWN),
					 errmsg("stopped while waiting for I/O of an earlier postmaster")));
		pg_usleep(ms * 1000L);
	}
	end_wait();

	/* with other methods nothing outlives its process */
	if (io_method != IOMETHOD_IO_URING)
		AioForgetLock();
}

static bool
in_flight(void)
{
#ifdef IOMETHOD_IO_URING_ENABLED
	bool		damaged = false;
	uint32		n;

	if (!by_lock)
	{
		n = AioUringInFlight(&damaged);
		if (!damaged)
			return n > 0;

		/* a process has written where it should not: ask the kernel */
		ereport(LOG, (errmsg("counters of io_uring are damaged")));
		by_lock = true;
		AioUringCloseRings();
		AioForgetLock();
	}
	return !lock_file();
#else
	return false;
#endif
}

/*
 * PostmasterStateMachine(), when all children are gone: is nothing in flight
 * that they have begun?
 */
bool
AioNothingInFlight(void)
{
	quiet = !in_flight();
	if (quiet)
		end_wait();
	else
		(void) wait_on(false);
	return quiet;
}

/* If the postmaster waits, in how many ms to look again; otherwise -1 */
int
AioLookAgain(void)
{
	return waiting_since != 0 ? wait_on(false) : -1;
}

/* The postmaster has let go of all rings. */
void
AioEndLife(void)
{
	if (quiet && locked_file >= 0)
		flock(locked_file, LOCK_UN);
	AioForgetLock();
}
