/*-------------------------------------------------------------------------
 *
 * bufmgr_internals.c
 *	  Included at the end of storage/buffer/bufmgr.c: write buffers without
 *	  waiting.
 *
 * What FlushBuffer() does, in two parts: AioStartWrite() does everything up to
 * the write itself, and AioEndWrite() everything after it, whenever and in
 * whichever process that is.  In between the buffer has an I/O in progress and
 * a pin that belongs to the I/O, but no lock.
 *
 * Upholds INVARIANT-40.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "aio/io_internal.h"
#include "aio/quick_io.h"
#include "aio/read.h"
#include "aio/write.h"
#include "storage/aio_internal.h"
#include "storage/latch.h"
#include "storage/md.h"
#include "utils/injection_point.h"

/*
 * Mark a dirty buffer as being written, if it can be written now.  It is pinned
 * and share-locked.
 *
 * The write of a buffer that somebody wants to have alone is not begun: he
 * might have to wait until we look at our I/O again.
 */
static AioStartWriteResult
begin_page(BufferDesc *buf)
{
	uint32		buf_state;
	XLogRecPtr	lsn;

	Assert(GetPrivateRefCount(BufferDescriptorGetBuffer(buf)) > 0);
	Assert(LWLockHeldByMe(BufferDescriptorGetContentLock(buf)));
	if (pg_atomic_read_u32(&buf->state) & (BM_IO_ERROR | BM_PIN_COUNT_WAITER))
		return AIO_WRITE_IMPOSSIBLE;
	if (!StartBufferIO(buf, false, true))
		return AIO_WRITE_NOT_NOW;

	/* from here on, whoever changes it says so */
	buf_state = LockBufHdr(buf);
	lsn = BufferGetLSN(buf);
	buf_state &= ~BM_JUST_DIRTIED;
	UnlockBufHdr(buf, buf_state);

	/* who has come to want it alone before that has seen no write */
	if (buf_state & BM_PIN_COUNT_WAITER)
	{
		TerminateBufferIO(buf, false, 0, true, false);
		return AIO_WRITE_IMPOSSIBLE;
	}
	if ((buf_state & BM_PERMANENT) && XLogNeedsFlush(lsn))
	{
		TerminateBufferIO(buf, false, 0, true, false);
		return AIO_WRITE_WAL_FIRST;
	}
	return AIO_WRITE_STARTED;
}

static bool
is_wanted(uint32 buf_state, AioNeighbours which)
{
	if ((buf_state & (BM_VALID | BM_DIRTY | BM_IO_IN_PROGRESS | BM_IO_ERROR)) !=
		(BM_VALID | BM_DIRTY))
		return false;

	switch (which)
	{
		case AIO_NEIGHBOURS_UNUSED:
			return BUF_STATE_GET_REFCOUNT(buf_state) == 0 &&
				BUF_STATE_GET_USAGECOUNT(buf_state) == 0;
		case AIO_NEIGHBOURS_RING:
			return BUF_STATE_GET_REFCOUNT(buf_state) == 0 &&
				BUF_STATE_GET_USAGECOUNT(buf_state) <= 1;
		case AIO_NEIGHBOURS_CHECKPOINT:
			return (buf_state & BM_CHECKPOINT_NEEDED) != 0;
		case AIO_NEIGHBOURS_DIRTY:
			return true;
	}
	return false;
}

/*
 * The buffer of a page, pinned, share-locked and marked as being written; or
 * NULL if it should not be written, or not without waiting.
 */
