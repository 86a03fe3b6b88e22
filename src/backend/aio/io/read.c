/*-------------------------------------------------------------------------
 *
 * read.c
 *	  Buffer reads of tasks: started asynchronously, awaited as futures.
 *
 * Two seams in bufmgr.c lead here.  AsyncReadBuffers(), which is reached only
 * if a page is not in memory, asks AioTaskReadFlags() how to read it.  And
 * ReadBuffer_common() awaits the read before WaitReadBuffers() collects the
 * result and raises errors.  A page that is in memory costs nothing.
 *
 * Only reads of the main fork of the relation that the task works on suspend
 * it.  Other reads in it (a free space map page, a catalog look-up on a cache
 * miss, fetching a toasted key) blocks, because the code around it was written
 * for a process that does one thing at a time.
 *
 * Suspends:  AioTaskReadFlags(), AioAwaitTaskRead(), AioPageArrived().
 * Tests:     src/test/aio.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "aio/block.h"
#include "aio/io_internal.h"
#include "aio/pgstat_aio.h"
#include "aio/quick_io.h"
#include "aio/read.h"
#include "aio/stats.h"
#include "aio/task_status.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "storage/aio.h"
#include "storage/buf_internals.h"
#include "storage/latch.h"
#include "storage/waiteventset.h"
#include "utils/rel.h"

void		(*aio_read_hook) (ReadBuffersOperation *operation) = NULL;
bool		aio_in_read_hook = false;

Relation	aio_streamed_relation = NULL;

static bool io_poll(AioFuture *future);
static void read_wait(AioFuture *future);
static void write_wait(AioFuture *future);
static pgsocket io_configure(AioFuture *future, uint32 *events);
static void io_notify(AioFuture *future, uint32 events);
static void read_abandon(AioFuture *future);
static void io_describe(const AioFuture *future, AioTaskStatus *status);

static const AioFutureOps read_ops = {
	.name = "read",
	.kind = AIO_KIND_READ,
	.external = true,
	.poll = io_poll,
	.wait = read_wait,
	.configure = io_configure,
	.notify = io_notify,
	.abandon = read_abandon,
	.describe = io_describe,
};

static const AioFutureOps write_ops = {
	.name = "write",
	.kind = AIO_KIND_WRITE,
	.external = true,
	.poll = io_poll,
	.wait = write_wait,
	.configure = io_configure,
	.notify = io_notify,
	.describe = io_describe,
};

/*
 * Make a future of a read that somebody has started.  'io_context' is the
 * IOContext in which this process has counted it, or AIO_IO_NOT_COUNTED: the
 * time of a wait must not be where no I/O is.
 */
void
AioReadFutureInit(AioIOFuture *future, const PgAioWaitRef *wref,
				  int io_context)
{
	Assert(pgaio_wref_valid(unconstify(PgAioWaitRef *, wref)));
	future->future.ops = &read_ops;
	future->wref = *wref;
	future->io_context = io_context;
}

/* Likewise, of a write of buffers. */
void
AioWriteFutureInit(AioIOFuture *future, const PgAioWaitRef *wref,
				   int io_context)
{
	Assert(pgaio_wref_valid(unconstify(PgAioWaitRef *, wref)));
	future->future.ops = &write_ops;
	future->wref = *wref;
	future->io_context = io_context;
}

static void
io_describe(const AioFuture *future, AioTaskStatus *status)
{
	status->io = ((const AioIOFuture *) future)->wref;
}

static bool
io_poll(AioFuture *future)
{
	return pgaio_wref_check_done(&((AioIOFuture *) future)->wref);
}

/* Does this I/O complete in our own ring? */
static bool
in_my_ring(const AioIOFuture *io)
{
	PgAioHandle *ioh = &pgaio_ctl->io_handles[io->wref.aio_index];

	return io_method == IOMETHOD_IO_URING &&
		ioh->owner_procno == MyProcNumber &&
		(ioh->flags & PGAIO_HF_SYNCHRONOUS) == 0;
}

/* The ring can be waited for, like a socket; reads must have been submitted. */
static pgsocket
io_configure(AioFuture *future, uint32 *events)
{
#ifdef IOMETHOD_IO_URING_ENABLED
	if (in_my_ring((AioIOFuture *) future))
	{
		AioSubmitBatch();
		*events = WL_SOCKET_READABLE;
		return AioUringDescriptor();
	}
#endif
	return PGINVALID_SOCKET;
}

static void
io_notify(AioFuture *future, uint32 events)
{
	AioReadReap();
}

/*
 * Wait until this I/O or, if it is our own ring's, any I/O is complete.
 */
