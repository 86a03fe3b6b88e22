/*-------------------------------------------------------------------------
 *
 * wal_end.c
 *	  Nothing is left behind the end of WAL when recovery ends.
 *
 * Writes of WAL are completed in any order.  After a crash some may be missing,
 * and later ones not: recovery ends at the hole, and behind that there are
 * pages which are where they belong.  New WAL would come up to such a page, and
 * if the server crashed just then, recovery might take it for what follows: it
 * asks that the page says where it is, and that its first record says where the
 * record before begins, which is so if that one is as long as its predecessor
 * in that place was.  So these pages are zeroed, and synced, before new WAL is
 * inserted.
 *
 * INVARIANT-86: when recovery has ended, and before anything is inserted, there
 * is on disk no page behind the end of WAL that says that it is where it is.
 * All is erased from the last one to the end, in this order, so that what a
 * crash has us do again finds what is left.  Between them there may be pages of
 * which the beginning alone is missing.
 *
 * Fewer than aio_wal_span bytes are written that have not been flushed (wal.c),
 * or less than a segment where upstream writes WAL.  So a hole that is left
 * when processes are killed, or when power is lost, is not longer, and the
 * search ends so far behind the end, or behind the last page that it has found.
 * What comes farther behind are segments that have been made in advance, and
 * have never been written by these names: if they were other segments once,
 * their pages say so.
 *
 * Recovery has synced all files of the data directory before, so pages that an
 * earlier search has zeroed are zero on disk.
 *
 * Runs in the startup process, or in a standalone one.  What this needs of the
 * server is in wal_port.h, so that the simulator runs it without one.
 *
 * Tests: src/test/aio/wal/t/007_behind_end.pl,
 *		  src/test/simulate/wal_pipeline.c.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xlog.h"
#include "access/xlog_internal.h"
#include "aio/wal.h"
#include "utils/palloc.h"
#include "wal_internal.h"

/* how much is read at a time */
#define CHUNK	(32 * XLOG_BLCKSZ)

typedef struct OldWal
{
	TimeLineID	tli;
	char	   *chunk;			/* its content, then zeros */
	int			fd;				/* of the segment, -1 if there is none */
	XLogSegNo	segno;			/* 0 at first */
	bool		changed;		/* it is to be synced */
	XLogRecPtr	first;			/* page that has been found, */
	XLogRecPtr	last;			/* where the last one ends, */
	int			npages;			/* and how many there are */
} OldWal;

static void
close_segment(OldWal *old)
{
	if (old->fd < 0)
		return;
	if (old->changed)
		AioWalSyncNow(old->fd, old->segno, old->tli);
	old->changed = false;
	AioWalCloseReopened(old->fd);
	old->fd = -1;
}

/* Have the file open that holds this; returns false if there is none. */
static bool
open_segment(OldWal *old, XLogRecPtr ptr)
{
	XLogSegNo	segno;

	XLByteToSeg(ptr, segno, wal_segment_size);
	if (segno != old->segno)
	{
		close_segment(old);
		old->segno = segno;
		old->fd = AioWalOpenOld(segno, old->tli);
	}
	return old->fd >= 0;
}

/*
 * Note pages of this chunk that recovery could take for WAL, or perhaps could
 * if they cannot be read.
 */
static void
search_chunk(OldWal *old, XLogRecPtr from, XLogRecPtr upto)
{
	ssize_t		nread;

	if (!open_segment(old, from))
		return;
	nread = AioWalPread(old->fd, old->chunk, upto - from,
						XLogSegmentOffset(from, wal_segment_size));
	for (XLogRecPtr page = from; page < upto; page += XLOG_BLCKSZ)
	{
		if (nread >= 0 &&
			(page + XLOG_BLCKSZ > from + nread ||
			 !AioWalPageIs(old->chunk + (page - from), page)))
			continue;
		if (old->npages++ == 0)
			old->first = page;
		old->last = page + XLOG_BLCKSZ;
	}
}

/* Find out how far they reach, from the page on that begins behind the end. */
static void
search(OldWal *old, XLogRecPtr end)
{
	uint64		span = Max(aio_wal_span, (uint64) wal_segment_size);
	XLogRecPtr	next;

	old->last = end;
	if (end % XLOG_BLCKSZ != 0)
		old->last += XLOG_BLCKSZ - end % XLOG_BLCKSZ;
	for (XLogRecPtr from = old->last; from < old->last + span; from = next)
	{
		next = from + Min(CHUNK, wal_segment_size - XLogSegmentOffset(from, wal_segment_size));
		search_chunk(old, from, next);
	}
}

/* Zero what there is between, the last first. */
static void
erase(OldWal *old, XLogRecPtr end)
{
	XLogRecPtr	from;

	memset(old->chunk, 0, CHUNK);
	for (XLogRecPtr upto = old->last; upto > end; upto = from)
	{
		Size		nbytes = XLogSegmentOffset(upto - 1, wal_segment_size) + 1;

		from = Max(end, upto - Min(CHUNK, nbytes));
		if (!open_segment(old, from))
			continue;
		AioWalWriteNow(old->fd, old->segno, old->tli, old->chunk, upto - from,
					   XLogSegmentOffset(from, wal_segment_size));
		old->changed = true;
	}
	close_segment(old);
}

/*
 * WAL has been replayed up to 'end', and will be inserted there, into this
 * timeline: erase what is behind, at least to the end of the page.  An error is
 * a PANIC, as wherever WAL is written; what cannot be read is erased.
 */
void
AioEraseWalBehind(XLogRecPtr end, TimeLineID tli)
{
	OldWal		old = {.tli = tli,.fd = -1};

	old.chunk = palloc(CHUNK);
	search(&old, end);
	erase(&old, end);
	if (old.npages > 0)
		AioWalTellErased(end, old.first, old.last, old.npages);
	pfree(old.chunk);
}
