/*-------------------------------------------------------------------------
 *
 * trim.c
 *	  The background writer gives back space past the end of files.
 *
 * A file may be on a device that stalls, and nobody depends on the background
 * writer, as he does on a session, or on recovery.  Setting a file's length to
 * what it is frees what lies beyond, on all file systems that know of such
 * space.  So nobody may change the length meanwhile.  There is no lock for
 * that: who asks for a trim may be a session that is idle, which has none, and
 * must not wait for any.  Instead, whoever is about to extend, truncate or
 * unlink a file, or to allocate space past its end,
 *
 * 1. says so, in a place of its process, until its transaction ends, or another
 *    file is about to change;
 * 2. then looks for a trim of the file, and waits until it is carried out, if
 *    that has begun; who does not just extend the file takes the request back;
 *
 * and the background writer
 *
 * 1. begins a trim, so that all can see it;
 * 2. then looks for processes that may be changing the file, and leaves the
 *    trim for later if there is one.
 *
 * There is a memory barrier between the two steps of each.  So one of them sees
 * the other, as in Dekker's algorithm (E. W. Dijkstra, EWD 123, 1965).
 *
 * Who unlinks the files of a whole database takes back, or waits for, all trims
 * of it, when nobody can ask for another one.
 *
 * Upholds INVARIANT-47 and 116.
 *
 * Locks:     a spinlock, in any process, also in a critical section, and in one
 *			  that is idle.
 * Tests:     src/test/aio/preallocation/t/001_preallocate.pl,
 *			  src/test/aio/replay/t/008_extensions.pl.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "aio/recovery_point.h"
#include "aio/shared_state.h"
#include "common/relpath.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "port/atomics.h"
#include "preallocate_internal.h"
#include "storage/fd.h"
#include "storage/proc.h"
#include "storage/spin.h"
#include "utils/injection_point.h"
#include "utils/wait_event.h"

/* trims that are asked for, or carried out, at a time */
#define NREQUESTS	64

/* so long whoever settles a trim sleeps before he looks again */
#define LOOK_US		1000

typedef enum TrimState
{
	TRIM_NONE,
	TRIM_WANTED,
	TRIM_BEGUN,					/* by the background writer */
} TrimState;

typedef struct TrimRequest
{
	RelFileLocator locator;
	ForkNumber	forknum;
	TrimState	state;
} TrimRequest;

typedef struct TrimRequests
{
	slock_t		mutex;			/* protects the rest */
	pg_atomic_uint32 nactive;	/* not TRIM_NONE; read without the mutex */
	TrimRequest requests[NREQUESTS];

	/*
	 * by process: the number of the file whose length it may be changing, or
	 * 0; of a process that is gone it means nothing.  Files of several
	 * tablespaces that have the same number are not told apart.
	 */
	pg_atomic_uint32 changing[FLEXIBLE_ARRAY_MEMBER];
} TrimRequests;

static TrimRequests *trims = NULL;

static inline int
nprocesses(void)
{
	return MaxBackends + NUM_AUXILIARY_PROCS;
}

static Size
trims_size(void)
{
	return add_size(offsetof(TrimRequests, changing),
					mul_size(sizeof(pg_atomic_uint32), nprocesses()));
}

static void
initialize_trims(void)
{
	memset(trims, 0, offsetof(TrimRequests, changing));
	SpinLockInit(&trims->mutex);
	pg_atomic_init_u32(&trims->nactive, 0);
	for (int i = 0; i < nprocesses(); i++)
		pg_atomic_init_u32(&trims->changing[i], 0);
}

static const AioSharedState trims_state = {
	.name = "AIO trims",
	.size = trims_size,
	.address = (void **) &trims,
	.initialize = initialize_trims,
};

/* While libraries are preloaded: ask for shared memory. */
void
AioShareTrims(void)
{
	AioShareState(&trims_state);
	aio_background_work = AioTrimWanted;
}

/* With the mutex held: a request is not there any more. */
static void
end_request(TrimRequest *one)
{
	Assert(one->state != TRIM_NONE);
	one->state = TRIM_NONE;
	pg_atomic_fetch_sub_u32(&trims->nactive, 1);
}

