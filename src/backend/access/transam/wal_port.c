/*-------------------------------------------------------------------------
 *
 * wal_port.c
 *	  What the server does for the pipeline of WAL: AIO handles, system calls,
 *	  other processes, statistics.
 *
 * Functions are described in wal_port.h; there are no decisions here about what
 * is written, or synced, when.
 *
 * Tests: src/test/aio/wal/t/001_pipeline.pl.
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
#include "aio/error_point.h"
#include "aio/io_internal.h"
#include "aio/stats.h"
#include "aio/usage.h"
#include "aio/wal.h"
#include "aio/write.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "storage/aio_internal.h"
#include "storage/aio_subsys.h"
#include "storage/fd.h"
#include "storage/latch.h"
#include "storage/lwlock.h"
#include "storage/proc.h"
#include "utils/memutils.h"
#include "utils/wait_event.h"
#include "wal_port.h"

/* some segments of the usual size; so much can be read after a crash */
const uint64 aio_wal_span = 64 * 1024 * 1024;

/* the flush that is being waited for is that of a future, which is counted */
bool		aio_wal_flush_is_counted = false;

StaticAssertDecl(sizeof(AioWalTarget) <= sizeof(PgAioTargetData),
				 "a WAL file must fit into the data of an AIO target");

bool
AioWalInUse(void)
{
	return io_method != IOMETHOD_SYNC && IsUnderPostmaster;
}

/* ------------------------------------------------------------------------
 * Writes in flight
 * ------------------------------------------------------------------------
 */

bool
AioWalMayStartWrites(void)
{
	return pgaio_my_backend != NULL;
}

bool
AioWalMayStartNow(void)
{
	if (pgaio_my_backend == NULL || pgaio_my_backend->handed_out_io != NULL)
		return false;

#ifdef IOMETHOD_IO_URING_ENABLED
	/* own ones that are complete may not have been noticed */
	if (io_method == IOMETHOD_IO_URING)
		AioUringReap();
#endif
	return true;
}

/*
 * Take back the handles of I/Os that others have completed.  Upstream does that
 * when it waits, which we do not.
 */
static void
reclaim_handles(void)
{
	dlist_mutable_iter iter;

	dclist_foreach_modify(iter, &pgaio_my_backend->in_flight_ios)
	{
		PgAioHandle *ioh = dclist_container(PgAioHandle, node, iter.cur);
		PgAioWaitRef wref;

		wref.aio_index = ioh - pgaio_ctl->io_handles;
		wref.generation_upper = (uint32) (ioh->generation >> 32);
		wref.generation_lower = (uint32) ioh->generation;
		(void) pgaio_wref_check_done(&wref);
	}
}

PgAioHandle *
AioWalHandle(PgAioWaitRef *wref)
{
	PgAioHandle *ioh = pgaio_io_acquire_nb(NULL, NULL);

	if (ioh == NULL)
	{
		reclaim_handles();
		ioh = pgaio_io_acquire_nb(NULL, NULL);
	}
	if (ioh != NULL)
		pgaio_io_get_wref(ioh, wref);
	return ioh;
}

void
AioWalSubmit(PgAioHandle *ioh, int fd, const AioWalTarget *target, char *from,
			 Size nbytes, uint32 offset, uint64 number)
{
	struct iovec *iov;

	Assert(ioh == pgaio_my_backend->handed_out_io);
	*(AioWalTarget *) pgaio_io_get_target_data(ioh) = *target;
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
	aio_session_stats_data.wal_writes++;
}

void
AioWalAwait(PgAioWaitRef *wref)
{
	uint64		nsleeps = aio_nsleeps;

	pgaio_wref_wait(wref);

	/* callers do not expect that a wakeup is lost */
	if (aio_nsleeps != nsleeps)
		SetLatch(MyLatch);
}

/* ------------------------------------------------------------------------
 * System calls
 * ------------------------------------------------------------------------
 */

ssize_t
AioWalPwrite(int fd, const char *from, Size nbytes, uint32 offset)
{
	instr_time	before;
	instr_time	start;
	ssize_t		written;

	AioCountStart(AIO_KIND_WAL_WRITE, 0);
	aio_usage[AIO_KIND_WAL_WRITE].completed_inline++;
	INSTR_TIME_SET_CURRENT(before);

	errno = 0;
	start = pgstat_prepare_io_time(track_wal_io_timing);
	pgstat_report_wait_start(WAIT_EVENT_WAL_WRITE);
	written = pg_pwrite(fd, from, nbytes, offset);
	pgstat_report_wait_end();

	AioCountEnd(AIO_KIND_WAL_WRITE, before);
	if (written > 0)
	{
		aio_usage[AIO_KIND_WAL_WRITE].bytes += written;
		pgstat_count_io_op_time(IOOBJECT_WAL, IOCONTEXT_NORMAL, IOOP_WRITE,
								start, 1, written);
	}
	return written;
}

