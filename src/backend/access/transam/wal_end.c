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
 * They are erased from the last one to the first, so that what a crash has us
 * do again finds those that are left.
 *
 * Fewer than aio_wal_span bytes are in flight at a time, so a hole that is left
 * when processes are killed is not longer, and the search ends so far behind
 * the end, or behind the last page that it has found.  What comes farther
 * behind are segments that have been made in advance, and have never been
 * written by these names: if they were other segments once, their pages say so.
 *
 * Recovery has synced all files of the data directory before, so pages that an
 * earlier search has zeroed are zero on disk.
 *
 * Runs in the startup process, or in a standalone one.  What this needs of the
 * server is in wal_port.h, so that the simulator runs it without one.
 *
 * Tests: src/test/aio/wal/t/007_behind_end.pl.
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
	char	   *content;		/* of a chunk */
	char	   *zeros;			/* a page of them */
	int			fd;				/* of the segment, -1 if none is open */
	XLogSegNo	segno;			/* last looked for */
	bool		changed;		/* it is to be synced */
	XLogRecPtr	first;			/* page that has been erased, */
	int			npages;			/* and how many have been */
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

/*
 * Read what there is from 'from' on, which is in one segment, up to 'upto'.
 * Returns how many bytes, or -1 if they cannot be read.
 */
static ssize_t
read_chunk(OldWal *old, XLogRecPtr from, XLogRecPtr upto)
{
	XLogSegNo	segno;

	XLByteToSeg(from, segno, wal_segment_size);
	if (segno != old->segno)
	{
		close_segment(old);
		old->segno = segno;
		old->fd = AioWalOpenOld(segno, old->tli);
	}
	if (old->fd < 0)
		return 0;
	return AioWalPread(old->fd, old->content, upto - from,
					   XLogSegmentOffset(from, wal_segment_size));
}

/* Where the chunk ends that begins with 'from'. */
static XLogRecPtr
chunk_end(XLogRecPtr from)
{
	return from + Min(CHUNK, wal_segment_size - XLogSegmentOffset(from, wal_segment_size));
}

/* Where the chunk begins that ends with 'upto', and not before 'start'. */
static XLogRecPtr
chunk_start(XLogRecPtr upto, XLogRecPtr start)
{
	uint32		length = XLogSegmentOffset(upto - 1, wal_segment_size) + 1;

	return Max(start, upto - Min(CHUNK, length));
}

/* Could recovery take this page for WAL?  Nobody knows if it is illegible. */
static bool
is_old(const OldWal *old, XLogRecPtr from, ssize_t nread, XLogRecPtr page)
{
	if (nread < 0)
		return old->fd >= 0;
	return page + XLOG_BLCKSZ <= from + nread &&
		AioWalPageIs(old->content + (page - from), page);
}

/* Where the last of them ends, from 'start' on; 'start' if there are none. */
static XLogRecPtr
find_last(OldWal *old, XLogRecPtr start)
{
	XLogRecPtr	last = start;
	XLogRecPtr	next;

	for (XLogRecPtr from = start; from < last + aio_wal_span; from = next)
	{
		ssize_t		nread;

		next = chunk_end(from);
		nread = read_chunk(old, from, next);
		for (XLogRecPtr page = from; page < next; page += XLOG_BLCKSZ)
		{
			if (is_old(old, from, nread, page))
				last = page + XLOG_BLCKSZ;
		}
	}
	return last;
}

static void
zero(OldWal *old, XLogRecPtr from, Size nbytes)
{
	AioWalWriteNow(old->fd, old->segno, old->tli, old->zeros, nbytes,
				   XLogSegmentOffset(from, wal_segment_size));
	old->changed = true;
}

static void
erase_chunk(OldWal *old, XLogRecPtr from, XLogRecPtr upto)
{
	ssize_t		nread = read_chunk(old, from, upto);

	for (XLogRecPtr page = upto - XLOG_BLCKSZ;; page -= XLOG_BLCKSZ)
	{
		if (is_old(old, from, nread, page))
		{
			zero(old, page, XLOG_BLCKSZ);
			old->first = page;
			old->npages++;
		}
		if (page == from)
			break;
	}
}

/* The rest of the page that WAL ends in, which is written again as a whole. */
static void
erase_rest(OldWal *old, XLogRecPtr end, XLogRecPtr page_end)
{
	ssize_t		nread = read_chunk(old, end, page_end);

	if (nread < 0 ? old->fd >= 0 : memcmp(old->content, old->zeros, nread) != 0)
		zero(old, end, nread < 0 ? page_end - end : (Size) nread);
}

/*
 * WAL has been replayed up to 'end', and will be inserted there, into this
 * timeline: erase what is behind.  An error is a PANIC, as wherever WAL is
 * written; what cannot be read is erased.
 */
void
AioEraseWalBehind(XLogRecPtr end, TimeLineID tli)
{
	XLogRecPtr	start = end + (XLOG_BLCKSZ - 1) - (end + (XLOG_BLCKSZ - 1)) % XLOG_BLCKSZ;
	OldWal		old = {.tli = tli,.fd = -1};
	XLogRecPtr	last;

	old.content = palloc(CHUNK);
	old.zeros = palloc0(XLOG_BLCKSZ);
	last = find_last(&old, start);
	for (XLogRecPtr upto = last; upto > start;)
	{
		XLogRecPtr	from = chunk_start(upto, start);

		erase_chunk(&old, from, upto);
		upto = from;
	}
	if (end < start)
		erase_rest(&old, end, start);
	close_segment(&old);
	if (old.npages > 0)
		AioWalTellErased(end, old.first, last, old.npages);
	pfree(old.zeros);
	pfree(old.content);
}