static BufferDesc *
begin_neighbour(BufferTag *tag, AioNeighbours which)
{
	uint32		hash = BufTableHashCode(tag);
	LWLock	   *partition = BufMappingPartitionLock(hash);
	BufferDesc *buf;
	uint32		buf_state;
	int			id;

	ReservePrivateRefCountEntry();
	ResourceOwnerEnlarge(CurrentResourceOwner);

	if (!LWLockConditionalAcquire(partition, LW_SHARED))
		return NULL;
	id = BufTableLookup(tag, hash);
	buf = id >= 0 ? GetBufferDescriptor(id) : NULL;
	if (buf == NULL || !is_wanted(pg_atomic_read_u32(&buf->state), which))
	{
		LWLockRelease(partition);
		return NULL;
	}
	buf_state = LockBufHdr(buf);
	if (!is_wanted(buf_state, which))
	{
		UnlockBufHdr(buf, buf_state);
		LWLockRelease(partition);
		return NULL;
	}
	PinBuffer_Locked(buf);
	LWLockRelease(partition);

	if (LWLockConditionalAcquire(BufferDescriptorGetContentLock(buf), LW_SHARED))
	{
		if (begin_page(buf) == AIO_WRITE_STARTED)
			return buf;
		LWLockRelease(BufferDescriptorGetContentLock(buf));
	}
	UnpinBuffer(buf);
	return NULL;
}

/* Release a lock and a pin that begin_neighbour() took. */
static void
release_neighbour(Buffer buffer)
{
	BufferDesc *buf = GetBufferDescriptor(buffer - 1);

	LWLockRelease(BufferDescriptorGetContentLock(buf));
	UnpinBuffer(buf);
}

/*
 * Describe a write of a buffer that has been begun, and begin its neighbours.
 * Returns which of its buffers is the first one.
 */
static int
begin_neighbours(BufferDesc *buf, AioNeighbours which, AioWrite *write)
{
	Buffer		before[MAX_IO_COMBINE_LIMIT];
	int			nbefore = 0;
	int			limit = Min(io_combine_limit, MAX_IO_COMBINE_LIMIT);
	BufferDesc *neighbour;
	BufferTag	tag = buf->tag;

	/*
	 * Victims come in any order.  Others come in the order of their blocks:
	 * what is before them has been written.
	 */
	while (which == AIO_NEIGHBOURS_UNUSED && nbefore < limit - 1 &&
		   tag.blockNum % RELSEG_SIZE != 0)
	{
		tag.blockNum--;
		neighbour = begin_neighbour(&tag, which);
		if (neighbour == NULL)
			break;
		before[nbefore++] = BufferDescriptorGetBuffer(neighbour);
	}

	write->tag = buf->tag;
	write->tag.blockNum -= nbefore;
	write->nbuffers = 0;
	while (write->nbuffers < nbefore)
	{
		write->buffers[write->nbuffers] = before[nbefore - 1 - write->nbuffers];
		write->nbuffers++;
	}
	write->buffers[write->nbuffers++] = BufferDescriptorGetBuffer(buf);

	tag = buf->tag;
	while (write->nbuffers < limit && ++tag.blockNum % RELSEG_SIZE != 0)
	{
		neighbour = begin_neighbour(&tag, which);
		if (neighbour == NULL)
			break;
		write->buffers[write->nbuffers++] = BufferDescriptorGetBuffer(neighbour);
	}
	return nbefore;
}

/*
 * Write fewer buffers than have been begun, or none.  Returns which of them is
 * the one at 'own' now.
 */
static int
give_up(AioWrite *write, int nbuffers, int own)
{
	Assert(nbuffers <= write->nbuffers);
	while (write->nbuffers > nbuffers)
	{
		bool		last = own < write->nbuffers - 1 || own == 0;
		Buffer		buffer = write->buffers[last ? write->nbuffers - 1 : 0];

		TerminateBufferIO(GetBufferDescriptor(buffer - 1), false, 0, true, false);
		write->nbuffers--;
		if (write->nbuffers > 0)
			release_neighbour(buffer);
		if (last)
			continue;
		memmove(write->buffers, &write->buffers[1],
				write->nbuffers * sizeof(Buffer));
		write->tag.blockNum++;
		own--;
	}
	return own;
}

/*
 * Start to write a buffer, and its neighbours in its file, up to
 * io_combine_limit in all.
 *
 * 'buf' is pinned and share-locked by the caller, who may release both at once.
 * *write is filled in, and must stay where it is until the write is complete.
 * The write is staged if the process is in AIO batch mode.
 *
 * Raises what opening the file raises; then nothing has been started.
 */
