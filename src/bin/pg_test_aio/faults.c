/*-------------------------------------------------------------------------
 *
 * faults.c
 *	  A library that is preloaded by tests: what seldom happens, happens.
 *
 * The environment says what:
 *
 * FAULT_CLOCK: each look at the clock finds that so many nanoseconds have
 * passed since the last one, so that a test can try all moments.
 *
 * FAULT_TMPFILE: no file can be created without a name.
 *
 * FAULT_PROC: there is no /proc/self/fd.
 *
 * FAULT_SYMLINK, FAULT_LINK: when a temporary file has been created, somebody
 * else makes its name a symbolic link, or a link, to this file.
 *
 * Tests: src/bin/pg_test_aio/t/002_disturbed.pl.
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
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

typedef int (*OpenFunction) (const char *path, int flags, mode_t mode);
typedef int (*MkstempFunction) (char *template);
typedef int (*ClockFunction) (clockid_t clock, struct timespec *ts);

int
clock_gettime(clockid_t clock, struct timespec *ts)
{
	static long now = 0;
	const char *step = getenv("FAULT_CLOCK");

	if (step == NULL)
		return ((ClockFunction) dlsym(RTLD_NEXT, "clock_gettime")) (clock, ts);
	now = __sync_add_and_fetch(&now, atol(step));
	ts->tv_sec = now / 1000000000;
	ts->tv_nsec = now % 1000000000;
	return 0;
}

static int
open_by(const char *function, const char *path, int flags, mode_t mode)
{
#ifdef O_TMPFILE
	if ((flags & O_TMPFILE) == O_TMPFILE && getenv("FAULT_TMPFILE") != NULL)
	{
		errno = EOPNOTSUPP;
		return -1;
	}
#endif
	if (strncmp(path, "/proc/self/fd/", 14) == 0 && getenv("FAULT_PROC") != NULL)
	{
		errno = ENOENT;
		return -1;
	}
	return ((OpenFunction) dlsym(RTLD_NEXT, function)) (path, flags, mode);
}

int
open(const char *path, int flags,...)
{
	va_list		args;
	mode_t		mode;

	va_start(args, flags);
	mode = va_arg(args, mode_t);
	va_end(args);
	return open_by("open", path, flags, mode);
}

int
open64(const char *path, int flags,...)
{
	va_list		args;
	mode_t		mode;

	va_start(args, flags);
	mode = va_arg(args, mode_t);
	va_end(args);
	return open_by("open64", path, flags, mode);
}

static int
mkstemp_by(const char *function, char *template)
{
	int			fd = ((MkstempFunction) dlsym(RTLD_NEXT, function)) (template);
	const char *other;

	if (fd >= 0 && (other = getenv("FAULT_SYMLINK")) != NULL &&
		(unlink(template) != 0 || symlink(other, template) != 0))
		abort();
	if (fd >= 0 && (other = getenv("FAULT_LINK")) != NULL &&
		(unlink(template) != 0 || link(other, template) != 0))
		abort();
	return fd;
}

int
mkstemp(char *template)
{
	return mkstemp_by("mkstemp", template);
}

int
mkstemp64(char *template)
{
	return mkstemp_by("mkstemp64", template);
}