static void
io_wait(AioIOFuture *io, IOOp op)
{
	instr_time	start = pgstat_prepare_io_time(track_io_timing);
	instr_time	before;
	instr_time	after;

	INSTR_TIME_SET_CURRENT(before);
#ifdef IOMETHOD_IO_URING_ENABLED
	if (io_method == IOMETHOD_IO_URING)
	{
		PgAioHandle *ioh = &pgaio_ctl->io_handles[io->wref.aio_index];
		uint64		generation = ((uint64) io->wref.generation_upper << 32) |
			io->wref.generation_lower;

		if (in_my_ring(io))
		{
			AioBeginWait(ioh, generation);
			AioUringWaitAny(ioh, generation);
			AioEndWait();
		}
		else
			pgaio_wref_wait(&io->wref);
	}
	else
#endif
		pgaio_wref_wait(&io->wref);
	INSTR_TIME_SET_CURRENT(after);

	INSTR_TIME_ACCUM_DIFF(aio_session_stats_data.wait_time, after, before);
	if (io->io_context != AIO_IO_NOT_COUNTED)
		pgstat_count_io_op_time(IOOBJECT_RELATION, io->io_context, op,
								start, 0, 0);
}

static void
read_wait(AioFuture *future)
{
	io_wait((AioIOFuture *) future, IOOP_READ);
}

static void
write_wait(AioFuture *future)
{
	io_wait((AioIOFuture *) future, IOOP_WRITE);
}

/*
 * Nobody waits for this read any more: complete it, if it is this
 * backend's.
 *
 * A read in flight keeps a pin.  Those in our ring are completed by whoever
 * waits for them, so VACUUM, which waits for pins only, would wait until this
 * session happens to do I/O again.  That takes as long as the device does.
 * No LWLock is held, and interrupts are held off.
 */
static void
read_abandon(AioFuture *future)
{
	AioIOFuture *read = (AioIOFuture *) future;

	Assert(AioHeldLWLocks() == 0);
	Assert(InterruptHoldoffCount > 0);
	if (pgaio_ctl->io_handles[read->wref.aio_index].owner_procno == MyProcNumber &&
		!pgaio_wref_check_done(&read->wref))
		pgaio_wref_wait(&read->wref);
	AioStatsReadEnded();
}

/* The first read of this backend that is in flight, or NULL. */
static PgAioHandle *
read_in_flight(void)
{
	dlist_iter	iter;

	dclist_foreach(iter, &pgaio_my_backend->in_flight_ios)
	{
		PgAioHandle *ioh = dclist_container(PgAioHandle, node, iter.cur);

		if (ioh->op == PGAIO_OP_READV)
			return ioh;
	}
	return NULL;
}

/*
 * See to the completion of all reads of this backend, for the same reason: a
 * read stream may have been abandoned, too.  Other I/O is in nobody's way, and
 * may take long: space that is being allocated, or WAL.
 */
void
AioReadAbandonAll(void)
{
	PgAioHandle *ioh;
	bool		waited = false;

	while ((ioh = read_in_flight()) != NULL)
	{
		uint64		generation = ioh->generation;
		PgAioWaitRef wref;

		Assert(ioh->owner_procno == MyProcNumber);

		/* as of this moment: somebody else may be completing it */
		wref.aio_index = ioh - pgaio_ctl->io_handles;
		wref.generation_upper = (uint32) (generation >> 32);
		wref.generation_lower = (uint32) generation;
		pgaio_wref_wait(&wref);
		waited = true;
	}

	/*
	 * That may have been a sleep in which the latch was reset.  Who is idle
	 * must look again at what it was set for, such as a notification.
	 */
	if (waited)
		SetLatch(MyLatch);
}

/*
 * Look for reads that have completed, without waiting for any.
 */
void
AioReadReap(void)
{
#ifdef IOMETHOD_IO_URING_ENABLED
	if (io_method == IOMETHOD_IO_URING)
		AioUringReap();
#endif
}

/* Is this one of the pages whose reads the task is meant to await? */
static inline bool
is_about(Relation rel, ForkNumber forknum)
{
	Relation	subject = AioTaskSubject();

	return forknum == MAIN_FORKNUM && rel != NULL &&
		(subject == NULL || subject == rel) && !RelationUsesLocalBuffers(rel);
}

/* The same, for callers that have no Relation, and for shared buffers only. */
bool
AioTaskAwaits(const SMgrRelationData *smgr, ForkNumber forknum)
{
	Relation	subject = AioTaskSubject();

	return forknum == MAIN_FORKNUM && subject != NULL &&
		RelFileLocatorEquals(subject->rd_locator, smgr->smgr_rlocator.locator);
}

/*
 * May the running task await a read of this page, and if not, why not?  Local
 * buffers are never locked, so AioMaySuspend() could not tell that a task is
 * changing one.
 */
