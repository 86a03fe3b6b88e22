/*-------------------------------------------------------------------------
 *
 * bulk_write_internals.c
 *	  Included at the end of storage/smgr/bulk_write.c: write a new relation
 *	  without waiting.
 *
 * The pages that have been collected are given their place in the file first,
 * without writing to it, and are then written together.  With direct I/O
 * several such writes are in flight, and smgr_bulk_finish() waits for them.
 * With buffered I/O a write is a copy; the kernel is told early to bring the
 * copies to the disk, so that there is little left for fsync().
 *
 * Upholds INVARIANT-44.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "aio/write.h"
#include "miscadmin.h"
#include "port/pg_iovec.h"
#include "storage/aio_internal.h"
#include "storage/fd.h"
#include "storage/md.h"

/* fewer new blocks than this are not allocated but written by mdzeroextend() */
#define FALLOCATE_MIN	9

/* aio.bulk_flush_after, in pages */
int			aio_bulk_flush_after = 128;

/*
 * Start to write pages that are adjacent in one segment; returns how many of
 * them, which is 0 if there is no room for another write.
 */
static int
start_write(BulkWriteState *bulkstate, PendingWrite *pending, int n)
{
	BlockNumber first = pending[0].blkno;
	AioWrite   *write = AioWaitForWriteSlot();
	PgAioHandle *ioh = NULL;
	uint64		data[MAX_IO_COMBINE_LIMIT];
	int			pages[MAX_IO_COMBINE_LIMIT];
	uint32		offset;
	int			fd;

	Assert(n > 0 && first % RELSEG_SIZE + n <= RELSEG_SIZE);
	HOLD_INTERRUPTS();
	fd = mdfd(bulkstate->smgr, bulkstate->forknum, first, &offset);
	n = AioBounceBuffersGet(n, pages);
	if (n > 0)
		ioh = pgaio_io_acquire_nb(NULL, &write->ret);
	if (ioh == NULL)
	{
		for (int i = 0; i < n; i++)
			AioBounceBufferRelease(pages[i]);
		RESUME_INTERRUPTS();
		return 0;
	}
	for (int i = 0; i < n; i++)
	{
		char	   *page = AioBounceBuffer(pages[i]);

		memcpy(page, pending[i].buf->data, BLCKSZ);
		PageSetChecksumInplace((Page) page, first + i);
		data[i] = AioMakeHandleData(InvalidBuffer, pages[i]);
	}
	pgaio_io_get_wref(ioh, &write->wref);
	write->nbuffers = 0;
	AioIssueWrite(ioh, bulkstate->smgr, bulkstate->forknum, first, n, data,
				  true, fd, offset);
	AioSubmitWrite(bulkstate);
	RESUME_INTERRUPTS();
	return n;
}

/* Write pages that are adjacent in one segment, and wait for it. */
static void
write_and_wait(BulkWriteState *bulkstate, PendingWrite *pending, int n)
{
	const void *pages[MAX_PENDING_WRITES];

	Assert(n <= MAX_PENDING_WRITES);
	for (int i = 0; i < n; i++)
	{
		pages[i] = pending[i].buf->data;
		PageSetChecksumInplace((Page) pending[i].buf->data, pending[i].blkno);
	}
	smgrwritev(bulkstate->smgr, bulkstate->forknum, pending[0].blkno, pages, n,
			   true);
}

/*
 * Blocks from first to last have been written: have the kernel write what lies
 * aio.bulk_flush_after and more behind, in steps of that size.
 *
 * Only if the relation is not logged, since then the transaction syncs it in
 * the end.  Otherwise a checkpoint will, which has time.
 */
static void
flush_behind(BulkWriteState *bulkstate, BlockNumber first, BlockNumber last)
{
	BlockNumber step = aio_bulk_flush_after;

	if (step == 0 || bulkstate->use_wal || !enableFsync ||
		AioUsesDirectIO() ||
		SmgrIsTemp(bulkstate->smgr) || first / step == (last + 1) / step ||
		first < step)
		return;
	smgrwriteback(bulkstate->smgr, bulkstate->forknum,
				  (first / step - 1) * step, step);
}

/*
 * smgr_bulk_flush(): start to write the pages that are pending, which have been
 * sorted and logged.  Returns false if nothing has been done about them.
 *
 * Raises what extending and writing the file raise, and the errors of earlier
 * writes.
 */
bool
AioBulkFlush(BulkWriteState *bulkstate)
{
	int			npending = bulkstate->npending;
	PendingWrite *pending = bulkstate->pending_writes;
	BlockNumber nblocks = pending[npending - 1].blkno + 1;
	int			n;

	if (aio_write_behind == 0)
		return false;
	AioExpectBulkWrites();
	AioRaiseWriteError(bulkstate);

	if (nblocks > bulkstate->relsize)
	{
		BlockNumber new = nblocks - bulkstate->relsize;

		if (new < FALLOCATE_MIN || new > INT_MAX ||
			file_extend_method != FILE_EXTEND_METHOD_POSIX_FALLOCATE)
			return false;
		smgrzeroextend(bulkstate->smgr, bulkstate->forknum, bulkstate->relsize,
					   new, true);
		bulkstate->relsize = nblocks;
	}

	for (int i = 0; i < npending; i += n)
	{
		BlockNumber first = pending[i].blkno;
		int			limit = Min(io_combine_limit, npending - i);
		int			started;

		/* sorted, so that the last one has told where the file is to end */
		Assert(first < bulkstate->relsize);
		limit = Min(limit, RELSEG_SIZE - (int) (first % RELSEG_SIZE));
		for (n = 1; n < limit && pending[i + n].blkno == first + n; n++)
			 /* adjacent */ ;

		started = 0;
		if (AioWritesBehind() && !SmgrIsTemp(bulkstate->smgr))
			started = start_write(bulkstate, &pending[i], n);
		if (started > 0)
			n = started;
		else
			write_and_wait(bulkstate, &pending[i], n);
		flush_behind(bulkstate, first, first + n - 1);
	}
	for (int i = 0; i < npending; i++)
		pfree(pending[i].buf);
	bulkstate->npending = 0;
	return true;
}

/* smgr_bulk_finish(): wait for the writes; raises their errors */
void
AioBulkFinish(BulkWriteState *bulkstate)
{
	Assert(bulkstate->npending == 0);
	AioFinishWrites();
	Assert(aio_writes_in_flight == 0);
	AioRaiseWriteError(bulkstate);
}
