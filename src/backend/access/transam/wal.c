/*-------------------------------------------------------------------------
 *
 * wal.c
 *	  WAL on its way to disk: several writes and several syncs at a time.
 *
 * Writing begins when enough pages are complete: the process that has filled
 * them starts to write them from the WAL buffers and goes on.  A process that
 * needs WAL flushed writes the rest, and syncs without WALWriteLock, so that
 * others can write meanwhile, and sync what they have written.
 *
 * WALWriteLock protects what has been started, writes and syncs; both lists
 * are in order of position and without gaps.  They are completed in any order,
 * by any process, under the mutex; the written and flushed positions advance
 * when the first of its list is complete.
 *
 * What is written but not flushed is less than aio_wal_span: recovery looks so
 * far behind the end of WAL for pages that are not to follow it.
 *
 * The mutex is taken with or without WALWriteLock, never before it.  The lock
 * of a sync is taken with WALWriteLock held, and kept without it.  Whoever has
 * WALWriteLock may wait for writes in flight, but neither for insertions that
 * are not done nor for a sync, unless so much is written that has not been
 * flushed; who syncs does not need the lock to end that.
 *
 * What this needs of the server is in wal_port.h, so that the simulator runs it
 * without one.
 *
 * Upholds INVARIANT-50 to 53, and its part of 86.
 *
 * Tests: src/test/simulate/wal_pipeline.c, src/test/aio/wal/t/001_pipeline.pl,
 *		  src/test/aio/wal/t/003_crash.pl, src/test/aio/wal/t/005_streams.pl.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xlog.h"
#include "access/xlog_internal.h"
#include "aio/server.h"
#include "aio/shared_state.h"
#include "aio/wal.h"
#include "miscadmin.h"
#include "port/atomics.h"
#include "portability/instr_time.h"
#include "postmaster/walwriter.h"
#include "replication/walsender.h"
#include "storage/latch.h"
#include "storage/lwlock.h"
#include "storage/pmsignal.h"
#include "storage/procarray.h"
#include "storage/spin.h"
#include "utils/injection_point.h"
#include "utils/wait_event.h"
#include "wal_internal.h"

/* aio.wal_write_ahead */
int			aio_wal_write_ahead = 256;

/* aio.wal_syncs */
int			aio_wal_syncs = 1;

XLogRecPtr	aio_wal_write_at = InvalidXLogRecPtr;

/* writes in flight; a file system works on few at a time for one file */
#define NWRITES			8

/* syncs in flight: of sessions, and of the WAL writer */
#define NSYNCS			16

StaticAssertDecl(AIO_WAL_SYNCS_LIMIT < NSYNCS, "the WAL writer can always sync");

/*
 * While a sync is faster than this, no second one is begun beside it, in
 * microseconds: a second one would cost more than it gains.
 */
#define LONG_SYNC		500

/* how often to see who has arrived, in microseconds */
#define GROUP_POLL_INTERVAL	50

/* logarithm of the most syncs without waiting, after waits that failed */
#define FAILED_WAITS_MAX	5

/* for an average that follows its values slowly */
#define EXPECTED_SCALE	4

/* a write is at most this part of the WAL buffers, and this long */
#define WRITE_FRACTION	8
#define WRITE_MAX		(1024 * 1024)

/* a flush is not waited for if so much of the WAL buffers is to be written */
#define FLUSH_FRACTION	4

typedef struct WalWrite
{
	XLogRecPtr	start;			/* before that there is nothing new */
	XLogRecPtr	end;
	bool		synced;			/* it is on disk when it is complete */
	bool		done;
	PgAioWaitRef wref;
} WalWrite;

typedef struct WalSync
{
	LWLock		lock;			/* held while it is in flight */
	pg_atomic_uint64 number;	/* of the sync, counted from the first */
	XLogRecPtr	upto;
	bool		done;
} WalSync;

