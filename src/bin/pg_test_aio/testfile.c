/*-------------------------------------------------------------------------
 *
 * testfile.c
 *	  The one file that is read and written.
 *
 * It is created under a name that nothing had before, opened in each way that
 * a test needs, and unlinked, all before anything is written.  So nothing of
 * it is left when the program ends, in whatever way that happens, and no file
 * that exists is ever opened.
 *
 * A failure of the file system ends the program with a message.
 *
 * Tests: src/bin/pg_test_aio/t/001_pg_test_aio.pl.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres_fe.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "common/logging.h"
#include "common/pg_prng.h"
#include "pg_test_aio.h"

#define FILL_CHUNK		MEGABYTE

#define SECTOR			512

/* so much is written between two looks at the clock, each after a sync */
#define FILL_STEP		(16 * MEGABYTE)

/* no more than this many seconds, or times those of a test, to fill it */
#define FILL_SECONDS	10

#ifndef O_DSYNC
#define O_DSYNC			O_SYNC
#endif

static int	fds[NMODES][NSYNCFLAGS];
static int	direct_error;		/* why there is no direct I/O, or 0 */
static int64 size = 0;

/* Report that an I/O has failed, and end. */
void
testfile_failed(IoOp op, int error)
{
	errno = error;
	if (op == IO_READ)
		pg_fatal("could not read the test file in directory \"%s\": %m", options.directory);
	if (op == IO_DATASYNC)
		pg_fatal("could not sync the test file in directory \"%s\": %m", options.directory);
	pg_fatal("could not write the test file in directory \"%s\": %m", options.directory);
}

/* Is there twice the space that we want? */
static void
check_space(void)
{
	struct statvfs space;
	int64		available;

	if (statvfs(options.directory, &space) != 0)
		pg_fatal("could not access directory \"%s\": %m", options.directory);
	available = (int64) space.f_bavail * space.f_frsize;
	if (options.file_size > available / 2)
	{
		pg_log_error("directory \"%s\" has %lld MB free, and the test file would take %lld MB of it",
					 options.directory, (long long) (available / MEGABYTE),
					 (long long) (options.file_size / MEGABYTE));
		pg_log_error_hint("No more than half of the free space is used: choose a smaller one with --file-size.");
		exit(1);
	}
}

/* Does it work, too?  Some file systems let one open it only. */
static void
probe_direct(void)
{
	if (pwrite(fds[MODE_DIRECT][SYNC_NONE], testfile_buffer(0, BLCKSZ),
			   BLCKSZ, 0) < 0)
		direct_error = errno;
	testfile_truncate();
}

/* Create the file, which lives until the program ends. */
void
testfile_create(void)
{
	char	   *path = psprintf("%s/pg_test_aio.XXXXXX", options.directory);
	static const int flags[NSYNCFLAGS] = {0, O_DSYNC, O_SYNC};
	sigset_t	all,
				before;
	int			error = 0;

	check_space();

	/* nobody may interrupt us while the file has a name */
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, &before);
	fds[MODE_BUFFERED][SYNC_NONE] = mkstemp(path);
	if (fds[MODE_BUFFERED][SYNC_NONE] < 0)
		pg_fatal("could not create a file in directory \"%s\": %m", options.directory);
	for (int flag = 0; flag < NSYNCFLAGS; flag++)
	{
		if (flag != SYNC_NONE &&
			(fds[MODE_BUFFERED][flag] = open(path, O_RDWR | flags[flag])) < 0)
			error = errno;
#ifdef O_DIRECT
		if ((fds[MODE_DIRECT][flag] = open(path, O_RDWR | O_DIRECT |
										   flags[flag])) < 0)
		{
			/* which means that there is none */
			if (errno == EINVAL)
				direct_error = errno;
			else
				error = errno;
		}
#else
		direct_error = EOPNOTSUPP;
#endif
	}
	if (unlink(path) != 0)
		pg_fatal("could not remove file \"%s\": %m", path);
	sigprocmask(SIG_SETMASK, &before, NULL);
	if (error != 0)
	{
		errno = error;
		pg_fatal("could not open file \"%s\": %m", path);
	}

	if (direct_error == 0)
		probe_direct();
	if (direct_error != 0 && options.modes[MODE_DIRECT])
	{
		results_skip(mode_names[MODE_DIRECT], strerror(direct_error));
		if (!options.modes[MODE_BUFFERED])
		{
			errno = direct_error;
			pg_log_error("direct I/O is not possible in directory \"%s\": %m", options.directory);
			pg_log_error_hint("Use --buffered.");
			exit(1);
		}
	}
	pfree(path);
}

