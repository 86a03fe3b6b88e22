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
 * Locks:     none may be held that the reading of a page would wait for.
 * Suspends:  never.
 * Tests:     src/test/aio/lookup.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "aio/block.h"
#include "aio/io_internal.h"
#include "aio/read.h"
#include "storage/aio.h"
#include "storage/buf_internals.h"
#include "storage/bufmgr.h"
#include "utils/memutils.h"
#include "utils/rel.h"

/*
 * A read in flight.  Upstream writes its result here, unless the resource owner
 * in which it was begun has gone, so this is never freed.
 */
typedef struct ReadInFlight
{
	ReadBuffersOperation operation;
	Buffer		buffers[MAX_IO_COMBINE_LIMIT];
	int			npages;			/* that count in pages_in_flight */
} ReadInFlight;

/* reads begun last; the oldest is where the next one goes */
static ReadInFlight *reads = NULL;
static int	nreads = 0;
static int	oldest = 0;

/* pages of reads that are not known to be complete */
static int	pages_in_flight = 0;

bool		aio_read_ahead_used = false;

/* The buffer of a page that is in memory or on its way, or -1. */
static int
find_buffer(Relation rel, BlockNumber block)
{
	BufferTag	tag;
	uint32		hash;
	LWLock	   *lock;
	int			buf_id;

	InitBufferTag(&tag, &rel->rd_locator, MAIN_FORKNUM, block);
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
	int			buf_id = find_buffer(rel, block);

	return buf_id >= 0 &&
		(pg_atomic_read_u32(&GetBufferDescriptor(buf_id)->state) & BM_VALID) != 0;
}

static bool
in_flight(ReadInFlight *read)
{
	return pgaio_wref_valid(&read->operation.io_wref) &&
		!pgaio_wref_check_done(&read->operation.io_wref);
}

/* This read is complete, or was never begun. */
static void
forget_read(ReadInFlight *read)
{
	pages_in_flight -= read->npages;
	read->npages = 0;
}

/* Where the next read goes, or NULL if too many are in flight. */
static ReadInFlight *
next_read(void)
{
	ReadInFlight *read;

	if (reads == NULL)
	{
		nreads = Max(io_max_concurrency - io_max_concurrency / 8, 1);
		reads = MemoryContextAllocZero(TopMemoryContext,
									   nreads * sizeof(ReadInFlight));
		for (int i = 0; i < nreads; i++)
			pgaio_wref_clear(&reads[i].operation.io_wref);
	}
	read = &reads[oldest];
	if (in_flight(read))
	{
		AioReadReap();
		if (in_flight(read))
			return NULL;
	}
	oldest = (oldest + 1) % nreads;
	forget_read(read);
	return read;
}

/* How many of these pages can one I/O read?  0 if the first one is here. */
static int
count_combined(Relation rel, BlockNumber block, int nblocks)
{
	int			max = Min(nblocks, io_combine_limit);
	int			n = 0;

	/* all of them are pinned at a time */
	if (max > 1)
		max = Max(Min(max, (int) GetAdditionalPinLimit()), 1);
	while (n < max && find_buffer(rel, block + n) < 0)
		n++;
	return n;
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
	ReadInFlight *read;
	int			n = count_combined(rel, block, *nblocks);
	int			begun = n;

	Assert(!RelationUsesLocalBuffers(rel));
	Assert(io_method != IOMETHOD_SYNC);

	*nblocks = 1;
	if (n == 0)
		return AIO_READ_AHEAD_HERE;
	read = next_read();
	if (read == NULL)
		return AIO_READ_AHEAD_FULL;

	pgaio_wref_clear(&read->operation.io_wref);
	read->operation.rel = rel;
	read->operation.smgr = RelationGetSmgr(rel);
	read->operation.persistence = rel->rd_rel->relpersistence;
	read->operation.forknum = MAIN_FORKNUM;
	read->operation.strategy = NULL;
	for (int i = 0; i < n; i++)
		read->buffers[i] = InvalidBuffer;
	aio_read_ahead_used = true;
	AioBatchOpen();
	if (!StartReadBuffers(&read->operation, read->buffers, block, &begun, 0))
		pgaio_wref_clear(&read->operation.io_wref);

	/* pages that the I/O does not cover may be pinned, too */
	for (int i = 0; i < n; i++)
	{
		if (BufferIsValid(read->buffers[i]))
			ReleaseBuffer(read->buffers[i]);
	}
	AioBatchConsider();
	read->npages = begun;
	pages_in_flight += begun;
	*nblocks = begun;
	return AIO_READ_AHEAD_BEGUN;
}

/* Likewise, one page. */
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
	AioSubmitBatch();
	for (int i = 0; i < nreads; i++)
	{
		ReadInFlight *read = &reads[(oldest + i) % nreads];

		if (!in_flight(read))
			continue;
		pgaio_wref_wait(&read->operation.io_wref);
		break;
	}
}

/* Are so many pages in flight? */
static bool
too_many_pages(int limit)
{
	if (pages_in_flight < limit)
		return false;
	AioReadReap();
	for (int i = 0; i < nreads; i++)
	{
		if (!in_flight(&reads[i]))
			forget_read(&reads[i]);
	}
	return pages_in_flight >= limit;
}

/* Begin to read the pages that are wanted; waits if too much is in flight. */
void
AioReadWanted(AioWantedPages *wanted)
{
	while (wanted->nblocks > 0)
	{
		int			n = wanted->nblocks;
		AioReadAheadResult result = too_many_pages(wanted->limit) ?
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
	for (int i = 0; i < nreads; i++)
	{
		PgAioWaitRef *wref = &reads[(oldest + i) % nreads].operation.io_wref;

		if (pgaio_wref_valid(wref))
			pgaio_wref_wait(wref);
	}
}

/*
 * The session is going to be idle, or to wait for its client.  Nobody may ask
 * for what it has begun to read, and until somebody sees to its completion, the
 * pin of the read is in VACUUM's way.
 */
void
AioEndReadAhead(void)
{
	aio_read_ahead_used = false;
	AioReadAbandonAll();
}
