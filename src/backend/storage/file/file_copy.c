/*-------------------------------------------------------------------------
 *
 * file_copy.c
 *	  Files that a backend copies do not fill the page cache.
 *
 * Upstream has the kernel begin to write each megabyte of a copy (CREATE
 * DATABASE with the strategy FILE_COPY, ALTER DATABASE SET TABLESPACE), and
 * syncs the files at the end.  Here, what is KEEP bytes behind is waited for,
 * and dropped from the page cache: the copy of a large database neither evicts
 * what others have cached, nor takes the time that that needs.  Of each file
 * the last KEEP bytes stay cached, and so files of no more than that, and
 * databases as small as most templates, stay as they are.
 *
 * sync_file_range() that waits consumes the error of a write-back that failed,
 * so that no later fsync() would report it.  Hence its errors are treated as
 * those of fsync() are.
 *
 * Tests: src/test/aio/backup/t/005_file_copy.pl.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <fcntl.h>
#include <unistd.h>

#include "aio/file_copy.h"
#include "miscadmin.h"
#include "storage/fd.h"
#include "utils/wait_event.h"

/* how much of the end of a file stays in the page cache */
#define KEEP			((pgoff_t) 32 * 1024 * 1024)

/*
 * These bytes of a copy have been written, after all that come before them.
 * May raise an error.
 */
void
AioFlushCopy(int fd, pgoff_t offset, pgoff_t length)
{
	pg_flush_data(fd, offset, length);

#if defined(HAVE_SYNC_FILE_RANGE) && defined(POSIX_FADV_DONTNEED)
	if (!enableFsync || offset < KEEP)
		return;

	offset -= KEEP;
	pgstat_report_wait_start(WAIT_EVENT_COPY_FILE_WRITE);
	if (sync_file_range(fd, offset, length,
						SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE |
						SYNC_FILE_RANGE_WAIT_AFTER) == 0)
		(void) posix_fadvise(fd, offset, length, POSIX_FADV_DONTNEED);
	else if (errno != ENOSYS && errno != EOPNOTSUPP && errno != EINVAL &&
			 errno != EPERM && errno != ESPIPE && errno != EINTR)
		ereport(data_sync_elevel(ERROR),
				(errcode_for_file_access(),
				 errmsg("could not flush dirty data: %m")));
	pgstat_report_wait_end();
#endif
}