typedef struct WalPipeline
{
	slock_t		mutex;

	/* changed with WALWriteLock and the mutex held */
	uint64		next_write;
	uint64		next_sync;

	/* changed with the mutex held */
	uint64		first_write;
	uint64		first_sync;
	WalWrite	writes[NWRITES];	/* by number, modulo */
	WalSync		syncs[NSYNCS];	/* likewise */

	/* changed with WALWriteLock held */
	pg_atomic_uint64 started;	/* writes have been started up to here */
	pg_atomic_uint64 syncing;	/* and syncs; those may be flushed farther */
	pg_atomic_uint64 finished;	/* segments before this one are */

	pg_atomic_uint64 wanted;	/* the WAL writer should flush up to here */
	pg_atomic_uint64 segment;	/* that should exist soon */
	pg_atomic_uint32 sync_time; /* of recent syncs, microseconds */
	pg_atomic_uint32 flushing;	/* processes in AioFlushWal() */
	pg_atomic_uint32 arrived;	/* sessions that want a sync, since the last
								 * one began */
	pg_atomic_uint32 expected;	/* expected to arrive, times EXPECTED_SCALE */
	int			failed_waits;	/* waits in a row in which they did not arrive */
	int			wait_after;		/* syncs before the next wait */
	pg_atomic_flag starting_writes; /* some process is in AioStartWalWrites() */
} WalPipeline;

static WalPipeline *pipeline;

/* the last segment that this process, the WAL writer, has made in advance */
static XLogSegNo prepared = 0;

/* wait event: for others that are about to commit */
static uint32 group_commit_event;

static Size
pipeline_size(void)
{
	return sizeof(WalPipeline);
}

static void
init_pipeline(void)
{
	int			tranche = LWLockNewTrancheId();

	memset(pipeline, 0, sizeof(WalPipeline));
	SpinLockInit(&pipeline->mutex);
	for (int i = 0; i < NSYNCS; i++)
	{
		LWLockInitialize(&pipeline->syncs[i].lock, tranche);
		pg_atomic_init_u64(&pipeline->syncs[i].number, 0);
	}
	pg_atomic_init_u64(&pipeline->started, InvalidXLogRecPtr);
	pg_atomic_init_u64(&pipeline->syncing, InvalidXLogRecPtr);
	pg_atomic_init_u64(&pipeline->finished, 0);
	pg_atomic_init_u64(&pipeline->wanted, InvalidXLogRecPtr);
	pg_atomic_init_u64(&pipeline->segment, 0);
	pg_atomic_init_u32(&pipeline->sync_time, 0);
	pg_atomic_init_u32(&pipeline->flushing, 0);
	pg_atomic_init_u32(&pipeline->arrived, 0);
	pg_atomic_init_u32(&pipeline->expected, 0);
	pg_atomic_init_flag(&pipeline->starting_writes);
	LWLockRegisterTranche(tranche, "AioWalSync");
	group_commit_event = WaitEventExtensionNew("AioWalGroupCommit");
}

static const AioSharedState pipeline_state = {
	.name = "aio WAL pipeline",
	.size = pipeline_size,
	.address = (void **) &pipeline,
	.initialize = init_pipeline,
};

/* While libraries are preloaded: ask for shared memory. */
void
AioWalInitialize(void)
{
	AioShareState(&pipeline_state);
}

/* GUC assign_hook for aio.wal_write_ahead: check again when to write */
void
AioAssignWalWriteAhead(int newval, void *extra)
{
	aio_wal_write_at = InvalidXLogRecPtr;
}

static bool
in_use(void)
{
	return AioWalInUse() && pipeline != NULL;
}

static XLogSegNo
segment_of(XLogRecPtr ptr)
{
	XLogSegNo	segno;

	XLByteToSeg(ptr, segno, wal_segment_size);
	return segno;
}

static XLogRecPtr
segment_end(XLogSegNo segno)
{
	XLogRecPtr	end;

	XLogSegNoOffsetToRecPtr(segno + 1, 0, wal_segment_size, end);
	return end;
}

static XLogRecPtr
page_start(XLogRecPtr ptr)
{
	return ptr - ptr % XLOG_BLCKSZ;
}

/*
 * How far WAL has been written and flushed, with WALWriteLock held.  Updates
 * what has been started, where recovery or upstream's own code went farther.
 */
static void
update_positions(XLogRecPtr *written, XLogRecPtr *flushed)
{
	Assert(LWLockHeldByMeInMode(WALWriteLock, LW_EXCLUSIVE));
	AioWalResult(written, flushed);

	/* the first caller after recovery finds positions that recovery has set */
	if (pg_atomic_read_u64(&pipeline->started) < *written)
		pg_atomic_write_u64(&pipeline->started, *written);
	if (pg_atomic_read_u64(&pipeline->syncing) < *flushed)
		pg_atomic_write_u64(&pipeline->syncing, *flushed);
	if (pg_atomic_read_u64(&pipeline->finished) == 0)
		pg_atomic_write_u64(&pipeline->finished, segment_of(*flushed));
}

