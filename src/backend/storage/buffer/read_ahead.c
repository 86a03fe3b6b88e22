/*-------------------------------------------------------------------------
 *
 * read_ahead.c
 *	  Begin to read pages that somebody will ask for, and do not wait for them.
 *
 * Neighbouring pages may be read by one I/O.  A page is read into shared
 * buffers, as by anybody who reads it.  Nobody keeps a pin: while the read is
 * in flight it has one itself, and afterwards the page is in memory like any
 * other, until its buffer is needed.  Whether the read has failed is found out
 * by whoever asks for the page, since that one has to read it again.
 *
 * INVARIANT-76: what describes a read belongs to it alone while it is being
 * begun, and until it is complete.  A task that begins one may have to write a
 * victim's page first, and be suspended, while its siblings begin theirs.
 *
 * Locks:     none may be held that the reading of a page would wait for.
 * Suspends:  when a page has to be written to make room.
 * Tests:     src/test/aio/lookup, src/test/aio/replay.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "aio/block.h"
#include "aio/io_internal.h"
#include "aio/quick_io.h"
#include "aio/read.h"
#include "lib/ilist.h"
#include "storage/aio.h"
#include "storage/buf_internals.h"
#include "storage/bufmgr.h"
#include "utils/memutils.h"
#include "utils/rel.h"

/*
 * A read.  Upstream writes its result here, unless the resource owner in which
 * it was begun has gone, so this is never freed, but used again.
 */
typedef struct PageRead
{
	dlist_node	node;			/* in one of the lists */
	ReadBuffersOperation operation;
	Buffer		buffers[MAX_IO_COMBINE_LIMIT];
	int			npages;			/* that count in pages_in_flight */
} PageRead;

/*
 * Those that are being begun, or were when an error was raised or their task
 * was dropped; those that have begun and are not known to be complete, in this
 * order; and those that are unused.
 */
static dclist_head beginning = DCLIST_STATIC_INIT(beginning);
static dclist_head in_flight = DCLIST_STATIC_INIT(in_flight);
static dclist_head unused = DCLIST_STATIC_INIT(unused);

/* pages of those in flight */
static int	pages_in_flight = 0;

bool		aio_reading_ahead = false;

bool		aio_read_ahead_used = false;

/* The buffer of a page that is in memory or on its way, or -1. */
static inline int
find_buffer(const RelFileLocator *rlocator, BlockNumber block)
{
	BufferTag	tag;
	uint32		hash;
	LWLock	   *lock;
	int			buf_id;

	InitBufferTag(&tag, rlocator, MAIN_FORKNUM, block);
	hash = BufTableHashCode(&tag);
	lock = BufMappingPartitionLock(hash);
	LWLockAcquire(lock, LW_SHARED);
	buf_id = BufTableLookup(&tag, hash);
	LWLockRelease(lock);
	return buf_id;
}

/* Is this page of a relation's main fork in memory?  It may go at any time. */
bool
AioPageIsHere(Relation rel, BlockNumber block)
{
	int			buf_id = find_buffer(&rel->rd_locator, block);

	return buf_id >= 0 &&
		(pg_atomic_read_u32(&GetBufferDescriptor(buf_id)->state) & BM_VALID) != 0;
}

/*
 * The buffer of a page of a file's main fork that is in memory, or being read,
 * or InvalidBuffer.  It may be another page's by the time it is looked at.
 */
Buffer
AioFindPage(const RelFileLocator *rlocator, BlockNumber block)
{
	return find_buffer(rlocator, block) + 1;
}

static bool
is_complete(PageRead *read)
{
	return !pgaio_wref_valid(&read->operation.io_wref) ||
		pgaio_wref_check_done(&read->operation.io_wref);
}

/* Reads that are complete are in flight no more. */
static void
sweep(void)
{
	dlist_mutable_iter iter;

	AioReadReap();
	dclist_foreach_modify(iter, &in_flight)
	{
		PageRead   *read = dclist_container(PageRead, node, iter.cur);

		if (!is_complete(read))
			continue;
		pages_in_flight -= read->npages;
		dclist_delete_from(&in_flight, &read->node);
		dclist_push_tail(&unused, &read->node);
	}
}

