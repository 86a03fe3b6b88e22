/*-------------------------------------------------------------------------
 *
 * worker_file.c
 *	  The file that an I/O worker has opened for an I/O.
 *
 * Upstream's targets are relations, whose files smgr keeps open.  A worker that
 * carries out an I/O on another file opens it in the target's reopen, and
 * closes it when the I/O is complete, or when it opens the next.
 *
 * Tests: src/test/aio/backup/t/001_backup.pl,
 * src/test/aio/wal/t/002_errors.pl.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <unistd.h>

#include "aio/worker_file.h"

/* the file opened last, or -1, and for which I/O */
static int	worker_fd = -1;
static const PgAioHandle *worker_io = NULL;

static void
close_file(void)
{
	if (worker_fd >= 0)
		close(worker_fd);
	worker_fd = -1;
	worker_io = NULL;
}

/*
 * reopen of a target: this process has opened a file for the I/O, which is
 * closed by AioCloseWorkerFile().
 */
void
AioSetWorkerFile(const PgAioHandle *ioh, int fd)
{
	close_file();
	worker_fd = fd;
	worker_io = ioh;
}

/*
 * complete_shared, in any process: if it has opened a file for this I/O, close
 * it.  An earlier one may be completed while the next is being submitted.
 * Has it opened one?  May be called in a critical section.
 */
bool
AioCloseWorkerFile(const PgAioHandle *ioh)
{
	if (ioh != worker_io)
		return false;
	close_file();
	return true;
}