/* No farther may be written now. */
static XLogRecPtr
write_limit(void)
{
	XLogRecPtr	written;
	XLogRecPtr	flushed;

	AioWalResult(&written, &flushed);
	return page_start(flushed + aio_wal_span);
}

/* ------------------------------------------------------------------------
 * Segments
 * ------------------------------------------------------------------------
 */

/* Do what is to be done for segments that have been flushed; likewise. */
static void
finish_segments_locked(TimeLineID tli)
{
	XLogRecPtr	written;
	XLogRecPtr	flushed;
	uint64		segno;

	update_positions(&written, &flushed);
	while ((segno = pg_atomic_read_u64(&pipeline->finished)) < segment_of(flushed))
	{
		AioWalSegmentFinished(segno, tli);
		pg_atomic_write_u64(&pipeline->finished, segno + 1);
	}
}

/* The same without WALWriteLock. */
static void
finish_segments(TimeLineID tli)
{
	XLogRecPtr	written;
	XLogRecPtr	flushed;
	uint64		finished = pg_atomic_read_u64(&pipeline->finished);

	AioWalResult(&written, &flushed);
	if (finished == 0 || finished >= segment_of(flushed))
		return;
	START_CRIT_SECTION();
	LWLockAcquire(WALWriteLock, LW_EXCLUSIVE);
	finish_segments_locked(tli);
	LWLockRelease(WALWriteLock);
	END_CRIT_SECTION();
}

/* ------------------------------------------------------------------------
 * Writes
 * ------------------------------------------------------------------------
 */

/*
 * WAL has been written from 'start' to 'end', with all before it; with the
 * mutex held.  Returns whether that flushes something.
 */
static bool
advance_written(XLogRecPtr start, XLogRecPtr end, bool synced)
{
	XLogRecPtr	written;
	XLogRecPtr	flushed;
	bool		flushes;

	AioWalResult(&written, &flushed);
	Assert(start == written && start < end);
	flushes = synced && flushed >= start && flushed < end;
	AioWalAdvance(end, flushes ? end : flushed);
	return flushes;
}

/*
 * A write with this number is complete.  In a critical section, in any
 * process.
 */
void
AioWalWriteComplete(uint64 number)
{
	bool		flushes = false;

	SpinLockAcquire(&pipeline->mutex);
	Assert(number >= pipeline->first_write && number < pipeline->next_write);
	Assert(!pipeline->writes[number % NWRITES].done);
	pipeline->writes[number % NWRITES].done = true;
	while (pipeline->first_write < pipeline->next_write)
	{
		WalWrite   *write = &pipeline->writes[pipeline->first_write % NWRITES];

		if (!write->done)
			break;
		flushes |= advance_written(write->start, write->end, write->synced);
		pipeline->first_write++;
	}
	SpinLockRelease(&pipeline->mutex);

	if (flushes && max_wal_senders > 0)
		WalSndWakeup(true, true);
}

/* Wait until WAL has been written up to here; that must have been started. */
static void
wait_for_writes(XLogRecPtr upto)
{
	Assert(upto <= pg_atomic_read_u64(&pipeline->started));
	for (;;)
	{
		XLogRecPtr	written;
		XLogRecPtr	flushed;
		PgAioWaitRef wref;

		/*
		 * The first one: if others are complete that does not help.  While
		 * not all is written that we wait for, it is one of those we wait
		 * for, and has been submitted; it might not have been if it were
		 * later.
		 */
		SpinLockAcquire(&pipeline->mutex);
		AioWalResult(&written, &flushed);
		Assert(written >= upto || pipeline->first_write < pipeline->next_write);
		wref = pipeline->writes[pipeline->first_write % NWRITES].wref;
		SpinLockRelease(&pipeline->mutex);
		if (written >= upto)
			break;
		AioWalAwait(&wref);
	}
}

