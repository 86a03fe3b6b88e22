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
 * postmaster waits for it, whatever its own io_method.  Who ends in order
 * removes the file, as the kernel takes some time to free rings.
 *
 * Who may read a file may lock it against those who write.  With initdb
 * --allow-group-access that is a group, for backups or monitoring, which must
 * not keep the server from starting.  So it locks a new file that nobody else
 * can have opened yet; and who waits for that asks only for what keeps readers
 * away, which none but its owner can have.  It is in pg_dynshmem, whose
 * contents neither backups nor pg_rewind copy, and where PostgreSQL removes but
 * files whose names begin with mmap.
 *
 * Tests: src/test/aio/io_method/t/004_in_flight.pl.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "aio/io_method.h"
#include "common/file_perm.h"
#include "miscadmin.h"
#include "storage/aio.h"
#include "storage/dsm_impl.h"
#include "storage/ipc.h"
#include "utils/timestamp.h"

#define LOCKED_FILE		PG_DYNSHMEM_DIR "/aio.lock"
#define NEW_FILE		LOCKED_FILE ".new"

/* how often to look, in ms: more often in the beginning */
#define LOOK_MIN		1
#define LOOK_MAX		100

/* after how long to say that we wait, in ms, and again at twice as long */
#define REPORT_AFTER	1000

/* the file, as this life has made and locked it, or -1 */
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

static void
report(const char *failed, const char *name)
{
	ereport(LOG,
			(errcode_for_file_access(),
			 errmsg("could not %s file \"%s\": %m", failed, name),
			 errdetail("If all processes of this server are killed, the next start will not wait for I/O that they have submitted to io_uring.")));
}

/* Does an earlier life, or do rings of this one, still hold its lock? */
static bool
is_locked(void)
{
	bool		locked = false;
#ifdef F_OFD_GETLK
	struct flock lock = {.l_type = F_RDLCK,.l_whence = SEEK_SET};
	int			file = open(LOCKED_FILE, O_RDONLY | O_CLOEXEC | PG_BINARY);

	Assert(locked_file < 0);
	if (file < 0)
	{
		if (errno != ENOENT)
			report("open", LOCKED_FILE);
		return false;
	}
	if (fcntl(file, F_OFD_GETLK, &lock) != 0)
		report("look for locks of", LOCKED_FILE);
	else
		locked = lock.l_type != F_UNLCK;
	close(file);
#endif
	return locked;
}

/* Make the file, with the lock that its rings will hold. */
static void
make_file(void)
{
#ifdef F_OFD_SETLK
	struct flock lock = {.l_type = F_WRLCK,.l_whence = SEEK_SET};
	const char *failed = NULL;

	if ((unlink(NEW_FILE) != 0 && errno != ENOENT) ||
		(locked_file = open(NEW_FILE, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | PG_BINARY,
							S_IRUSR | S_IWUSR)) < 0)
		failed = "create";
	else if (fcntl(locked_file, F_OFD_SETLK, &lock) != 0)
		failed = "lock";
	else if (fchmod(locked_file, pg_file_create_mode) != 0)
		failed = "set permissions of";
	else if (rename(NEW_FILE, LOCKED_FILE) != 0)
		failed = "rename";
	if (failed != NULL)
	{
		report(failed, NEW_FILE);
		AioForgetLock();
	}
#endif
}

/* Does not unlock what others have open, too. */
void
AioForgetLock(void)
{
	if (locked_file >= 0)
		close(locked_file);
	locked_file = -1;
}

/* Nothing is in flight, though rings may not be free yet. */
static void
remove_file(void)
{
	if (unlink(LOCKED_FILE) != 0 && errno != ENOENT)
		ereport(LOG,
				(errcode_for_file_access(),
				 errmsg("could not remove file \"%s\": %m", LOCKED_FILE)));
	AioForgetLock();
}

/* The file to be registered with a ring, or -1 */
int
AioLockedFile(void)
{
	return locked_file;
}

/*
 * Is this process to end?  Without a postmaster, signals are blocked as long as
 * the server starts.
 */
static bool
is_to_stop(void)
{
	sigset_t	pending;

	if (IsPostmasterEnvironment)
		return AioPostmasterIsToStop();
	return sigpending(&pending) == 0 &&
		(sigismember(&pending, SIGINT) || sigismember(&pending, SIGTERM) ||
		 sigismember(&pending, SIGQUIT));
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

	quiet = by_lock = false;
	if (locked_file >= 0)
		return;					/* kept after a crash */
	while (is_locked())
	{
		int			ms = wait_on(true);

		if (is_to_stop())
			ereport(FATAL,
					(errcode(ERRCODE_ADMIN_SHUTDOWN),
					 errmsg("stopped while waiting for I/O of an earlier postmaster")));
		pg_usleep(ms * 1000L);
	}
	end_wait();

	/* with other methods nothing outlives its process */
	if (io_method == IOMETHOD_IO_URING && !IsBootstrapProcessingMode())
		make_file();
	else
		remove_file();
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
	return is_locked();
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

/* This process has let go of all rings, to end or to start anew. */
void
AioEndLife(void)
{
	if (!quiet)
		AioForgetLock();
	else if (proc_exit_inprogress && locked_file >= 0)
		remove_file();
}