AioStartWriteResult
AioStartWrite(BufferDesc *buf, AioNeighbours which, IOContext io_context,
			  AioWrite *write)
{
	BlockNumber first = buf->tag.blockNum;
	int			own;
	ForkNumber	forknum = BufTagGetForkNum(&buf->tag);
	AioStartWriteResult result;
	PgAioHandle *ioh = NULL;
	SMgrRelation reln;
	uint64		data[MAX_IO_COMBINE_LIMIT];
	int			pages[MAX_IO_COMBINE_LIMIT];
	int			npages;
	uint32		offset;
	instr_time	io_start;
	int			fd;

	if (pgaio_my_backend->handed_out_io != NULL)
		return AIO_WRITE_IMPOSSIBLE;

	/* open the file before anything that would have to be undone */
	HOLD_INTERRUPTS();
	reln = smgropen(BufTagGetRelFileLocator(&buf->tag), INVALID_PROC_NUMBER);

	/*
	 * Recovery creates segments that are missing, and mdfd() does not.  They
	 * hardly ever are: the page was read from there, or the file extended.
	 */
	if (InRecovery && first >= (BlockNumber) RELSEG_SIZE &&
		first >= smgrnblocks(reln, forknum))
	{
		RESUME_INTERRUPTS();
		return AIO_WRITE_IMPOSSIBLE;
	}
	fd = mdfd(reln, forknum, first, &offset);

	result = begin_page(buf);
	if (result != AIO_WRITE_STARTED)
	{
		RESUME_INTERRUPTS();
		return result;
	}
	own = begin_neighbours(buf, which, write);
	write->io_context = io_context;

	/* nothing is raised from here on: nobody would give the pages back */
	npages = AioBounceBuffersGet(write->nbuffers, pages);
	if (npages > 0)
		ioh = pgaio_io_acquire_nb(NULL, &write->ret);
	own = give_up(write, ioh != NULL ? npages : 0, own);
	if (ioh == NULL)
	{
		for (int i = 0; i < npages; i++)
			AioBounceBufferRelease(pages[i]);
		RESUME_INTERRUPTS();
		return AIO_WRITE_IMPOSSIBLE;
	}

	first -= own;
	offset -= own * BLCKSZ;
	for (int i = 0; i < write->nbuffers; i++)
	{
		char	   *page = AioBounceBuffer(pages[i]);

		memcpy(page, BufferGetBlock(write->buffers[i]), BLCKSZ);
		PageSetChecksumInplace((Page) page, first + i);
		data[i] = AioMakeHandleData(write->buffers[i], pages[i]);
	}
	INJECTION_POINT("aio-page-copied", NULL);

	/* the checkpoint need not come to those again that follow */
	if (which == AIO_NEIGHBOURS_CHECKPOINT)
	{
		for (int i = 1; i < write->nbuffers; i++)
		{
			BufferDesc *neighbour = GetBufferDescriptor(write->buffers[i] - 1);
			uint32		buf_state = LockBufHdr(neighbour);

			buf_state &= ~BM_CHECKPOINT_NEEDED;
			UnlockBufHdr(neighbour, buf_state);
		}
		PendingCheckpointerStats.buffers_written += write->nbuffers - 1;
		CheckpointStats.ckpt_bufs_written += write->nbuffers - 1;
	}

	pgaio_io_get_wref(ioh, &write->wref);

	/*
	 * Checkpointer and background writer write one page after the other, and
	 * do nothing else meanwhile.
	 */
	if (!AioUsesDirectIO() ||
		(!AmCheckpointerProcess() && !AmBackgroundWriterProcess() &&
		 AioIsQuick(AIO_KIND_WRITE, write->tag.spcOid)))
	{
		/* it may take longer than expected */
		if (pgaio_my_backend->num_staged_ios > 0)
			pgaio_submit_staged();
		pgaio_io_set_flag(ioh, PGAIO_HF_SYNCHRONOUS);
	}
	io_start = pgstat_prepare_io_time(track_io_timing);
	AioIssueWrite(ioh, reln, forknum, first, write->nbuffers, data, false,
				  fd, offset);
	RESUME_INTERRUPTS();
	pgstat_count_io_op_time(IOOBJECT_RELATION, io_context, IOOP_WRITE,
							io_start, 1, write->nbuffers * BLCKSZ);
	pgBufferUsage.shared_blks_written += write->nbuffers;
	for (int i = 0; i < write->nbuffers; i++)
	{
		if (i != own)
			release_neighbour(write->buffers[i]);
	}
	return AIO_WRITE_STARTED;
}