/* How much is written at a time, in bytes. */
static Size
write_size(void)
{
	Size		size = Min((Size) aio_wal_write_ahead * 1024,
						   AioWalBufferPages() / WRITE_FRACTION * (Size) XLOG_BLCKSZ);

	return Max(size - size % XLOG_BLCKSZ, XLOG_BLCKSZ);
}

/*
 * Start to write whole pages, up to 'upto', as far as that can be done without
 * waiting; with WALWriteLock held.  They must have been filled.
 */
static void
start_writes(XLogRecPtr upto, TimeLineID tli)
{
	Assert(LWLockHeldByMeInMode(WALWriteLock, LW_EXCLUSIVE));
	Assert(upto % XLOG_BLCKSZ == 0 && upto <= AioWalInserted());
	if (aio_wal_write_ahead == 0 || !AioWalMayStartNow())
		return;

	for (;;)
	{
		XLogRecPtr	start = pg_atomic_read_u64(&pipeline->started);
		XLogRecPtr	page = page_start(start);
		XLogSegNo	segno = segment_of(start);
		XLogRecPtr	limit = write_limit();
		XLogRecPtr	end = Min(Min(upto, segment_end(segno)), limit);
		uint64		number = pipeline->next_write;
		PgAioWaitRef wref;
		PgAioHandle *ioh;
		WalWrite   *write;
		Size		nbytes;
		char	   *from;
		int			fd;

		if (start >= end || number - pipeline->first_write >= NWRITES)
			return;
		end = Min(end, page + WRITE_MAX);

		/* it takes long to make a file: somebody else should */
		fd = AioWalFile(segno, tli, false);
		if (fd < 0)
		{
			pg_atomic_write_u64(&pipeline->segment, segno);
			AioWalWakeWriter();
			return;
		}
		ioh = AioWalHandle(&wref);
		if (ioh == NULL)
			return;

		from = AioWalBuffers(page, end, &nbytes);
		end = page + nbytes;
		Assert(start < end && segment_of(end - 1) == segno);

		SpinLockAcquire(&pipeline->mutex);
		write = &pipeline->writes[number % NWRITES];
		write->start = start;
		write->end = end;
		write->synced = AioWalMethodSyncsWrites(wal_sync_method);
		write->done = false;
		write->wref = wref;
		pipeline->next_write++;
		SpinLockRelease(&pipeline->mutex);
		pg_atomic_write_u64(&pipeline->started, end);

		AioWalStartWrite(ioh, fd, segno, tli, from, nbytes,
						 XLogSegmentOffset(page, wal_segment_size), number);

		if (end == segment_end(segno))
			AioWalWakeWriter();
		if (pg_atomic_read_u64(&pipeline->segment) != segno + 1)
		{
			pg_atomic_write_u64(&pipeline->segment, segno + 1);
			AioWalWakeWriter();
		}
	}
}

/*
 * Write up to 'upto' and wait for it; with WALWriteLock held, and nothing in
 * flight.
 */
static void
write_now(XLogRecPtr upto, TimeLineID tli)
{
	XLogRecPtr	start;

	Assert(LWLockHeldByMeInMode(WALWriteLock, LW_EXCLUSIVE));
	Assert(upto <= AioWalInserted() && upto <= write_limit());
	while ((start = pg_atomic_read_u64(&pipeline->started)) < upto)
	{
		XLogSegNo	segno = segment_of(start);
		XLogRecPtr	page = page_start(start);
		XLogRecPtr	end = Min(upto, segment_end(segno));
		int			fd = AioWalFile(segno, tli, true);
		Size		nbytes;
		char	   *from;
		bool		flushes;

		Assert(pipeline->first_write == pipeline->next_write);
		from = AioWalBuffers(page, end, &nbytes);
		AioWalWriteNow(fd, segno, tli, from, nbytes,
					   XLogSegmentOffset(page, wal_segment_size));
		end = Min(end, page + nbytes);

		SpinLockAcquire(&pipeline->mutex);
		flushes = advance_written(start, end,
								  AioWalMethodSyncsWrites(wal_sync_method));
		SpinLockRelease(&pipeline->mutex);
		pg_atomic_write_u64(&pipeline->started, end);
		if (flushes)
			WalSndWakeupRequest();
	}
}

/*
 * XLogInsertRecord(): a record that ends at 'inserted' is in the buffers.
 * Start to write what is complete, if it is enough.
 */