/* Are as many reads, or pages, in flight as may be? */
static bool
is_full(int max_ios, int max_pages)
{
	uint32		max = Max(io_max_concurrency - io_max_concurrency / 8, 1);

	max = Min(max, (uint32) max_ios);
	if (dclist_count(&in_flight) < max && pages_in_flight < max_pages)
		return false;
	sweep();
	return dclist_count(&in_flight) >= max || pages_in_flight >= max_pages;
}

/* One that can be used. */
static PageRead *
get_read(void)
{
	PageRead   *read;

	if (dclist_is_empty(&unused))
		read = MemoryContextAlloc(TopMemoryContext, sizeof(PageRead));
	else
		read = dclist_container(PageRead, node, dclist_pop_head_node(&unused));
	dclist_push_tail(&beginning, &read->node);
	return read;
}

/* How many of these pages can one I/O read?  0 if the first one is here. */
static int
count_combined(const RelFileLocator *rlocator, BlockNumber block, int nblocks)
{
	int			max = Min(nblocks, io_combine_limit);
	int			n = 0;

	/* all of them are pinned at a time */
	if (max > 1)
		max = Max(Min(max, (int) GetAdditionalPinLimit()), 1);
	while (n < max && find_buffer(rlocator, block + n) < 0)
		n++;
	return n;
}

/*
 * Begin to read neighbouring pages that are not in memory by one I/O, if so
 * much may be in flight.  Returns of how many it has begun to read, at most
 * 'n', or 0.  The buffers are told, but not pinned.
 */
static int
begin_read(Relation rel, SMgrRelation smgr, char persistence,
		   BlockNumber block, int n, Buffer *buffers)
{
	PageRead   *read;
	int			begun = n;

	Assert(io_method != IOMETHOD_SYNC);
	Assert(n > 0);

	read = get_read();
	pgaio_wref_clear(&read->operation.io_wref);
	read->operation.rel = rel;
	read->operation.smgr = smgr;
	read->operation.persistence = persistence;
	read->operation.forknum = MAIN_FORKNUM;
	read->operation.strategy = NULL;
	for (int i = 0; i < n; i++)
		read->buffers[i] = InvalidBuffer;
	AioBatchOpen();
	aio_reading_ahead = true;
	PG_TRY();
	{
		if (!StartReadBuffers(&read->operation, read->buffers, block, &begun, 0))
			pgaio_wref_clear(&read->operation.io_wref);
	}
	PG_FINALLY();
	{
		aio_reading_ahead = false;
	}
	PG_END_TRY();

	/* pages that the I/O does not cover may be pinned, too */
	for (int i = 0; i < n; i++)
	{
		if (BufferIsValid(read->buffers[i]))
			ReleaseBuffer(read->buffers[i]);
		if (buffers != NULL)
			buffers[i] = read->buffers[i];
	}
	dclist_delete_from(&beginning, &read->node);
	dclist_push_tail(&in_flight, &read->node);
	read->npages = begun;
	pages_in_flight += begun;
	AioBatchConsider();
	return begun;
}

/*
 * Begin to read neighbouring pages of a relation's main fork, which the caller
 * knows to exist, by one I/O.  *nblocks says how many are wanted, and
 * afterwards of how many the result tells what has become of them, at least one
 * unless it is AIO_READ_AHEAD_FULL.  The I/O is submitted by AioSubmitBatch()
 * at the latest, which the caller does not forget.
 *
 * Raises what reading a page raises before it waits: no buffer is free, no file
 * can be opened.
 */
AioReadAheadResult
AioReadAheadCombined(Relation rel, BlockNumber block, int *nblocks)
{
	int			n = count_combined(&rel->rd_locator, block, *nblocks);

	Assert(!RelationUsesLocalBuffers(rel));

	*nblocks = 1;
	if (n == 0)
		return AIO_READ_AHEAD_HERE;

	/* to begin the read would take longer than to wait for it */
	if (n == 1 && AioWillBeQuick(rel->rd_locator.spcOid))
		return AIO_READ_AHEAD_HERE;
	if (is_full(INT_MAX, INT_MAX))
		return AIO_READ_AHEAD_FULL;
	aio_read_ahead_used = true;
	*nblocks = begin_read(rel, RelationGetSmgr(rel), rel->rd_rel->relpersistence,
						  block, n, NULL);
	return AIO_READ_AHEAD_BEGUN;
}

