/*-------------------------------------------------------------------------
 *
 * trim.c
 *	  The background writer gives back space past the end of files.
 *
 * A file may be on a device that stalls, and nobody depends on the background
 * writer, as he does on a session, or on recovery.  Setting a file's length to
 * what it is frees what lies beyond, on all file systems that know of such
 * space.  So nobody may change the length meanwhile:
 *
 * - A trim is asked for while nobody does (preallocate_trim.c).
 * - From then on, whoever extends, truncates or unlinks the file, or allocates
 *   space past its end, settles its trim before: takes the request back, or
 *   waits until it is carried out, if the background writer has begun.  And so
 *   does who unlinks the files of a whole database.
 *
 * Upholds INVARIANT-47 and 116.
 *
 * Locks:     a spinlock, in any process, also in a critical section.
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
#include "pgstat.h"
#include "port/atomics.h"
#include "preallocate_internal.h"
#include "storage/fd.h"
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
} TrimRequests;

static TrimRequests *trims = NULL;

static Size
trims_size(void)
{
	return sizeof(TrimRequests);
}

static void
initialize_trims(void)
{
	memset(trims, 0, sizeof(TrimRequests));
	SpinLockInit(&trims->mutex);
	pg_atomic_init_u32(&trims->nactive, 0);
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

/*
 * Ask for what is allocated past the end of a fork to be given back, if there
 * is room for that.  The caller sees to it that nobody is about to change the
 * length of the file.
 */
bool
AioAskForTrim(const RelFileLocator *locator, ForkNumber forknum)
{
	bool		done = false;

	if (trims == NULL)
		return false;
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

/* Take back what is asked for, and wait for what is being done. */
static bool
settle(const RelFileLocator *locator, ForkNumber forknum, Oid database)
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
			if (one->state == TRIM_WANTED)
			{
				end_request(one);
				taken_back = true;
			}
			else
				begun = true;
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
 * The length of a file is about to change, or the file to go, or space past its
 * end to be allocated: nothing past it is given back any more.
 * InvalidForkNumber stands for all forks.  Returns whether it has been asked
 * for, and is not done.
 */
bool
AioSettleTrims(const RelFileLocator *locator, ForkNumber forknum)
{
	if (trims == NULL || pg_atomic_read_u32(&trims->nactive) == 0)
		return false;
	return settle(locator, forknum, InvalidOid);
}

/* The same, for all files of a database. */
void
AioSettleTrimsOf(Oid database)
{
	if (trims != NULL && pg_atomic_read_u32(&trims->nactive) > 0)
		(void) settle(NULL, InvalidForkNumber, database);
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
		INJECTION_POINT("aio-trim", NULL);
		trim_file(&one->locator, one->forknum);
		any = true;
		SpinLockAcquire(&trims->mutex);
		end_request(one);
		SpinLockRelease(&trims->mutex);
	}
	return any;
}