int
AioWalFdatasync(int fd)
{
	instr_time	start = pgstat_prepare_io_time(track_wal_io_timing);
	int			result;

	pgstat_report_wait_start(WAIT_EVENT_WAL_SYNC);
	result = pg_fdatasync(fd);
	pgstat_report_wait_end();
	if (result == 0)
		pgstat_count_io_op_time(IOOBJECT_WAL, IOCONTEXT_NORMAL, IOOP_FSYNC,
								start, 1, 0);
	return result;
}

int
AioWalClose(int fd)
{
	pgaio_closing_fd(fd);

	/* nobody will read it again, unless the archive or a standby wants it */
#if defined(USE_POSIX_FADVISE) && defined(POSIX_FADV_DONTNEED)
	if (!XLogIsNeeded() && (io_direct_flags & IO_DIRECT_WAL) == 0)
		(void) posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
#endif
	return close(fd);
}

void
AioWalCloseReopened(int fd)
{
	close(fd);
}

/* ------------------------------------------------------------------------
 * Files that a crash has left
 * ------------------------------------------------------------------------
 */

int
AioWalOpenOld(XLogSegNo segno, TimeLineID tli)
{
	char		path[MAXPGPATH];
	int			fd;

	/* not past the cache, whatever debug_io_direct says: it is read once */
	XLogFilePath(path, tli, segno, wal_segment_size);
	fd = BasicOpenFile(path, O_RDWR | PG_BINARY | O_CLOEXEC);
	if (fd < 0 && errno != ENOENT)
		ereport(ERROR,
				(errcode_for_file_access(),
				 errmsg("could not open file \"%s\": %m", path)));
	return fd;
}

ssize_t
AioWalPread(int fd, char *to, Size nbytes, uint32 offset)
{
	Size		done = 0;

	while (done < nbytes)
	{
		ssize_t		n;

		pgstat_report_wait_start(WAIT_EVENT_WAL_READ);
		n = pg_pread(fd, to + done, nbytes - done, offset + done);
		pgstat_report_wait_end();
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		if (n == 0)
			break;
		done += n;
	}
	return done;
}

/* Whatever timeline it says: recovery takes a later one, too. */
bool
AioWalPageIs(const char *page, XLogRecPtr ptr)
{
	const XLogPageHeaderData *header = (const XLogPageHeaderData *) page;

	return header->xlp_magic == XLOG_PAGE_MAGIC && header->xlp_pageaddr == ptr;
}

void
AioWalTellErased(XLogRecPtr end, XLogRecPtr first, XLogRecPtr last, int npages)
{
	ereport(LOG,
			(errmsg("erased %d pages of WAL between %X/%X and %X/%X that were written before the crash",
					npages, LSN_FORMAT_ARGS(first), LSN_FORMAT_ARGS(last)),
			 errdetail("WAL ends at %X/%X; something before these pages had not been written.",
					   LSN_FORMAT_ARGS(end))));
}

/* ------------------------------------------------------------------------
 * Other processes, and segments
 * ------------------------------------------------------------------------
 */

void
AioWalWakeWriter(void)
{
	ProcNumber	procno = ProcGlobal->walwriterProc;

	if (procno != INVALID_PROC_NUMBER)
		SetLatch(&GetPGProcByNumber(procno)->procLatch);
}

/* A segment that is made before it is needed. */
typedef struct TriedSegment
{
	XLogSegNo	segno;
	TimeLineID	tli;
} TriedSegment;

static void
try_create_segment(void *arg)
{
	const TriedSegment *tried = arg;

	AioWalCreateSegment(tried->segno, tried->tli);
}

void
AioWalTryCreateSegment(XLogSegNo segno, TimeLineID tli)
{
	TriedSegment tried = {.segno = segno,.tli = tli};
	ErrorData  *error;

	/* whoever needs it will try again */
	if (AioTry(try_create_segment, &tried, NULL, &error))
		return;
	pgstat_report_wait_end();
	error->elevel = LOG;
	ThrowErrorData(error);
	FreeErrorData(error);
}

/* ------------------------------------------------------------------------
 * Statistics
 * ------------------------------------------------------------------------
 */

void
AioWalFlushBegins(AioWalFlush *flush)
{
	flush->counted = aio_wal_flush_is_counted;

	/* an error must not leave it behind */
	aio_wal_flush_is_counted = false;
	if (!flush->counted)
		AioCountStart(AIO_KIND_WAL_FLUSH, 0);
	INSTR_TIME_SET_CURRENT(flush->start);
}

void
AioWalFlushEnds(const AioWalFlush *flush)
{
	if (!flush->counted)
		AioCountEnd(AIO_KIND_WAL_FLUSH, flush->start);
	AioCountWait(AIO_KIND_WAL_FLUSH, flush->start);
}
