/*-------------------------------------------------------------------------
 *
 * xlog_internals.c
 *	  Included at the end of access/transam/xlog.c: the WAL buffers, and how
 *	  far they have been filled, written and flushed, for our pipeline of
 *	  writes.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "aio/pgstat_aio.h"
#include "wal_port.h"

/* How far WAL has been written and flushed; this process knows it, then. */
void
AioWalResult(XLogRecPtr *written, XLogRecPtr *flushed)
{
	RefreshXLogWriteResult(LogwrtResult);
	*written = LogwrtResult.Write;
	*flushed = LogwrtResult.Flush;
}

/*
 * WAL has been written and flushed so far, if that is farther than was known.
 * The flushed position never leads: it is set last, and read first.
 */
void
AioWalAdvance(XLogRecPtr written, XLogRecPtr flushed)
{
	Assert(flushed <= written);
	Assert(written <= pg_atomic_read_u64(&XLogCtl->logInsertResult));
	pg_atomic_monotonic_advance_u64(&XLogCtl->logWriteResult, written);
	pg_atomic_monotonic_advance_u64(&XLogCtl->logFlushResult, flushed);
}

/* How far somebody has asked for WAL to be written. */
XLogRecPtr
AioWalRequest(void)
{
	XLogRecPtr	request;

	SpinLockAcquire(&XLogCtl->info_lck);
	request = XLogCtl->LogwrtRqst.Write;
	SpinLockRelease(&XLogCtl->info_lck);
	return request;
}

/* Up to here, at least, the buffers have been filled. */
XLogRecPtr
AioWalInserted(void)
{
	return pg_atomic_read_membarrier_u64(&XLogCtl->logInsertResult);
}

/*
 * Wait until they have been filled up to here; returns how far they have.  Not
 * with WALWriteLock held, which others may need to go on with an insertion.
 */
XLogRecPtr
AioWalWaitForInsertions(XLogRecPtr upto)
{
	return WaitXLogInsertionsToFinish(upto);
}

/*
 * The buffers that hold WAL from 'page' on, the start of a page, and how many
 * bytes of whole pages there are in a row, up to the page that holds the last
 * byte before 'end'.
 */
char *
AioWalBuffers(XLogRecPtr page, XLogRecPtr end, Size *nbytes)
{
	int			idx = XLogRecPtrToBufIdx(page);
	int			npages = 0;

	Assert(page % XLOG_BLCKSZ == 0 && page < end);
	for (XLogRecPtr next = page; next < end; next += XLOG_BLCKSZ)
	{
		XLogRecPtr	page_end;

		if (idx + npages > XLogCtl->XLogCacheBlck)
			break;
		page_end = pg_atomic_read_u64(&XLogCtl->xlblocks[idx + npages]);
		if (page_end != next + XLOG_BLCKSZ)
			elog(PANIC, "xlog write request %X/%X is past end of log %X/%X",
				 LSN_FORMAT_ARGS(next), LSN_FORMAT_ARGS(page_end));
		npages++;
	}
	*nbytes = npages * (Size) XLOG_BLCKSZ;
	return XLogCtl->pages + idx * (Size) XLOG_BLCKSZ;
}

/* number of WAL buffers */
int
AioWalBufferPages(void)
{
	return XLogCtl->XLogCacheBlck + 1;
}

/*
 * Open a segment as a wal_sync_method wants it; -1 and errno if that fails.
 * If there are too many open files, others may be closed for it, and that may
 * wait for I/O: not while I/O is completed.
 */
int
AioWalOpenSegment(XLogSegNo segno, TimeLineID tli, int sync_method,
				  bool may_wait)
{
	char		path[MAXPGPATH];
	int			flags = O_RDWR | PG_BINARY | O_CLOEXEC | get_sync_bit(sync_method);

	XLogFilePath(path, tli, segno, wal_segment_size);
	return may_wait ? BasicOpenFile(path, flags) : open(path, flags);
}

/*
 * Make a segment exist that will be needed soon.  Raises what creating it
 * raises.
 */
void
AioWalCreateSegment(XLogSegNo segno, TimeLineID tli)
{
	char		path[MAXPGPATH];
	bool		added;
	int			fd;

	/* as upstream, when it does this ahead of a need */
	if (!XLogCtl->InstallXLogFileSegmentActive)
		return;
	fd = XLogFileInitInternal(segno, tli, &added, path);
	if (fd >= 0)
		close(fd);
}

/*
 * What is to be done when all of a segment has been flushed.  With
 * WALWriteLock held.
 */
void
AioWalSegmentFinished(XLogSegNo segno, TimeLineID tli)
{
	if (XLogArchivingActive())
		XLogArchiveNotifySeg(segno, tli);

	XLogCtl->lastSegSwitchTime = (pg_time_t) time(NULL);
	XLogSegNoOffsetToRecPtr(segno + 1, 0, wal_segment_size,
							XLogCtl->lastSegSwitchLSN);

	/* the local copy of the redo pointer may be old: look twice */
	if (XLogCheckpointNeeded(segno))
	{
		(void) GetRedoRecPtr();
		if (XLogCheckpointNeeded(segno))
			RequestCheckpoint(CHECKPOINT_CAUSE_XLOG);
	}
}

/* The timeline into which WAL is inserted. */
TimeLineID
AioWalTimeLine(void)
{
	return XLogCtl->InsertTimeLineID;
}

/* The last checkpoint or restartpoint that pg_control knows of. */
XLogRecPtr
AioLastCheckpoint(void)
{
	XLogRecPtr	checkpoint;

	LWLockAcquire(ControlFileLock, LW_SHARED);
	checkpoint = ControlFile->checkPoint;
	LWLockRelease(ControlFileLock);
	return checkpoint;
}