static AioSuspendVerdict
may_await(Relation rel, ForkNumber forknum)
{
	if (!is_about(rel, forknum))
		return AIO_SUSPEND_PINNED_DOWN;
	return AioMaySuspend();
}

/*
 * If somebody (a sibling task or another backend) is reading the page that
 * this operation wants to read, await that.
 */
static void
await_others_read(ReadBuffersOperation *operation)
{
	Buffer		buffer = operation->buffers[operation->nblocks_done];
	BufferDesc *hdr = GetBufferDescriptor(buffer - 1);

	Assert(operation->nblocks_done < operation->nblocks);
	while (pg_atomic_read_u32(&hdr->state) & BM_IO_IN_PROGRESS)
	{
		AioIOFuture read;
		PgAioWaitRef wref;
		uint32		state;

		state = LockBufHdr(hdr);
		wref = hdr->io_wref;
		UnlockBufHdr(hdr, state);

		/* read by a synchronous method, or not started yet: just wait */
		if (!pgaio_wref_valid(&wref))
			return;
		AioReadFutureInit(&read, &wref, AIO_IO_NOT_COUNTED);
		AioStatsReadStarted();
		AioAwait(&read.future);
		AioStatsReadEnded();
	}
}

/*
 * A task is about to read pages that are not in memory: returns the
 * operation's flags, without the hint that it waits for the read at once if
 * it can await it and that is worth while.
 *
 * Called before the backend's one AIO handle is taken, and so is the last
 * point where the task can suspend for somebody else's read of the page.
 */
int
AioTaskReadFlags(ReadBuffersOperation *operation)
{
	AioSuspendVerdict verdict;

	Assert(pgaio_my_backend->handed_out_io == NULL);

	/* WaitReadBuffers() is reading already */
	if (io_method == IOMETHOD_SYNC)
		return operation->flags;

	verdict = may_await(operation->rel, operation->forknum);
	if (verdict != AIO_SUSPEND_OK)
		aio_task_counters.blocked[verdict]++;
	else
	{
		await_others_read(operation);
		if (AioIsQuick(AIO_KIND_READ, operation->smgr->smgr_rlocator.locator.spcOid))
			AioSubmitBatch();
		else
		{
			AioBatchOpen();
			operation->flags &= ~READ_BUFFERS_SYNCHRONOUSLY;
		}
	}
	return operation->flags;
}

/*
 * A stream is about to read pages of a relation ahead: returns the operation's
 * flags, with the hint that it waits for the read at once if that is better.
 */
int
AioStreamReadFlags(ReadBuffersOperation *operation)
{
	if (!AioIsQuick(AIO_KIND_READ, operation->smgr->smgr_rlocator.locator.spcOid))
		return operation->flags;

	/* it may take longer than expected */
	if (pgaio_my_backend->num_staged_ios > 0)
		pgaio_submit_staged();
	return operation->flags | READ_BUFFERS_SYNCHRONOUSLY;
}

/* A read has been started for the index that the task works on. */
static void
count_task_read(void)
{
	Relation	subject = AioTaskSubject();
	AioIndexStats *stats = subject ? AioPendingIndexStats(subject) : NULL;

	if (stats != NULL)
		stats->reads++;
}

/*
 * Await the read of a single page that has begun.  On return it may be
 * incomplete: WaitReadBuffers() then waits.
 */
void
AioAwaitTaskRead(ReadBuffersOperation *operation)
{
	AioIOFuture read;

	Assert(operation->nblocks == 1);
	if (!pgaio_wref_valid(&operation->io_wref))
		return;
	if ((operation->flags & READ_BUFFERS_SYNCHRONOUSLY) != 0)
	{
		/* because it is quick? */
		if (may_await(operation->rel, operation->forknum) == AIO_SUSPEND_OK)
			count_task_read();
		return;
	}

	AioBatchConsider();
	count_task_read();
	AioReadFutureInit(&read, &operation->io_wref,
					  IOContextForStrategy(operation->strategy));
	AioStatsReadStarted();
	AioAwait(&read.future);
	AioStatsReadEnded();
}

/*
 * A page that the task asked for is in memory and pinned, but not locked by
 * this read.  Tell the task's creator, who may read on if the task may suspend.
 */
void
AioPageArrived(Relation rel, ForkNumber forknum, Buffer buffer)
{
	Relation	subject = AioTaskSubject();

	Assert(BufferIsValid(buffer));
	if (unlikely(aio_debug_suspend) &&
		may_await(rel, forknum) == AIO_SUSPEND_OK)
		AioYield();
	if (rel != NULL && forknum == MAIN_FORKNUM &&
		(rel == subject || subject == NULL))
	{
		AioPageEvent event = {.rel = rel,.buffer = buffer};

		AioTaskTell(&event);
	}
}
