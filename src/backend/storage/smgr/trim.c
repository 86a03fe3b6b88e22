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
 * must not wait for any.  Instead, whoever extends, truncates or unlinks a file
 *
 * 1. says so, in a place of its process, until that is done;
 * 2. then looks for a trim of the file, and waits until it is carried out, if
 *    that has begun;
 *
 * and the background writer
 *
 * 1. begins a trim, so that all can see it;
 * 2. then looks for processes that are changing the file, and leaves the trim
 *    for later if there is one.
 *
 * There is a memory barrier between the two steps of each.  So one of them sees
 * the other, as in Dekker's algorithm (E. W. Dijkstra, EWD 123, 1965).
 *
 * Who is about to allocate space past the end takes requests back: from then on
 * he uses a preallocation, and nobody asks.  And so does who cuts the file.
 *
 * Who unlinks the files of a whole database, or moves them, takes back, or
 * waits for, all trims of it, when nobody can ask for another one.
 *
 * Upholds INVARIANT-46, 47 and 116.
 *
 * Locks:     a spinlock, in any process, also in a critical section, and in one
 *			  that is idle.
 * Tests:     src/test/simulate/trim.c,
 *			  src/test/aio/preallocation/t/001_preallocate.pl,
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
	 * by place of a process: the number of the file that it is changing, and
	 * its process id, as the place may be another one's by now; or 0.  Files
	 * of several databases that have the same number are not told apart.
	 */
	pg_atomic_uint64 changing[FLEXIBLE_ARRAY_MEMBER];
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
					mul_size(sizeof(pg_atomic_uint64), nprocesses()));
}

static void
initialize_trims(void)
{
	memset(trims, 0, offsetof(TrimRequests, changing));
	SpinLockInit(&trims->mutex);
	pg_atomic_init_u32(&trims->nactive, 0);
	for (int i = 0; i < nprocesses(); i++)
		pg_atomic_init_u64(&trims->changing[i], 0);
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

static inline uint64
change_of(int pid, RelFileNumber number)
{
	return (uint64) pid << 32 | number;
}

/*
 * What this process was changing is as it is to be.  May be called if it was
 * not changing anything, as after an error.
 */
void
AioEndFileChange(void)
{
	/* most transactions change none, and do not write to what others read */
	if (trims == NULL || MyProcNumber == INVALID_PROC_NUMBER ||
		pg_atomic_read_u64(&trims->changing[MyProcNumber]) == 0)
		return;
	/* after the change */
	pg_memory_barrier();
	pg_atomic_write_u64(&trims->changing[MyProcNumber], 0);
}

/* Is there another process that is changing a file of this number? */
static bool
is_changing(RelFileNumber number)
{
	for (int i = 0; i < nprocesses(); i++)
	{
		uint64		change = pg_atomic_read_u64(&trims->changing[i]);

		if ((RelFileNumber) change == number &&
			change == change_of(GetPGProcByNumber(i)->pid, number))
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
 * is room for that.  Returns whether the background writer is to be woken.
 */
bool
AioAskForTrim(const RelFileLocator *locator, ForkNumber forknum)
{
	TrimRequest *unused = NULL;
	bool		found = false;

	if (trims == NULL)
		return false;
	SpinLockAcquire(&trims->mutex);
	for (int i = 0; i < NREQUESTS && !found; i++)
	{
		TrimRequest *one = &trims->requests[i];

		if (one->state == TRIM_NONE)
			unused = one;
		else
			found = one->state == TRIM_WANTED && one->forknum == forknum &&
				RelFileLocatorEquals(one->locator, *locator);
	}
	if (!found && unused != NULL)
	{
		unused->locator = *locator;
		unused->forknum = forknum;
		unused->state = TRIM_WANTED;
		pg_atomic_fetch_add_u32(&trims->nactive, 1);
		found = true;
	}
	SpinLockRelease(&trims->mutex);
	return found;
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
 * This process is about to change the length of a file: no trim of it is
 * carried out until AioEndFileChange().  With 'take_back', what has been asked
 * for is taken back.  InvalidForkNumber stands for all forks.
 */
void
AioBeginFileChange(const RelFileLocator *locator, ForkNumber forknum,
				   bool take_back)
{
	if (trims == NULL || MyProcNumber == INVALID_PROC_NUMBER)
		return;
	pg_atomic_write_u64(&trims->changing[MyProcNumber],
						change_of(MyProcPid, locator->relNumber));
	/* before we look for trims */
	pg_memory_barrier();
	if (pg_atomic_read_u32(&trims->nactive) > 0)
		(void) settle(locator, forknum, InvalidOid, take_back);
}

/*
 * Space past the end of a file is about to be allocated, by who uses a
 * preallocation of it already: nobody gives it back.  Returns whether something
 * was asked for, and is not done.
 */
bool
AioTakeBackTrims(const RelFileLocator *locator, ForkNumber forknum)
{
	if (trims == NULL || pg_atomic_read_u32(&trims->nactive) == 0)
		return false;
	return settle(locator, forknum, InvalidOid, true);
}

/* The same, of all files of a database. */
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

/* Carry out a trim that has begun.  It ends whatever comes of that. */
static void
carry_out(TrimRequest *one)
{
	PG_TRY();
	{
		INJECTION_POINT("aio-trim", NULL);
		trim_file(&one->locator, one->forknum);
	}
	PG_FINALLY();
	{
		SpinLockAcquire(&trims->mutex);
		end_request(one);
		SpinLockRelease(&trims->mutex);
	}
	PG_END_TRY();
}

/*
 * In the background writer, and in the checkpointer when that has ended: do
 * what has been asked for.  Returns whether there was anything; what is left
 * for later is looked at in the next cycle.
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
		any = true;
		/* before we look for who changes the file */
		pg_memory_barrier();
		if (!is_changing(one->locator.relNumber))
		{
			carry_out(one);
			continue;
		}
		SpinLockAcquire(&trims->mutex);
		one->state = TRIM_WANTED;
		SpinLockRelease(&trims->mutex);
		INJECTION_POINT("aio-trim-deferred", NULL);
	}
	return any;
}
