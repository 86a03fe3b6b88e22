/*-------------------------------------------------------------------------
 *
 * wal_target.c
 *	  WAL as a target of upstream's AIO, and how a write of it is completed.
 *
 * An I/O worker opens the file anew.  Whoever completes a write, which may be
 * any process, has what is left of it written, and tells the pipeline.  Only
 * upstream's AIO calls this, by way of its tables of targets and callbacks.
 *
 * Upholds INVARIANT-52.
 *
 * Tests: src/test/aio/wal/t/002_errors.pl.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <unistd.h>

#include "access/xlog.h"
#include "access/xlog_internal.h"
#include "aio/wal.h"
#include "storage/aio_internal.h"
#include "wal_internal.h"

/* the file that an I/O worker has opened last, or -1, and for which write */
static int	worker_fd = -1;
static const PgAioHandle *worker_write = NULL;

static void
close_worker_file(void)
{
	if (worker_fd >= 0)
		close(worker_fd);
	worker_fd = -1;
	worker_write = NULL;
}

/* reopen, in an I/O worker; what is raised becomes the write's result */
static void
wal_reopen(PgAioHandle *ioh)
{
	const AioWalTarget *target = (AioWalTarget *) pgaio_io_get_target_data(ioh);
	XLogSegNo	segno = AioWalTargetSegment(target);

	close_worker_file();
	worker_fd = AioWalOpenSegment(segno, target->tli, target->sync_method,
								  true);
	if (worker_fd < 0)
	{
		char		name[MAXFNAMELEN];
		int			save_errno = errno;

		XLogFileName(name, target->tli, segno, wal_segment_size);
		errno = save_errno;
		ereport(ERROR,
				(errcode_for_file_access(),
				 errmsg("could not open file \"%s\": %m", name)));
	}
	pgaio_io_get_op_data(ioh)->write.fd = worker_fd;
	worker_write = ioh;
}

static char *
wal_describe(const PgAioTargetData *td)
{
	const AioWalTarget *target = (const AioWalTarget *) td;
	char		name[MAXFNAMELEN];

	XLogFileName(name, target->tli, AioWalTargetSegment(target),
				 wal_segment_size);
	return psprintf(_("WAL file \"%s\""), name);
}

const PgAioTargetInfo aio_wal_target_info = {
	.name = "wal",
	.reopen = wal_reopen,
	.describe_identity = wal_describe,
};

/* complete_shared */
static PgAioResult
wal_complete(PgAioHandle *ioh, PgAioResult prior_result, uint8 cb_data)
{
	const struct iovec *iov = &pgaio_ctl->iovecs[ioh->iovec_off];
	uint64	   *number;
	uint8		n;

	/* an earlier one may be completed while the next is being submitted */
	if (ioh == worker_write)
		close_worker_file();

	AioWalEndWrite((AioWalTarget *) pgaio_io_get_target_data(ioh),
				   iov->iov_base, iov->iov_len, ioh->op_data.write.offset,
				   prior_result.result);
	number = pgaio_io_get_handle_data(ioh, &n);
	Assert(n == 1);
	AioWalWriteComplete(*number);

	prior_result.status = PGAIO_RS_OK;
	return prior_result;
}

const PgAioHandleCallbacks aio_wal_cb = {
	.complete_shared = wal_complete,
};