/* Are so many I/Os in flight? */
bool
AioReadAheadIsFull(int max_ios)
{
	return is_full(max_ios, INT_MAX);
}

/*
 * AioReadAheadCombined() for who knows no relation but its file, as recovery
 * does: begin to read neighbouring pages of a permanent file's main fork, which
 * exist, at most MAX_IO_COMBINE_LIMIT of them.  Those that are in memory are
 * passed over.  'buffers' tells where the others will be, or InvalidBuffer; it
 * is a guess, as they are not pinned.
 *
 * Waits while 'max_ios' I/Os, or 'max_pages' pages, are in flight.  The I/Os
 * are submitted by AioSubmitBatch() at the latest.  Raises what
 * AioReadAheadCombined() raises.
 */
void
AioReadFileAhead(SMgrRelation smgr, BlockNumber block, int nblocks, int max_ios,
				 int max_pages, Buffer *buffers)
{
	const RelFileLocator *rlocator = &smgr->smgr_rlocator.locator;

	for (int i = 0; i < nblocks; i++)
		buffers[i] = InvalidBuffer;
	while (nblocks > 0)
	{
		int			n = count_combined(rlocator, block, nblocks);

		if (n == 0)
			n = 1;
		else if (is_full(max_ios, max_pages))
		{
			AioReadAheadWait();
			continue;
		}
		else
			n = begin_read(NULL, smgr, RELPERSISTENCE_PERMANENT, block,
						   Min(n, max_pages), buffers);
		block += n;
		buffers += n;
		nblocks -= n;
	}
}

/* AioReadAheadCombined(), of one page */
AioReadAheadResult
AioReadAhead(Relation rel, BlockNumber block)
{
	int			nblocks = 1;

	return AioReadAheadCombined(rel, block, &nblocks);
}

/*
 * As much is in flight as may be: submit what is not yet, and wait for the read
 * that was begun first, which is probably the one that is needed first.
 */
void
AioReadAheadWait(void)
{
	dlist_iter	iter;

	AioSubmitBatch();
	dclist_foreach(iter, &in_flight)
	{
		PageRead   *read = dclist_container(PageRead, node, iter.cur);
		PgAioWaitRef wref = read->operation.io_wref;

		if (is_complete(read))
			continue;
		pgaio_wref_wait(&wref);
		break;
	}
}

/* Begin to read the pages that are wanted; waits if too much is in flight. */
void
AioReadWanted(AioWantedPages *wanted)
{
	while (wanted->nblocks > 0)
	{
		int			n = wanted->nblocks;
		AioReadAheadResult result = is_full(INT_MAX, wanted->limit) ?
			AIO_READ_AHEAD_FULL :
			AioReadAheadCombined(wanted->rel, wanted->block, &n);

		if (result == AIO_READ_AHEAD_FULL)
		{
			AioReadAheadWait();
			continue;
		}
		if (result == AIO_READ_AHEAD_BEGUN)
			wanted->nbegun += n;
		wanted->block += n;
		wanted->nblocks -= n;
	}
}

/*
 * This page is wanted as well, if it is not the last one again.  Those that are
 * wanted already are read first, unless it is their neighbour.
 */
void
AioWantPage(AioWantedPages *wanted, BlockNumber block)
{
	BlockNumber next = wanted->block + wanted->nblocks;

	if (wanted->nblocks > 0 && block == next - 1)
		return;
	if (wanted->nblocks == 0 || block != next ||
		wanted->nblocks >= io_combine_limit)
	{
		AioReadWanted(wanted);
		wanted->block = block;
	}
	wanted->nblocks++;
}

/* Wait for all reads that have been begun. */
void
AioReadAheadWaitAll(void)
{
	AioSubmitBatch();
	while (!dclist_is_empty(&in_flight))
	{
		AioReadAheadWait();
		sweep();
	}
}

/*
 * The session is going to be idle, which means that no task is left, or to wait
 * for its client.  Nobody may ask for what it has begun to read, and until
 * somebody sees to its completion, the pin of the read is in VACUUM's way.
 */
void
AioEndReadAhead(bool idle)
{
	aio_read_ahead_used = false;
	AioReadAbandonAll();

	while (idle && !dclist_is_empty(&beginning))
		dclist_push_tail(&unused, dclist_pop_head_node(&beginning));
}