/* ------------------------------------------------------------------------
 * Who changes files
 * ------------------------------------------------------------------------
 */

/* From here on this process may be changing the length of a file. */
static void
begin_change(RelFileNumber number)
{
	pg_atomic_uint32 *mine = &trims->changing[MyProcNumber];

	Assert(MyProcNumber >= 0 && MyProcNumber < nprocesses());
	if (pg_atomic_read_u32(mine) == number)
		return;
	pg_atomic_write_u32(mine, number);
	/* before we look for trims */
	pg_memory_barrier();
}

/*
 * This process is not changing any file: its transaction has ended, or it asks
 * for a trim.
 */
void
AioEndFileChanges(void)
{
	if (trims == NULL || MyProcNumber == INVALID_PROC_NUMBER ||
		pg_atomic_read_u32(&trims->changing[MyProcNumber]) == 0)
		return;
	/* after the changes, and before we look for who has waited for that */
	pg_memory_barrier();
	pg_atomic_write_u32(&trims->changing[MyProcNumber], 0);
	pg_memory_barrier();
	if (pg_atomic_read_u32(&trims->nactive) > 0)
		AioWakeBackgroundWriter();
}

/* Is there another process that may be changing a file of this number? */
static bool
is_changing(RelFileNumber number)
{
	for (int i = 0; i < nprocesses(); i++)
	{
		if (pg_atomic_read_u32(&trims->changing[i]) == number &&
			i != MyProcNumber && GetPGProcByNumber(i)->pid != 0)
			return true;
	}
	return false;
}

/* ------------------------------------------------------------------------
 * Trims
 * ------------------------------------------------------------------------
 */

/*
 * Ask for what is allocated past the end of a fork to be given back, if there
 * is room for that.  This process is not changing its length.
 */
bool
AioAskForTrim(const RelFileLocator *locator, ForkNumber forknum)
{
	bool		done = false;

	if (trims == NULL)
		return false;
	AioEndFileChanges();
	SpinLockAcquire(&trims->mutex);
	for (int i = 0; i < NREQUESTS && !done; i++)
	{
		TrimRequest *one = &trims->requests[i];

		if (one->state != TRIM_NONE)
			continue;
		one->locator = *locator;
		one->forknum = forknum;
		one->state = TRIM_WANTED;
		pg_atomic_fetch_add_u32(&trims->nactive, 1);
		done = true;
	}
	SpinLockRelease(&trims->mutex);
	return done;
}

static bool
is_about(const TrimRequest *one, const RelFileLocator *locator,
		 ForkNumber forknum, Oid database)
{
	if (one->state == TRIM_NONE)
		return false;
	if (locator == NULL)
		return one->locator.dbOid == database;
	return (one->forknum == forknum || forknum == InvalidForkNumber) &&
		RelFileLocatorEquals(one->locator, *locator);
}

/* Take back what is asked for, if told so, and wait for what is being done. */
static bool
settle(const RelFileLocator *locator, ForkNumber forknum, Oid database,
	   bool take_back)
{
	bool		taken_back = false;
	bool		begun;

	do
	{
		begun = false;
		SpinLockAcquire(&trims->mutex);
		for (int i = 0; i < NREQUESTS; i++)
		{
			TrimRequest *one = &trims->requests[i];

			if (!is_about(one, locator, forknum, database))
				continue;
			if (one->state == TRIM_BEGUN)
				begun = true;
			else if (take_back)
			{
				end_request(one);
				taken_back = true;
			}
		}
		SpinLockRelease(&trims->mutex);
		if (begun)
		{
			pgstat_report_wait_start(WAIT_EVENT_DATA_FILE_TRUNCATE);
			pg_usleep(LOOK_US);
			pgstat_report_wait_end();
		}
	} while (begun);
	return taken_back;
}

/*
 * A file is about to grow: nothing past its end is given back from here to the
 * end of the transaction, or until this process is about to change another
 * file.  What has been asked for is done after that.
 */