void
AioStartWalWrites(XLogRecPtr inserted)
{
	XLogRecPtr	started;
	XLogRecPtr	upto = page_start(inserted);
	XLogRecPtr	next_page = upto + XLOG_BLCKSZ;
	Size		size;

	if (aio_wal_write_ahead == 0 || !in_use() || !AioWalMayStartWrites())
	{
		aio_wal_write_at = PG_UINT64_MAX;
		return;
	}
	started = pg_atomic_read_u64(&pipeline->started);
	size = write_size();
	aio_wal_write_at = Max(started + size, next_page);
	if (upto < started + size || started == InvalidXLogRecPtr)
		return;

	/*
	 * If somebody is about to flush, WAL is about to be written, and a write
	 * of ours would only come before.
	 */
	if (pg_atomic_read_u32(&pipeline->flushing) > 0 &&
		upto - started < AioWalBufferPages() / FLUSH_FRACTION * (Size) XLOG_BLCKSZ)
		return;
	if (!pg_atomic_test_set_flag(&pipeline->starting_writes))
		return;

	START_CRIT_SECTION();
	AioWalWaitForInsertions(upto);
	if (LWLockConditionalAcquire(WALWriteLock, LW_EXCLUSIVE))
	{
		TimeLineID	tli = AioWalTimeLine();

		finish_segments_locked(tli);
		start_writes(upto, tli);
		LWLockRelease(WALWriteLock);
	}
	pg_atomic_clear_flag(&pipeline->starting_writes);
	END_CRIT_SECTION();

	started = pg_atomic_read_u64(&pipeline->started);
	aio_wal_write_at = Max(started + size, next_page);
	if (started >= pg_atomic_read_u64(&pipeline->syncing) +
		(uint64) Max(WalWriterFlushAfter, 1) * XLOG_BLCKSZ)
		AioWalWakeWriter();
}

/* ------------------------------------------------------------------------
 * Syncs
 * ------------------------------------------------------------------------
 */

/* May a session sync now, or should it rather wait for a sync in flight? */
static bool
may_sync(void)
{
	uint64		in_flight = pipeline->next_sync - pipeline->first_sync;

	if (in_flight == 0)
		return true;
	return in_flight < (uint64) aio_wal_syncs &&
		pg_atomic_read_u32(&pipeline->sync_time) >= LONG_SYNC;
}

/*
 * Wait for the sync in flight that flushes up to 'upto', or for an earlier one
 * if it is complete.  Returns false if there is none.
 */
static bool
wait_for_sync(XLogRecPtr upto)
{
	uint64		number;
	uint64		ignored;
	WalSync    *sync;

	SpinLockAcquire(&pipeline->mutex);
	for (number = pipeline->first_sync; number < pipeline->next_sync; number++)
	{
		if (pipeline->syncs[number % NSYNCS].upto >= upto)
			break;
	}
	if (number == pipeline->next_sync)
	{
		SpinLockRelease(&pipeline->mutex);
		return false;
	}
	if (pipeline->syncs[number % NSYNCS].done)
		number = pipeline->first_sync;
	sync = &pipeline->syncs[number % NSYNCS];
	Assert(!sync->done && number >= pipeline->first_sync);
	SpinLockRelease(&pipeline->mutex);

	/* its owner may have ended because the postmaster has died */
	if (LWLockWaitForVar(&sync->lock, &sync->number, number, &ignored) &&
		!PostmasterIsAlive())
	{
		bool		abandoned;

		SpinLockAcquire(&pipeline->mutex);
		abandoned = number >= pipeline->first_sync && !sync->done;
		SpinLockRelease(&pipeline->mutex);
		if (abandoned)
			AioExitWithoutPostmaster();
	}
	return true;
}

/*
 * From now on a sync up to 'upto' is in flight; with WALWriteLock held.  Its
 * lock is held until it is complete.
 */
