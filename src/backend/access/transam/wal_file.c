/*-------------------------------------------------------------------------
 *
 * wal_file.c
 *	  The files of the WAL: which are open, and what an error in one means.
 *
 * An error is a PANIC with upstream's message, wherever it is noticed: also in
 * the process that completes another one's write.
 *
 * What this needs of the server is in wal_port.h, so that the simulator has it
 * run on a disk that fails.  Its variables belong to one process; it takes no
 * locks, and all of it may be called in a critical section.
 *
 * Upholds INVARIANT-52.
 *
 * Tests: src/test/aio/wal/t/002_errors.pl, src/test/simulate/wal_pipeline.c.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xlog.h"
#include "access/xlog_internal.h"
#include "miscadmin.h"
#include "storage/fd.h"
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
	Assert(file->segno != 0);
	if (AioWalClose(file->fd) != 0)
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

	Assert(segno != 0);
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
	Assert(nbytes > 0 && offset + nbytes <= (Size) wal_segment_size);
	while (nbytes > 0)
	{
		ssize_t		written = AioWalPwrite(fd, from, nbytes, offset);

		if (written <= 0)
		{
			if (errno == EINTR)
				continue;
			panic_write(segno, tli, offset, nbytes, errno);
		}
		Assert((Size) written <= nbytes);
		from += written;
		offset += written;
		nbytes -= written;
	}
}

pg_noreturn static void
panic_sync(XLogSegNo segno, TimeLineID tli, const char *msg)
{
	char		name[MAXFNAMELEN];
	int			save_errno = errno;

	XLogFileName(name, tli, segno, wal_segment_size);
	errno = save_errno;
	ereport(PANIC,
			(errcode_for_file_access(),
			 errmsg(msg, name)));
}

/*
 * A file of the WAL, open for AioWalSyncNow(), or -1 if nothing is synced; with
 * WALWriteLock held.
 *
 * If it cannot be written back, the kernel tells all who have the file open
 * when the first of them is told, and nobody who opens it later.  Unless it is
 * open before the next sync can begin, that one may be told and be about to
 * PANIC, while ours succeeds and what is lost counts as flushed.
 */
int
AioWalFileToSync(XLogSegNo segno, TimeLineID tli)
{
	int			fd;

	if (!enableFsync)
		return -1;
	fd = AioWalFile(segno, tli, false);
	if (fd < 0)
		panic_sync(segno, tli, _("could not open file \"%s\": %m"));
	return fd;
}

/*
 * Have what was written to a file synced, and wait for it: also what was
 * written while wal_sync_method was another.
 */
void
AioWalSyncNow(int fd, XLogSegNo segno, TimeLineID tli)
{
	if (fd < 0)
		return;
	if (!AioWalMethodSyncsWrites(wal_sync_method))
		issue_xlog_fsync(fd, segno, tli);
	else if (AioWalFdatasync(fd) != 0)
		panic_sync(segno, tli, _("could not fdatasync file \"%s\": %m"));
}

/*
 * Start to write, with a handle that the caller has acquired: AioWalSubmit()
 * says more.  'fd' is that of AioWalFile().
 */
void
AioWalStartWrite(PgAioHandle *ioh, int fd, XLogSegNo segno, TimeLineID tli,
				 char *from, Size nbytes, uint32 offset, uint64 number)
{
	AioWalTarget target;

	Assert(offset % XLOG_BLCKSZ == 0 && nbytes % XLOG_BLCKSZ == 0);
	Assert(offset + nbytes <= (Size) wal_segment_size);
	target.segno_high = segno >> 32;
	target.segno_low = (uint32) segno;
	target.tli = tli;
	target.sync_method = wal_sync_method;
	AioWalSubmit(ioh, fd, &target, from, nbytes, offset, number);
}

/*
 * Write what a write in flight has left, in the process that completes it,
 * which has not opened the file.
 */
static void
write_rest(const AioWalTarget *target, const char *from, Size nbytes,
		   uint32 offset)
{
	XLogSegNo	segno = AioWalTargetSegment(target);
	int			fd = AioWalOpenSegment(segno, target->tli, target->sync_method,
									   false);

	if (fd < 0)
		panic_write(segno, target->tli, offset, nbytes, errno);
	AioWalWriteNow(fd, segno, target->tli, from, nbytes, offset);
	AioWalCloseReopened(fd);
}

/*
 * A write in flight has ended, with a number of bytes or an error that is
 * negative: see to it that all of it is written, or PANIC.
 */
void
AioWalEndWrite(const AioWalTarget *target, const char *from, Size nbytes,
			   uint32 offset, int result)
{
	Assert(CritSectionCount > 0);
	Assert(result <= (int) nbytes);

	/* whose sync may have failed must not be told that the next one did not */
	if (result < 0 && result != -EINTR && result != -EAGAIN &&
		result != -ECANCELED && result != -ENOENT &&
		AioWalMethodSyncsWrites(target->sync_method))
		panic_write(AioWalTargetSegment(target), target->tli, offset, nbytes,
					-result);

	/*
	 * Cut short, not begun, or failed: either it can be written now or we
	 * learn why not.  (Some file systems call it EIO if an asynchronous write
	 * is cut short.)
	 */
	if (result < 0 || (Size) result < nbytes)
	{
		Size		done = Max(result, 0);

		write_rest(target, from + done, nbytes - done, offset + done);
	}
}
