/*-------------------------------------------------------------------------
 *
 * watch.c
 *	  A library that is preloaded by tests: what a program writes and syncs is
 *	  noted, and can fail.
 *
 * The environment says what:
 *
 * WATCH_LOG: a line is added to this file for each write to a file and each
 * sync that has succeeded: the operation, whether it is the main thread's,
 * and device, inode and path of the file.
 *
 * WATCH_FAIL: this operation, write, fsync, sync_file_range or close, fails
 * with EIO, write with ENOSPC and sync_file_range with what a device may say,
 * if the path contains WATCH_PATH.  As by the kernel, a failure to sync is
 * reported once, and the next fsync succeeds.
 *
 * WATCH_WITHOUT: the file system can neither allocate, nor be told to write.
 *
 * Tests: src/test/aio/backup/t/002_client.pl, 004_programs.pl,
 * 005_file_copy.pl.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

/* both names of a function are ours: none may stand for the other */
#undef _FILE_OFFSET_BITS

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The path of an open file, or an empty string if it is no file. */
static const char *
path_of(int fd, char *path)
{
	char		link[64];
	ssize_t		length;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	length = readlink(link, path, PATH_MAX - 1);
	path[length > 0 && path[0] == '/' ? length : 0] = '\0';
	return path;
}

/* Shall this fail? */
static int
fails(const char *operation, int fd)
{
	const char *which = getenv("WATCH_FAIL");
	char		path[PATH_MAX];

	return which != NULL && strcmp(which, operation) == 0 &&
		strstr(path_of(fd, path), getenv("WATCH_PATH")) != NULL;
}

static void
note(const char *operation, int fd)
{
	const char *log = getenv("WATCH_LOG");
	char		path[PATH_MAX];
	char		line[PATH_MAX + 128];
	struct stat st;
	int			saved = errno;
	int			out;

	if (log != NULL && path_of(fd, path)[0] != '\0' && fstat(fd, &st) == 0 &&
		(S_ISREG(st.st_mode) || S_ISDIR(st.st_mode)))
	{
		snprintf(line, sizeof(line), "%s %s %lu:%lu %s\n", operation,
				 syscall(SYS_gettid) == getpid() ? "main" : "thread",
				 (unsigned long) st.st_dev, (unsigned long) st.st_ino, path);
		out = open(log, O_WRONLY | O_APPEND | O_CREAT, 0600);
		if (out < 0 || syscall(SYS_write, out, line, strlen(line)) < 0)
			abort();
		syscall(SYS_close, out);
	}
	errno = saved;
}

ssize_t
write(int fd, const void *data, size_t size)
{
	ssize_t		written;

	if (fails("write", fd))
	{
		errno = ENOSPC;
		return -1;
	}
	written = syscall(SYS_write, fd, data, size);
	if (written > 0)
		note("write", fd);
	return written;
}

int
fsync(int fd)
{
	int			result;

	static int	reported = 0;

	if (fails("fsync", fd) && __sync_fetch_and_add(&reported, 1) == 0)
	{
		errno = EIO;
		return -1;
	}
	result = syscall(SYS_fsync, fd);
	if (result == 0)
		note("fsync", fd);
	return result;
}

int
close(int fd)
{
	if (fails("close", fd))
	{
		syscall(SYS_close, fd);
		errno = EIO;
		return -1;
	}
	return syscall(SYS_close, fd);
}

int
sync_file_range(int fd, off64_t offset, off64_t size, unsigned int flags)
{
	if (getenv("WATCH_WITHOUT") != NULL)
	{
		errno = ENOSYS;
		return -1;
	}
	if ((flags & SYNC_FILE_RANGE_WAIT_AFTER) && fails("sync_file_range", fd))
	{
		errno = ENOLINK;
		return -1;
	}
	note("sync_file_range", fd);
	return ((int (*) (int, off64_t, off64_t, unsigned int))
			dlsym(RTLD_NEXT, "sync_file_range")) (fd, offset, size, flags);
}

static int
fallocate_by(const char *function, int fd, int mode, off64_t offset,
			 off64_t size)
{
	if (getenv("WATCH_WITHOUT") != NULL)
	{
		errno = EOPNOTSUPP;
		return -1;
	}
	note("fallocate", fd);
	return ((int (*) (int, int, off64_t, off64_t))
			dlsym(RTLD_NEXT, function)) (fd, mode, offset, size);
}

int
fallocate(int fd, int mode, off_t offset, off_t size)
{
	return fallocate_by("fallocate64", fd, mode, offset, size);
}

int
fallocate64(int fd, int mode, off64_t offset, off64_t size)
{
	return fallocate_by("fallocate64", fd, mode, offset, size);
}