static WalSync *
begin_sync(XLogRecPtr upto)
{
	uint64		number = pipeline->next_sync;
	WalSync    *sync = &pipeline->syncs[number % NSYNCS];

	Assert(LWLockHeldByMeInMode(WALWriteLock, LW_EXCLUSIVE));
	Assert(number - pipeline->first_sync < NSYNCS);
	Assert(upto > pg_atomic_read_u64(&pipeline->syncing));
	LWLockAcquire(&sync->lock, LW_EXCLUSIVE);
	pg_atomic_write_u64(&sync->number, number);
	SpinLockAcquire(&pipeline->mutex);
	sync->upto = upto;
	sync->done = false;
	pipeline->next_sync++;
	SpinLockRelease(&pipeline->mutex);
	pg_atomic_write_u64(&pipeline->syncing, upto);
	return sync;
}

static void
end_sync(WalSync *sync)
{
	XLogRecPtr	written;
	XLogRecPtr	flushed;

	SpinLockAcquire(&pipeline->mutex);
	Assert(!sync->done);
	sync->done = true;
	AioWalResult(&written, &flushed);
	Assert(sync->upto <= written);
	while (pipeline->first_sync < pipeline->next_sync)
	{
		WalSync    *first = &pipeline->syncs[pipeline->first_sync % NSYNCS];

		if (!first->done)
			break;
		flushed = Max(flushed, first->upto);
		pipeline->first_sync++;
	}
	AioWalAdvance(written, flushed);
	SpinLockRelease(&pipeline->mutex);
	LWLockRelease(&sync->lock);
}

static void
update_sync_time(instr_time start)
{
	uint32		recent = pg_atomic_read_u32(&pipeline->sync_time);
	instr_time	time;

	INSTR_TIME_SET_CURRENT(time);
	INSTR_TIME_SUBTRACT(time, start);
	pg_atomic_write_u32(&pipeline->sync_time,
						(recent * 7 + Min(INSTR_TIME_GET_MICROSEC(time), 100000)) / 8);
}

/*
 * Write and sync up to 'upto', but not beyond the first segment that has not
 * been synced, nor farther than may be written.  With WALWriteLock held, which
 * is released; and the buffers must have been filled up to there.
 */
static void
write_and_sync(XLogRecPtr upto, TimeLineID tli)
{
	XLogRecPtr	written;
	XLogRecPtr	flushed;
	XLogRecPtr	from;
	XLogSegNo	segno;
	WalSync    *sync;
	instr_time	start;
	bool		needs_sync;
	int			fd = -1;

	update_positions(&written, &flushed);
	from = pg_atomic_read_u64(&pipeline->syncing);
	segno = segment_of(from);
	upto = Min(Min(upto, segment_end(segno)), page_start(from + aio_wal_span));
	if (upto <= from)
	{
		/* writes that sync have just been completed */
		LWLockRelease(WALWriteLock);
		return;
	}

	Assert(upto <= AioWalInserted() && segment_of(upto - 1) == segno);
	while (upto > write_limit())
		wait_for_sync(InvalidXLogRecPtr);

	/* announce it first, so that others wait for it and not for the lock */
	sync = begin_sync(upto);
	wait_for_writes(Min(upto, pg_atomic_read_u64(&pipeline->started)));
	AioWalResult(&written, &flushed);
	needs_sync = !AioWalMethodSyncsWrites(wal_sync_method) ||
		Min(written, upto) > Max(from, flushed);
	INSTR_TIME_SET_CURRENT(start);
	write_now(upto, tli);
	if (needs_sync)
		fd = AioWalFileToSync(segno, tli);
	LWLockRelease(WALWriteLock);
	INJECTION_POINT_CACHED("aio-wal-written", NULL);
	if (needs_sync)
		AioWalSyncNow(fd, segno, tli);
	update_sync_time(start);

	/* walsenders are woken when we have left the critical section */
	WalSndWakeupRequest();
	end_sync(sync);
	finish_segments(tli);
}

/*
 * AdvanceXLInsertBuffer(): the buffers are needed in which WAL ends before
 * 'upto', the end of a page that has been filled.  Called with WALWriteLock
 * held and releases it.  Returns false, and does nothing, if that is
 * upstream's business.
 */