/* Can the file be accessed in this mode? */
bool
testfile_has(FileMode mode)
{
	return mode == MODE_BUFFERED || direct_error == 0;
}

/* A file descriptor, which stays open.  There must be that mode. */
int
testfile_fd(FileMode mode, SyncFlag flag)
{
	Assert(testfile_has(mode));
	return fds[mode][flag];
}

/*
 * Memory for the i-th of I/Os of this length, aligned for direct I/O.  Its
 * content is random, and it stays as long as the program runs.
 */
char *
testfile_buffer(int i, size_t length)
{
	static char *buffers = NULL;

	Assert((i + 1) * length <= BUFFER_TOTAL);
	if (buffers == NULL)
	{
		buffers = pg_malloc(BUFFER_TOTAL + PG_IO_ALIGN_SIZE);
		buffers = (char *) TYPEALIGN(PG_IO_ALIGN_SIZE, buffers);
		for (size_t at = 0; at < BUFFER_TOTAL; at += sizeof(uint64))
			*(uint64 *) (buffers + at) = pg_prng_uint64(&pg_global_prng_state);
	}
	return buffers + i * length;
}

/*
 * Make the file so large, or as large as it becomes in FILL_SECONDS, if the
 * disk is slow.  The content is random: a file system might compress other
 * content.
 */
void
testfile_fill(int64 wanted)
{
	FileMode	mode = direct_error == 0 ? MODE_DIRECT : MODE_BUFFERED;
	double		limit = FILL_SECONDS * Max(options.seconds, 1);
	int64		deadline = now_ns() + (int64) (limit * 1e9);
	char	   *buffer = testfile_buffer(0, FILL_CHUNK);
	IoRequest	request = {
		.op = IO_WRITE,
		.fd = fds[mode][SYNC_NONE],
		.length = FILL_CHUNK,
		.buffer = buffer,
	};

	if (size >= wanted)
		return;
	while (size < wanted)
	{
		/* no two sectors of the file are the same */
		for (int at = 0; at < FILL_CHUNK; at += SECTOR)
			*(uint64 *) (buffer + at) = pg_prng_uint64(&pg_global_prng_state);
		request.offset = size;
		io_perform(&request);
		size += FILL_CHUNK;
		if (size % FILL_STEP == 0)
		{
			testfile_sync();
			if (now_ns() > deadline)
				break;
		}
	}
	testfile_sync();
}

/* How much of it is filled? */
int64
testfile_size(void)
{
	return size;
}

/* Give its space back. */
void
testfile_truncate(void)
{
	if (ftruncate(fds[MODE_BUFFERED][SYNC_NONE], 0) != 0)
		testfile_failed(IO_WRITE, errno);
	size = 0;
}

/* Sync it. */
void
testfile_sync(void)
{
	if (fdatasync(fds[MODE_BUFFERED][SYNC_NONE]) != 0)
		testfile_failed(IO_DATASYNC, errno);
}

/*
 * Have the kernel drop what it has cached, such that buffered reads have to go
 * to the disk.
 */
void
testfile_forget_cached(void)
{
	testfile_sync();
#if defined(USE_POSIX_FADVISE) && defined(POSIX_FADV_DONTNEED)
	(void) posix_fadvise(fds[MODE_BUFFERED][SYNC_NONE], 0, 0,
						 POSIX_FADV_DONTNEED);
#endif
}

/*
 * Allocate space, without moving the end of the file if 'keep_size'.  Returns
 * 0, or the errno of a file system that cannot do that.
 */
int
testfile_allocate(int64 offset, int64 length, bool keep_size)
{
#ifdef __linux__
	while (fallocate(fds[MODE_BUFFERED][SYNC_NONE],
					 keep_size ? FALLOC_FL_KEEP_SIZE : 0, offset, length) != 0)
	{
		if (errno == EOPNOTSUPP || errno == ENOSYS)
			return errno;
		if (errno != EINTR)
			testfile_failed(IO_WRITE, errno);
	}
	return 0;
#else
	return EOPNOTSUPP;
#endif
}
