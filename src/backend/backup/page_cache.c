/*-------------------------------------------------------------------------
 *
 * page_cache.c
 *	  What the kernel's page cache has of a file.
 *
 * By cachestat(), of Linux 6.5.  It may be another answer a moment later, so
 * it is for choosing a way to read, never for knowing what will be read.
 *
 * Where files of several layers are shown as one, as by overlayfs, or where a
 * file system has a cache of its own, the answer is that nothing is cached.
 * So a file system is asked first about a page that has just been read.
 *
 * Tests: src/test/aio/backup/t/001_backup.pl.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <sys/syscall.h>
#include <unistd.h>

#include "backup_internal.h"

#if defined(SYS_cachestat)
#define NR_CACHESTAT	SYS_cachestat
#elif defined(__linux__) && !defined(__alpha__) && !defined(__mips__)
#define NR_CACHESTAT	451		/* on all of these */
#endif

/* the file system that was asked last, and whether it tells the truth */
static bool asked = false;
static dev_t asked_device;
static bool asked_is_true;

/* Pages of the system that are cached, or -1 if nobody knows. */
static int64
cached_pages(int fd, off_t offset, size_t length)
{
#ifdef NR_CACHESTAT
	uint64		range[] = {offset, length};
	uint64		pages[5];		/* cached, and what we do not ask about */

	if (syscall(NR_CACHESTAT, fd, range, pages, 0) == 0)
		return pages[0];
#endif
	return -1;
}

/*
 * How much of these bytes is in the page cache?  The file is on 'device', open
 * for reading, not past the page cache, and longer than 'offset'.
 */
AioCached
AioPageCacheHas(int fd, dev_t device, off_t offset, size_t length)
{
	int64		page_size = sysconf(_SC_PAGESIZE);
	int64		pages;

	if (!asked || asked_device != device)
	{
		char		byte;

		if (pread(fd, &byte, 1, offset) != 1)
			return AIO_CACHED_UNKNOWN;
		pages = cached_pages(fd, offset, 1);
		if (pages < 0 && errno == EPERM)
			return AIO_CACHED_UNKNOWN;	/* a file of somebody else */
		asked_device = device;
		asked_is_true = pages > 0;
		asked = true;
	}
	pages = asked_is_true ? cached_pages(fd, offset, length) : -1;
	if (pages < 0)
		return AIO_CACHED_UNKNOWN;
	if (pages == 0)
		return AIO_CACHED_NONE;
	return pages * page_size >= (int64) length ?
		AIO_CACHED_ALL : AIO_CACHED_SOME;
}