bool
AioFreeWalBuffers(XLogRecPtr upto, TimeLineID tli)
{
	XLogRecPtr	started;

	Assert(upto % XLOG_BLCKSZ == 0 && CritSectionCount > 0);
	if (!in_use())
		return false;

	finish_segments_locked(tli);
	start_writes(page_start(AioWalInserted()), tli);
	while ((started = pg_atomic_read_u64(&pipeline->started)) < upto)
	{
		XLogRecPtr	limit = write_limit();
		XLogRecPtr	end = Min(page_start(AioWalInserted()), upto + write_size());

		if (started < limit)
		{
			wait_for_writes(started);
			write_now(Min(Max(upto, end), limit), tli);
		}
		else if (!may_sync())
			wait_for_sync(InvalidXLogRecPtr);
		else
		{
			write_and_sync(started, tli);
			LWLockAcquire(WALWriteLock, LW_EXCLUSIVE);
			finish_segments_locked(tli);
		}
	}
	LWLockRelease(WALWriteLock);
	WalSndWakeupProcessRequests(true, true);
	wait_for_writes(upto);
	return true;
}

/*
 * Group commit: wait a moment for as many sessions as wanted a sync recently.
 * If they arrived while this sync is under way, they would have to wait for
 * two.  Sessions that generate WAL must not run out of buffers meanwhile.
 * Returns how far WAL has been inserted then, if that is farther; with
 * WALWriteLock held.
 */
static XLogRecPtr
wait_for_group(XLogRecPtr inserted)
{
	uint32		expected = pg_atomic_read_u32(&pipeline->expected);
	uint32		time = pg_atomic_read_u32(&pipeline->sync_time);
	uint32		arrived;

	Assert(LWLockHeldByMeInMode(WALWriteLock, LW_EXCLUSIVE));
	if (time >= LONG_SYNC && enableFsync &&
		pg_atomic_read_u32(&pipeline->arrived) < expected / EXPECTED_SCALE &&
		--pipeline->wait_after < 0)
	{
		Size		most = AioWalBufferPages() / 2 * (Size) XLOG_BLCKSZ;
		bool		complete;
		instr_time	start;
		instr_time	now;

		INSTR_TIME_SET_CURRENT(start);
		pgstat_report_wait_start(group_commit_event);
		do
		{
			pg_usleep(GROUP_POLL_INTERVAL);
			INSTR_TIME_SET_CURRENT(now);
			INSTR_TIME_SUBTRACT(now, start);
			complete = pg_atomic_read_u32(&pipeline->arrived) >= expected / EXPECTED_SCALE;
		} while (!complete &&
				 INSTR_TIME_GET_MICROSEC(now) < time * 3 / 4 &&
				 AioWalRequest() < pg_atomic_read_u64(&pipeline->started) + most);
		pgstat_report_wait_end();

		/* sessions whose transactions take longer are not worth waiting for */
		pipeline->failed_waits = complete ? 0 :
			Min(pipeline->failed_waits + 1, FAILED_WAITS_MAX);
		pipeline->wait_after = complete ? 0 : 1 << pipeline->failed_waits;
		inserted = AioWalWaitForInsertions(inserted);
	}

	/* the expectation grows at once, and falls slowly */
	arrived = pg_atomic_exchange_u32(&pipeline->arrived, 0) * EXPECTED_SCALE;
	if (arrived < expected)
		arrived = expected - (expected - arrived + EXPECTED_SCALE - 1) / EXPECTED_SCALE;
	pg_atomic_write_u32(&pipeline->expected, arrived);
	return inserted;
}

/*
 * XLogFlush(): have WAL flushed up to 'upto', in a critical section.  Returns
 * false, and does nothing, if that is upstream's business.
 *
 * If 'upto' is past the end of WAL, all there is is flushed; the caller
 * complains.
 */
bool
AioFlushWal(XLogRecPtr upto, TimeLineID tli)
{
	AioWalFlush flush;

	Assert(CritSectionCount > 0);
	if (!in_use())
		return false;

	AioWalFlushBegins(&flush);
	pg_atomic_fetch_add_u32(&pipeline->arrived, 1);
	pg_atomic_fetch_add_u32(&pipeline->flushing, 1);
	for (;;)
	{
		XLogRecPtr	written;
		XLogRecPtr	flushed;
		XLogRecPtr	inserted;

		AioWalResult(&written, &flushed);
		if (upto <= flushed)
			break;
		if (upto <= pg_atomic_read_u64(&pipeline->syncing) && wait_for_sync(upto))
			continue;

		/* take along what others have inserted */
		inserted = AioWalWaitForInsertions(Max(upto, AioWalRequest()));
		if (upto > inserted)
		{
			upto = inserted;
			continue;
		}
		if (!may_sync() && wait_for_sync(InvalidXLogRecPtr))
			continue;
		if (!LWLockAcquireOrWait(WALWriteLock, LW_EXCLUSIVE))
			continue;
		update_positions(&written, &flushed);
		if (upto <= pg_atomic_read_u64(&pipeline->syncing) || !may_sync())
		{
			LWLockRelease(WALWriteLock);
			continue;
		}

		/* let others join; they do not need the lock for that */
		if (CommitDelay > 0 && enableFsync &&
			MinimumActiveBackends(CommitSiblings))
		{
			pg_usleep(CommitDelay);
			inserted = AioWalWaitForInsertions(inserted);
		}
		inserted = wait_for_group(inserted);
		write_and_sync(inserted, tli);
	}
	pg_atomic_fetch_sub_u32(&pipeline->flushing, 1);
	AioWalFlushEnds(&flush);
	finish_segments(tli);
	return true;
}

