/*-------------------------------------------------------------------------
 *
 * wal_file.c
 *	  The files of the WAL: writing and syncing them, now or without waiting.
 *
 * An error is a PANIC with upstream's message, wherever it is noticed: also in
 * the process that completes another one's write.
 *
 * Upholds INVARIANT-52.
 *
 * Tests: src/test/aio/t/019_wal_errors.pl.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <fcntl.h>
#include <unistd.h>

#include "access/xlog.h"
#include "access/xlog_internal.h"
#include "aio/usage.h"
#include "aio/wal.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "storage/aio_internal.h"
#include "storage/aio_subsys.h"
#include "storage/fd.h"
#include "utils/wait_event.h"
#include "wal_internal.h"

/* segments a process has open: the next one while the last is synced */
#define NFILES			2

typedef struct WalFile
{
	int			fd;				/* valid if segno is not 0 */
	XLogSegNo	segno;
	TimeLineID	tli;
	int			sync_method;	/* for which it was opened */
} WalFile;

static WalFile files[NFILES];

/* What a write that is in flight says of its file: its AIO target's data. */
typedef struct WalTarget
{
	uint32		segno_high;
	uint32		segno_low;
	TimeLineID	tli;
	int			sync_method;
} WalTarget;

StaticAssertDecl(sizeof(WalTarget) <= sizeof(PgAioTargetData),
				 "a WAL file must fit into the data of an AIO target");

/* the file that an I/O worker has opened last, or -1, and for which write */
static int	worker_fd = -1;
static const PgAioHandle *worker_write = NULL;

/* Is what has been written through a file of a method on disk, too? */
bool
AioWalMethodSyncsWrites(int sync_method)
{
	return sync_method == WAL_SYNC_METHOD_OPEN ||
		sync_method == WAL_SYNC_METHOD_OPEN_DSYNC;
}

static void
close_file(WalFile *file)
{
	int			fd = file->fd;

	pgaio_closing_fd(fd);

	/* nobody will read it again, unless the archive or a standby wants it */
#if defined(USE_POSIX_FADVISE) && defined(POSIX_FADV_DONTNEED)
	if (!XLogIsNeeded() && (io_direct_flags & IO_DIRECT_WAL) == 0)
		(void) posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
#endif

	if (close(fd) != 0)
	{
		char		name[MAXFNAMELEN];
		int			save_errno = errno;

		XLogFileName(name, file->tli, file->segno, wal_segment_size);
		errno = save_errno;
		ereport(PANIC,
				(errcode_for_file_access(),
				 errmsg("could not close file \"%s\": %m", name)));
	}
	file->segno = 0;
	ReleaseExternalFD();
}

/*
 * A file of the WAL, open.  If there is none it is created, or if that is not
 * asked for -1 is returned, as it is if it cannot be opened.  It stays open
 * until it is AioWalCloseFilesBefore(), or two later ones have been asked for.
 */
int
AioWalFile(XLogSegNo segno, TimeLineID tli, bool create)
{
	WalFile    *file = &files[segno % NFILES];

	if (file->segno == segno && file->tli == tli &&
		file->sync_method == wal_sync_method)
		return file->fd;
	if (file->segno != 0)
		close_file(file);

	file->fd = create ? XLogFileInit(segno, tli) :
		AioWalOpenSegment(segno, tli, wal_sync_method, true);
	if (file->fd < 0)
		return -1;
	ReserveExternalFD();
	file->segno = segno;
	file->tli = tli;
	file->sync_method = wal_sync_method;
	return file->fd;
}

/* Let go of files that may be removed. */
void
AioWalCloseFilesBefore(XLogSegNo segno)
{
	for (int i = 0; i < NFILES; i++)
	{
		if (files[i].segno != 0 && files[i].segno < segno)
			close_file(&files[i]);
	}
}

pg_noreturn static void
panic_write(XLogSegNo segno, TimeLineID tli, uint32 offset, Size nbytes,
			int error)
{
	char		name[MAXFNAMELEN];

	XLogFileName(name, tli, segno, wal_segment_size);
	errno = error;
	ereport(PANIC,
			(errcode_for_file_access(),
			 errmsg("could not write to log file \"%s\" at offset %u, length %zu: %m",
					name, offset, nbytes)));
}

/* Write, and wait for it. */
void
AioWalWriteNow(int fd, XLogSegNo segno, TimeLineID tli,
			   const char *from, Size nbytes, uint32 offset)
{
	instr_time	before;

	AioCountStart(AIO_KIND_WAL, nbytes);
	aio_usage[AIO_KIND_WAL].completed_inline++;
	INSTR_TIME_SET_CURRENT(before);
	while (nbytes > 0)
	{
		instr_time	start;
		ssize_t		written;

		errno = 0;
		start = pgstat_prepare_io_time(track_wal_io_timing);
		pgstat_report_wait_start(WAIT_EVENT_WAL_WRITE);
		written = pg_pwrite(fd, from, nbytes, offset);
		pgstat_report_wait_end();
		if (written <= 0)
		{
			if (errno == EINTR)
				continue;
			panic_write(segno, tli, offset, nbytes, errno);
		}
		pgstat_count_io_op_time(IOOBJECT_WAL, IOCONTEXT_NORMAL, IOOP_WRITE,
								start, 1, written);
		from += written;
		offset += written;
		nbytes -= written;
	}
	AioCountEnd(AIO_KIND_WAL, before);
}

/*
 * Have what was written to a file synced, and wait for it: also what was
 * written while wal_sync_method was another.
 */