/*
 * A buffer's I/O, which was in progress, is described now by its io_wref:
 * unlock the header.  Who has found that there is nothing to wait for yet
 * sleeps on the condition variable.  Only who waits for the I/O itself sees to
 * it that it is completed, as we may not do so soon: we may even be waiting for
 * a lock of his.
 */
void
AioUnlockStagedBuffer(BufferDesc *buf, uint32 buf_state)
{
	UnlockBufHdr(buf, buf_state);
	ConditionVariableBroadcast(BufferDescriptorGetIOCV(buf));
}

/* stage: the buffers of a write, if it has any, are the I/O's from now on */
void
AioStageWrite(PgAioHandle *ioh, uint8 cb_data)
{
	PgAioWaitRef wref;
	uint64	   *data;
	uint8		n;

	/* an interrupt in between would leave buffers with two owners, or none */
	Assert(InterruptHoldoffCount > 0);
	data = pgaio_io_get_handle_data(ioh, &n);
	pgaio_io_get_wref(ioh, &wref);
	for (int i = 0; i < n; i++)
	{
		Buffer		buffer = AioHandleDataBuffer(data[i]);
		BufferDesc *buf;
		uint32		buf_state;

		if (!BufferIsValid(buffer))
			continue;
		buf = GetBufferDescriptor(buffer - 1);
		buf_state = LockBufHdr(buf);
		Assert(buf_state & BM_VALID);
		Assert(buf_state & BM_DIRTY);
		Assert(buf_state & BM_IO_IN_PROGRESS);
		Assert(BUF_STATE_GET_REFCOUNT(buf_state) >= 1);
		buf_state += BUF_REFCOUNT_ONE;
		buf->io_wref = wref;
		AioUnlockStagedBuffer(buf, buf_state);
		ResourceOwnerForgetBufferIO(CurrentResourceOwner, buffer);
	}
}

/* The write of a buffer is complete: end its I/O. */
void
AioEndWrite(Buffer buffer, bool clear_dirty, bool failed)
{
	Assert(!clear_dirty || !failed);
	TerminateBufferIO(GetBufferDescriptor(buffer - 1), clear_dirty,
					  failed ? BM_IO_ERROR : 0, false, true);
}

/*
 * Does the buffer hold this page, clean, unpinned, and used at most so much?
 * Then true is returned, and its header is locked.
 */
bool
AioIsVictim(BufferDesc *buf, const BufferTag *tag, int max_usage,
			uint32 *buf_state)
{
	uint32		state = LockBufHdr(buf);

	if (BUF_STATE_GET_REFCOUNT(state) == 0 &&
		BUF_STATE_GET_USAGECOUNT(state) <= max_usage &&
		(state & (BM_VALID | BM_DIRTY)) == BM_VALID &&
		BufferTagsEqual(&buf->tag, tag))
	{
		*buf_state = state;
		return true;
	}
	UnlockBufHdr(buf, state);
	return false;
}

/*
 * BufferAlloc(): GetVictimBuffer() for a page that is about to be read.  If
 * that is a page whose reads suspend the task that is running, waiting for a
 * write suspends it, too; nothing is held here but a place for the pin.
 */
Buffer
AioVictimBuffer(SMgrRelation smgr, ForkNumber forknum,
				BufferAccessStrategy strategy, IOContext io_context)
{
	bool		may_suspend = aio_current_task != NULL &&
		AioTaskAwaits(smgr, forknum);

	return GetVictimBuffer(strategy, io_context, may_suspend);
}