/*
 * Have WAL flushed up to 'upto' soon, by the WAL writer.  It must be a position
 * in WAL, and not past its end.
 */
void
AioRequestWalFlush(XLogRecPtr upto)
{
	if (!in_use())
		XLogSetAsyncXactLSN(upto);
	else if (pg_atomic_read_u64(&pipeline->wanted) < upto)
	{
		pg_atomic_monotonic_advance_u64(&pipeline->wanted, upto);
		AioWalWakeWriter();
	}
}

/*
 * XLogBackgroundFlush(): write up to 'write', and flush up to 'flush', in the
 * WAL writer.  Called with WALWriteLock held, may release it.  Returns false,
 * and does nothing, if that is upstream's business.
 */
bool
AioWriteWalInBackground(XLogRecPtr write, XLogRecPtr flush, TimeLineID tli)
{
	XLogRecPtr	written;
	XLogRecPtr	flushed;

	if (!in_use())
		return false;

	/* it may have been asked for what does not exist, by a page's LSN */
	write = Min(write, AioWalInserted());
	flush = Min(flush, write);

	finish_segments_locked(tli);
	start_writes(page_start(write), tli);

	/* a segment that is complete is synced without delay */
	update_positions(&written, &flushed);
	flush = Max(flush, page_start(written) - page_start(written) % wal_segment_size);
	for (;;)
	{
		if (pg_atomic_read_u64(&pipeline->syncing) >= flush ||
			pipeline->next_sync - pipeline->first_sync >= NSYNCS - 1)
			break;
		write_and_sync(flush, tli);
		LWLockAcquire(WALWriteLock, LW_EXCLUSIVE);
		update_positions(&written, &flushed);
	}

	/* the end of an asynchronous commit, unless that has to be flushed, too */
	if (write % XLOG_BLCKSZ != 0 && write <= write_limit() &&
		pg_atomic_read_u64(&pipeline->started) < write)
	{
		wait_for_writes(pg_atomic_read_u64(&pipeline->started));
		write_now(write, tli);
	}
	Assert(LWLockHeldByMeInMode(WALWriteLock, LW_EXCLUSIVE));
	return true;
}

/*
 * WalWriterMain(): what the WAL writer does when it wakes up.  Returns whether
 * there was something to write.
 */
bool
AioWalWriterCycle(void)
{
	bool		busy;
	TimeLineID	tli;
	XLogSegNo	segno;
	XLogRecPtr	written;
	XLogRecPtr	flushed;

	Assert(CritSectionCount == 0);

	/* upstream would let some time pass, and flush less */
	if (in_use() && !RecoveryInProgress())
		XLogFlush(pg_atomic_read_u64(&pipeline->wanted));

	busy = XLogBackgroundFlush();
	if (!in_use() || RecoveryInProgress())
		return busy;
	tli = AioWalTimeLine();
	finish_segments(tli);
	AioWalResult(&written, &flushed);
	if (!busy)
		AioWalCloseFilesBefore(segment_of(written));

	/*
	 * What has been written to exists, or did: to make it again could have it
	 * archived again.
	 */
	segno = pg_atomic_read_u64(&pipeline->segment);
	AioWalResult(&written, &flushed);
	if (segno > prepared && segno >= segment_of(written))
	{
		prepared = segno;
		AioWalTryCreateSegment(segno, tli);
	}
	return busy;
}