void
AioWalSyncNow(XLogSegNo segno, TimeLineID tli)
{
	const char *msg;
	int			fd;

	if (!enableFsync)
		return;
	fd = AioWalFile(segno, tli, false);
	if (fd >= 0 && !AioWalMethodSyncsWrites(wal_sync_method))
	{
		issue_xlog_fsync(fd, segno, tli);
		return;
	}

	msg = NULL;
	if (fd < 0)
		msg = _("could not open file \"%s\": %m");
	else
	{
		instr_time	start = pgstat_prepare_io_time(track_wal_io_timing);

		pgstat_report_wait_start(WAIT_EVENT_WAL_SYNC);
		if (pg_fdatasync(fd) != 0)
			msg = _("could not fdatasync file \"%s\": %m");
		pgstat_report_wait_end();
		pgstat_count_io_op_time(IOOBJECT_WAL, IOCONTEXT_NORMAL, IOOP_FSYNC,
								start, 1, 0);
	}
	if (msg != NULL)
	{
		char		name[MAXFNAMELEN];
		int			save_errno = errno;

		XLogFileName(name, tli, segno, wal_segment_size);
		errno = save_errno;
		ereport(PANIC,
				(errcode_for_file_access(),
				 errmsg(msg, name)));
	}
}

/*
 * Start to write, with a handle that the caller has acquired.  'fd' is that of
 * AioWalFile(); the buffers must stay as they are until AioWalWriteComplete()
 * is told that the write with this number is complete.
 */
void
AioWalStartWrite(PgAioHandle *ioh, int fd, XLogSegNo segno, TimeLineID tli,
				 char *from, Size nbytes, uint32 offset, uint64 number)
{
	WalTarget  *target = (WalTarget *) pgaio_io_get_target_data(ioh);
	struct iovec *iov;

	target->segno_high = segno >> 32;
	target->segno_low = (uint32) segno;
	target->tli = tli;
	target->sync_method = wal_sync_method;
	pgaio_io_set_target(ioh, AIO_TID_WAL);
	pgaio_io_set_handle_data_64(ioh, &number, 1);
	pgaio_io_register_callbacks(ioh, AIO_HCB_WAL, 0);
	if ((io_direct_flags & IO_DIRECT_WAL) == 0)
		pgaio_io_set_flag(ioh, PGAIO_HF_BUFFERED);

	(void) pgaio_io_get_iovec(ioh, &iov);
	iov->iov_base = from;
	iov->iov_len = nbytes;
	pgaio_io_start_writev(ioh, fd, 1, offset);
	pgaio_submit_staged();

	pgstat_count_io_op(IOOBJECT_WAL, IOCONTEXT_NORMAL, IOOP_WRITE, 1, nbytes);
}

static XLogSegNo
target_segment(const PgAioTargetData *td, const WalTarget **target)
{
	*target = (const WalTarget *) td;
	return ((XLogSegNo) (*target)->segno_high << 32) | (*target)->segno_low;
}

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
	const WalTarget *target;
	XLogSegNo	segno = target_segment(pgaio_io_get_target_data(ioh), &target);

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
	const WalTarget *target;
	XLogSegNo	segno = target_segment(td, &target);
	char		name[MAXFNAMELEN];

	XLogFileName(name, target->tli, segno, wal_segment_size);
	return psprintf(_("WAL file \"%s\""), name);
}

const PgAioTargetInfo aio_wal_target_info = {
	.name = "wal",
	.reopen = wal_reopen,
	.describe_identity = wal_describe,
};

/*
 * Write what a write has left, in the process that completes it, which has not
 * opened the file.
 */
static void
write_rest(PgAioHandle *ioh, Size done)
{
	const struct iovec *iov = &pgaio_ctl->iovecs[ioh->iovec_off];
	uint32		offset = ioh->op_data.write.offset;
	const WalTarget *target;
	XLogSegNo	segno = target_segment(pgaio_io_get_target_data(ioh), &target);
	int			fd = AioWalOpenSegment(segno, target->tli, target->sync_method,
									   false);

	if (fd < 0)
		panic_write(segno, target->tli, offset + done, iov->iov_len - done, errno);
	AioWalWriteNow(fd, segno, target->tli, (char *) iov->iov_base + done,
				   iov->iov_len - done, offset + done);
	close(fd);
}

/* complete_shared */
static PgAioResult
wal_complete(PgAioHandle *ioh, PgAioResult prior_result, uint8 cb_data)
{
	const struct iovec *iov = &pgaio_ctl->iovecs[ioh->iovec_off];
	int			result = prior_result.result;
	uint64	   *number;
	uint8		n;

	/* an earlier one may be completed while the next is being submitted */
	if (ioh == worker_write)
		close_worker_file();

	/* whose sync may have failed must not be told that the next one did not */
	if (result < 0 && result != -EINTR && result != -EAGAIN &&
		result != -ECANCELED && result != -ENOENT)
	{
		const WalTarget *target;
		XLogSegNo	segno = target_segment(pgaio_io_get_target_data(ioh), &target);

		if (AioWalMethodSyncsWrites(target->sync_method))
			panic_write(segno, target->tli, ioh->op_data.write.offset,
						iov->iov_len, -result);
	}

	/*
	 * Cut short, not begun, or failed: either it can be written now or we
	 * learn why not.  (Some file systems call it EIO if an asynchronous write
	 * is cut short.)
	 */
	if (result < 0 || (Size) result < iov->iov_len)
		write_rest(ioh, Max(result, 0));

	number = pgaio_io_get_handle_data(ioh, &n);
	AioWalWriteComplete(*number);

	prior_result.status = PGAIO_RS_OK;
	return prior_result;
}

const PgAioHandleCallbacks aio_wal_cb = {
	.complete_shared = wal_complete,
};