/* Siblings may have used up what GetVictimBuffer() reserves for its pin. */
void
AioReserveForPin(void)
{
	ReservePrivateRefCountEntry();
	ResourceOwnerEnlarge(CurrentResourceOwner);
}

/*
 * Write a page as upstream does, and raise its errors.  Does nothing if the
 * buffer is clean, or holds another page by now.
 */
void
AioRetryWrite(Buffer buffer, const BufferTag *tag)
{
	BufferDesc *buf = GetBufferDescriptor(buffer - 1);
	uint32		buf_state;

	Assert(!LWLockHeldByMe(BufferDescriptorGetContentLock(buf)));
	ReservePrivateRefCountEntry();
	ResourceOwnerEnlarge(CurrentResourceOwner);
	buf_state = LockBufHdr(buf);
	if (!(buf_state & BM_VALID) || !(buf_state & BM_DIRTY) ||
		!BufferTagsEqual(&buf->tag, tag))
	{
		UnlockBufHdr(buf, buf_state);
		return;
	}
	PinBuffer_Locked(buf);
	LWLockAcquire(BufferDescriptorGetContentLock(buf), LW_SHARED);
	FlushBuffer(buf, NULL, IOOBJECT_RELATION, IOCONTEXT_NORMAL);
	LWLockRelease(BufferDescriptorGetContentLock(buf));
	UnpinBuffer(buf);
}

/*
 * LockBufferForCleanup(): before waiting for others to unpin a buffer, have its
 * write completed, if there is one whose owner is busy.  None begins from here
 * on.
 */
void
AioBeforeCleanupWait(BufferDesc *buf)
{
	if (!(pg_atomic_read_u32(&buf->state) & BM_IO_IN_PROGRESS))
		return;
	WaitIO(buf);

	/* the signal that is about to be waited for may have come meanwhile */
	SetLatch(MyLatch);
}

/*
 * Does this process have a page of shared buffers locked?  Here the release
 * says by what pages are locked: an LWLock in each buffer's descriptor.
 */
bool
AioHoldsPageLock(void)
{
	return LWLockAnyHeldByMe(BufferDescriptorGetContentLock(GetBufferDescriptor(0)),
							 NBuffers, sizeof(BufferDescPadded));
}

/* Does it have a page of this relation, in this buffer, locked? */
static bool
holds_lock(Buffer buffer, const RelFileLocator *rel)
{
	BufferDesc *buf;

	if (!BufferIsValid(buffer) || BufferIsLocal(buffer))
		return false;
	buf = GetBufferDescriptor(buffer - 1);
	return BufTagMatchesRelFileLocator(&buf->tag, rel) &&
		LWLockHeldByMe(BufferDescriptorGetContentLock(buf));
}

/* Does this process have a page of this relation locked, and thus pinned? */
bool
AioHoldsPageLockOf(const RelFileLocator *rel)
{
	bool		result = false;

	for (int i = 0; i < REFCOUNT_ARRAY_ENTRIES && !result; i++)
		result = holds_lock(PrivateRefCountArray[i].buffer, rel);
	if (!result && PrivateRefCountOverflowed > 0)
	{
		HASH_SEQ_STATUS scan;
		PrivateRefCountEntry *entry;

		hash_seq_init(&scan, PrivateRefCountHash);
		while ((entry = hash_seq_search(&scan)) != NULL)
			result |= holds_lock(entry->buffer, rel);
	}
	return result;
}

#ifdef USE_ASSERT_CHECKING
/* Number of pins that this process holds, each as often as it was taken. */
int
AioPrivatePins(void)
{
	int			npins = 0;

	for (int i = 0; i < REFCOUNT_ARRAY_ENTRIES; i++)
		npins += PrivateRefCountArray[i].refcount;
	if (PrivateRefCountOverflowed > 0)
	{
		HASH_SEQ_STATUS scan;
		PrivateRefCountEntry *entry;

		hash_seq_init(&scan, PrivateRefCountHash);
		while ((entry = hash_seq_search(&scan)) != NULL)
			npins += entry->refcount;
	}
	return npins;
}
#endif
