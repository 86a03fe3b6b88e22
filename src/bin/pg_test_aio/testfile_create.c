/*-------------------------------------------------------------------------
 *
 * testfile_create.c
 *	  The test file comes into being, and is opened in each way that a test
 *	  needs.
 *
 * Nothing of it may be left when the program ends, in whatever way that
 * happens, and nothing that exists may be written.  So the file never has a
 * name if the file system can do that.  Otherwise it has one until it has been
 * opened, and that is all that can be left of it: an empty file, if the program
 * is killed just then.
 *
 * Others may be able to write to the directory, and we may be root: whatever
 * has been opened is compared with the file that was created, before anything
 * is written to it.
 *
 * Tests: src/bin/pg_test_aio/t/002_disturbed.pl.
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
#include "pg_test_aio.h"

#ifndef O_DSYNC
#define O_DSYNC			O_SYNC
#endif

static const int sync_flags[NSYNCFLAGS] = {0, O_DSYNC, O_SYNC};

static int	fds[NMODES][NSYNCFLAGS];
static int	direct_error;		/* why there is no direct I/O, or 0 */

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

static bool
is_same(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

static void
get_status(int fd, struct stat *status)
{
	if (fstat(fd, status) != 0)
		pg_fatal("could not stat the test file in directory \"%s\": %m", options.directory);
}

/*
 * Open the file once more.  The kernel knows a way that needs no name; where
 * that is not to be had, the name is used, unless it is a symbolic link.
 * Returns -1 and sets errno if neither works, and ends the program if that is
 * another file.
 */
static int
reopen(int first, const char *path, int flags)
{
	char	   *link = psprintf("/proc/self/fd/%d", first);
	int			fd = open(link, O_RDWR | flags, 0);
	struct stat ours;
	struct stat status;

	if (fd < 0 && path != NULL)
		fd = open(path, O_RDWR | O_NOFOLLOW | flags, 0);
	pfree(link);
	if (fd >= 0)
	{
		get_status(first, &ours);
		get_status(fd, &status);
		if (!is_same(&ours, &status))
			pg_fatal("file \"%s\" has been replaced by another one", path);
	}
	return fd;
}

/*
 * Open it in all ways; 'path' may be NULL.  Returns 0 or an errno.  If it can
 * be opened, though not for direct I/O, then there is no direct I/O, whatever
 * the file system says of that.
 */
static int
open_all(int first, const char *path)
{
	fds[MODE_BUFFERED][SYNC_NONE] = first;
	for (int flag = 0; flag < NSYNCFLAGS; flag++)
	{
		if (flag != SYNC_NONE &&
			(fds[MODE_BUFFERED][flag] = reopen(first, path,
											   sync_flags[flag])) < 0)
			return errno;
	}
	direct_error = 0;
#ifdef O_DIRECT
	for (int flag = 0; flag < NSYNCFLAGS && direct_error == 0; flag++)
	{
		fds[MODE_DIRECT][flag] = reopen(first, path,
										O_DIRECT | sync_flags[flag]);
		if (fds[MODE_DIRECT][flag] < 0)
			direct_error = errno;
	}
#else
	direct_error = EOPNOTSUPP;
#endif
	return 0;
}

/* Create it without a name.  Returns false where that cannot be done. */
static bool
create_unnamed(void)
{
#ifdef O_TMPFILE
	int			first = open(options.directory, O_TMPFILE | O_RDWR | O_EXCL,
							 0600);

	if (first >= 0 && open_all(first, NULL) == 0)
		return true;
	if (first >= 0)
		close(first);
#endif
	return false;
}

/*
 * Take the name away, if it is still that of our file.  Who can put another one
 * there after this look could as well remove that himself.
 */
static void
remove_name(int first, const char *path)
{
	struct stat ours;
	struct stat status;

	get_status(first, &ours);
	if (lstat(path, &status) != 0 || !is_same(&ours, &status))
		pg_fatal("file \"%s\" has been replaced by another one", path);
	if (unlink(path) != 0)
		pg_fatal("could not remove file \"%s\": %m", path);
}

/* Create it with a name that no other file has, for a moment. */
static void
create_named(void)
{
	char	   *path = psprintf("%s/pg_test_aio.XXXXXX", options.directory);
	sigset_t	all,
				before;
	int			first;
	int			error;

	/* nobody may interrupt us while the file has a name */
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, &before);
	first = mkstemp(path);
	if (first < 0)
		pg_fatal("could not create a file in directory \"%s\": %m", options.directory);
	error = open_all(first, path);
	remove_name(first, path);
	sigprocmask(SIG_SETMASK, &before, NULL);
	if (error != 0)
	{
		errno = error;
		pg_fatal("could not open file \"%s\": %m", path);
	}
	pfree(path);
}

/* Does it work, too?  Some file systems let one open it only. */
static void
probe_direct(void)
{
	if (pwrite(fds[MODE_DIRECT][SYNC_NONE], testfile_buffer(0, BLCKSZ),
			   BLCKSZ, 0) < 0)
	{
		if (!testfile_cannot(errno))
			testfile_failed(IO_WRITE, errno);
		direct_error = errno;
	}
	testfile_truncate();
}

/* Create the file, which lives until the program ends. */
void
testfile_create(void)
{
	check_space();
	if (!create_unnamed())
		create_named();

	/*
	 * A random read that misses the kernel's cache is to read what is asked
	 * for, and no neighbours: later reads would find those in the cache.
	 */
#if defined(USE_POSIX_FADVISE) && defined(POSIX_FADV_RANDOM)
	(void) posix_fadvise(fds[MODE_BUFFERED][SYNC_NONE], 0, 0,
						 POSIX_FADV_RANDOM);
#endif

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