void
AioWaitForTrim(const RelFileLocator *locator, ForkNumber forknum)
{
	if (trims == NULL)
		return;
	begin_change(locator->relNumber);
	if (pg_atomic_read_u32(&trims->nactive) > 0)
		(void) settle(locator, forknum, InvalidOid, false);
}

/*
 * A file is about to be cut, or to go, or space past its end to be allocated:
 * the same, and what has been asked for is taken back.  InvalidForkNumber
 * stands for all forks.  Returns whether something was asked for, and is not
 * done.
 */
bool
AioSettleTrims(const RelFileLocator *locator, ForkNumber forknum)
{
	if (trims == NULL)
		return false;
	begin_change(locator->relNumber);
	if (pg_atomic_read_u32(&trims->nactive) == 0)
		return false;
	return settle(locator, forknum, InvalidOid, true);
}

/* The same, for all files of a database. */
void
AioSettleTrimsOf(Oid database)
{
	if (trims != NULL && pg_atomic_read_u32(&trims->nactive) > 0)
		(void) settle(NULL, InvalidForkNumber, database, true);
}

/*
 * Step to the next segment of a fork that is not full: the last one with pages
 * in it, or one of those behind, which truncation leaves empty.  `number` is 0
 * for the first call.  Returns false if there is none; otherwise its name, in
 * MAXPGPATH bytes, and what the file system says of it.  No file is opened, and
 * no error raised.
 */
bool
AioUnfilledSegment(const char *path, int *number, char *segment,
				   struct stat *file)
{
	do
	{
		if (*number == 0)
			strlcpy(segment, path, MAXPGPATH);
		else
			snprintf(segment, MAXPGPATH, "%s.%d", path, *number);
		(*number)++;
		if (stat(segment, file) != 0)
			return false;
	} while (file->st_size == (off_t) RELSEG_SIZE * BLCKSZ);
	return true;
}

/*
 * Give back what is allocated past the end of a fork.  Its files are opened
 * here, and no error is raised: whether they exist does not matter.
 */
static void
trim_file(const RelFileLocator *locator, ForkNumber forknum)
{
	RelPathStr	path = relpathperm(*locator, forknum);
	char		segment[MAXPGPATH];
	struct stat file;
	int			number = 0;

	while (AioUnfilledSegment(path.str, &number, segment, &file))
	{
		int			fd;
		int			status = -1;

		pgstat_report_wait_start(WAIT_EVENT_DATA_FILE_TRUNCATE);
		fd = BasicOpenFile(segment, O_RDWR | PG_BINARY);
		if (fd >= 0 && fstat(fd, &file) == 0)
			status = ftruncate(fd, file.st_size);
		pgstat_report_wait_end();
		if (status != 0 && errno != ENOENT)
			ereport(LOG,
					errcode_for_file_access(),
					errmsg("could not give back unused space of file \"%s\": %m",
						   segment));
		if (fd >= 0)
			close(fd);
	}
}

/*
 * In the background writer, and in the checkpointer when that has ended: do
 * what has been asked for.  Returns whether there was anything.
 */
bool
AioTrimWanted(void)
{
	bool		any = false;

	if (trims == NULL || pg_atomic_read_u32(&trims->nactive) == 0)
		return false;
	for (int i = 0; i < NREQUESTS; i++)
	{
		TrimRequest *one = &trims->requests[i];
		bool		wanted;

		SpinLockAcquire(&trims->mutex);
		wanted = one->state == TRIM_WANTED;
		if (wanted)
			one->state = TRIM_BEGUN;
		SpinLockRelease(&trims->mutex);
		if (!wanted)
			continue;
		/* before we look for who changes the file */
		pg_memory_barrier();
		if (is_changing(one->locator.relNumber))
		{
			SpinLockAcquire(&trims->mutex);
			one->state = TRIM_WANTED;
			SpinLockRelease(&trims->mutex);
			INJECTION_POINT("aio-trim-deferred", NULL);
			continue;
		}
		INJECTION_POINT("aio-trim", NULL);
		trim_file(&one->locator, one->forknum);
		any = true;
		SpinLockAcquire(&trims->mutex);
		end_request(one);
		SpinLockRelease(&trims->mutex);
	}
	return any;
}
