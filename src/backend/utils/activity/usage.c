/*-------------------------------------------------------------------------
 *
 * usage.c
 *	  What this process has started and waited for, by kind of future.
 *
 * Each I/O that goes through upstream's AIO is counted, whoever starts it: a
 * scan's reads as well as those of tasks.  It is counted by the process that
 * starts it.  Its latency and failure are known to the one that completes it
 * (pgstat_aio.c), for which there is an entry in shared memory for each of
 * upstream's handles.
 *
 * Counting happens in critical sections and in completion callbacks, so it
 * allocates nothing and raises nothing.  Nothing is counted for a page that is
 * in memory, nor for a task that is not suspended but what scope.c counts
 * anyway.
 *
 * Tests: src/test/aio/stats/t/001_statistics.pl.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "aio/preallocate.h"
#include "aio/shared_state.h"
#include "aio/task.h"
#include "aio/usage.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "port/pg_bitutils.h"
#include "port/pg_iovec.h"
#include "storage/aio_internal.h"
#include "storage/aio_subsys.h"
#include "storage/proc.h"
#include "utils/pgstat_internal.h"

AioKindUsage aio_usage[AIO_KINDS];
uint64		aio_depths[AIO_KINDS][AIO_DEPTH_BUCKETS];

/* reads of this relation's main fork are counted apart */
static RelFileLocator watched;
uint64		aio_reads_watched = 0;

/* of each handle */
static AioHandleUsage *handles;

StaticAssertDecl(AIO_KINDS <= PG_UINT8_MAX + 1 &&
				 BACKEND_NUM_TYPES <= PG_UINT8_MAX + 1,
				 "a handle has room for each kind and type of process");

/* what this process is waiting for, and since when */
static AioFutureKind waiting_for = AIO_KIND_NONE;
static instr_time waiting_since;

/* in the order of AioFutureKind */
static const char *const kind_names[] = {
	[AIO_KIND_NONE] = "none",
	[AIO_KIND_TASK] = "task",
	[AIO_KIND_READ] = "read",
	[AIO_KIND_WRITE] = "write",
	[AIO_KIND_PREALLOCATION] = "preallocation",
	[AIO_KIND_WAL_WRITE] = "wal_write",
	[AIO_KIND_WAL_FLUSH] = "wal_flush",
	[AIO_KIND_FOREIGN] = "foreign",
	[AIO_KIND_LOOKUP] = "lookup",
	[AIO_KIND_WAL_SYNC] = "wal_sync",
	[AIO_KIND_BACKUP] = "backup",
};

StaticAssertDecl(lengthof(kind_names) == AIO_KINDS, "a name for each kind");

/* Upstream decides how many handles there are later, but not for more. */
static Size
handles_size(void)
{
	int			concurrency = io_max_concurrency > 0 ? io_max_concurrency : 64;

	return mul_size(mul_size(sizeof(AioHandleUsage), concurrency),
					MaxBackends + NUM_AUXILIARY_PROCS);
}

static void
init_handles(void)
{
	MemSet(handles, 0, handles_size());
}

static const AioSharedState handles_state = {
	.name = "aio usage of handles",
	.size = handles_size,
	.address = (void **) &handles,
	.initialize = init_handles,
};

/* While libraries are preloaded: ask for shared memory. */
void
AioUsageInitialize(void)
{
	AioShareState(&handles_state);
}

/* A kind's name in views and in EXPLAIN. */
const char *
AioFutureKindName(AioFutureKind kind)
{
	Assert(kind < AIO_KINDS);
	return kind_names[kind];
}

/*
 * Everything counted so far, into an array of AIO_KINDS.  Tasks are counted
 * elsewhere, as most of them end without coming here.
 */
void
AioUsageNow(AioKindUsage *usage)
{
	const AioTaskCounters *counters = &aio_task_counters;
	AioKindUsage *tasks = &usage[AIO_KIND_TASK];

	memcpy(usage, aio_usage, sizeof(aio_usage));
	tasks->started = counters->tasks;
	tasks->suspended = counters->tasks_suspended;
	tasks->completed_inline = counters->tasks - counters->tasks_suspended;
	tasks->cancelled = counters->tasks_dropped;
}

/*
 * A lookup has been made ahead of need, while so many were ahead; did it begin
 * a read?
 */
void
AioCountLookup(bool has_read, int ahead)
{
	AioKindUsage *usage = &aio_usage[AIO_KIND_LOOKUP];

	usage->started++;
	if (!has_read)
		usage->completed_inline++;
	usage->depth += Max(ahead, 1);
	usage->in_flight_max = Max(usage->in_flight_max, ahead);
}

static void
count_start(AioFutureKind kind, uint64 bytes)
{
	AioKindUsage *usage = &aio_usage[kind];
	int			bucket;

	Assert(usage->in_flight >= 0);
	usage->started++;
	usage->bytes += bytes;
	usage->in_flight++;
	usage->in_flight_max = Max(usage->in_flight_max, usage->in_flight);
	usage->depth += usage->in_flight;
	bucket = pg_leftmost_one_pos32(usage->in_flight);
	aio_depths[kind][Min(bucket, AIO_DEPTH_BUCKETS - 1)]++;
	pgstat_report_fixed = true;
}

static void
count_batch(AioFutureKind kind, int n)
{
	aio_usage[kind].batches++;
	aio_usage[kind].batch_max = Max(aio_usage[kind].batch_max, n);
}

/*
 * From now on reads of this relation are counted apart; NULL is of none.  If a
 * caller forgets to end it, only the count is wrong.
 */
void
AioWatchReads(const RelFileLocator *locator)
{
	if (locator != NULL)
		watched = *locator;
	else
		watched.relNumber = InvalidRelFileNumber;
}

/*
 * One more is pending that is no I/O of upstream's, of so many bytes.
 */
void
AioCountStart(AioFutureKind kind, uint64 bytes)
{
	count_start(kind, bytes);
	count_batch(kind, 1);
}

/* The process has waited, since 'start'. */
void
AioCountWait(AioFutureKind kind, instr_time start)
{
	instr_time	now;

	INSTR_TIME_SET_CURRENT(now);
	aio_usage[kind].waited++;
	INSTR_TIME_ACCUM_DIFF(aio_usage[kind].wait_time, now, start);
	pgstat_report_fixed = true;
}

static inline AioHandleUsage *
handle_usage(const PgAioHandle *ioh)
{
	Assert((Size) (ioh - pgaio_ctl->io_handles) < handles_size() / sizeof(AioHandleUsage));
	return &handles[ioh - pgaio_ctl->io_handles];
}

/* What is known of an I/O; NULL where nothing is counted. */
const AioHandleUsage *
AioUsageOfHandle(const PgAioHandle *ioh)
{
	return handles == NULL ? NULL : handle_usage(ioh);
}

static AioFutureKind
kind_of(const PgAioHandle *ioh)
{
	if (ioh->op == PGAIO_OP_READV)
		return ioh->target == AIO_TID_BACKUP ? AIO_KIND_BACKUP : AIO_KIND_READ;
	if (ioh->op == AIO_OP_FALLOCATE)
		return AIO_KIND_PREALLOCATION;
	if (ioh->op == AIO_OP_FSYNC)
		return AIO_KIND_WAL_SYNC;
	return ioh->target == AIO_TID_WAL ? AIO_KIND_WAL_WRITE : AIO_KIND_WRITE;
}

static void
count_io(PgAioHandle *ioh, instr_time now)
{
	AioHandleUsage *handle = handle_usage(ioh);
	struct iovec *iov;
	int			iovcnt = pgaio_io_get_iovec_length(ioh, &iov);
	uint64		bytes = 0;

	/* once until it is reclaimed, by who started it */
	Assert(INSTR_TIME_IS_ZERO(handle->started));
	Assert(ioh->owner_procno == MyProcNumber);

	for (int i = 0; i < iovcnt; i++)
		bytes += iov[i].iov_len;
	if (ioh->op == AIO_OP_FALLOCATE)
		bytes = AioFallocateBytes(ioh);
	handle->started = now;
	handle->kind = kind_of(ioh);
	handle->backend_type = MyBackendType;
	count_start(handle->kind, bytes);

	if (watched.relNumber != InvalidRelFileNumber &&
		handle->kind == AIO_KIND_READ &&
		ioh->target_data.smgr.forkNum == MAIN_FORKNUM &&
		RelFileLocatorEquals(ioh->target_data.smgr.rlocator, watched))
		aio_reads_watched++;
}

/* pgaio_submit_staged(): these are about to be submitted. */
void
AioCountSubmission(PgAioHandle **ios, int n)
{
	int			batch[AIO_KINDS] = {0};
	instr_time	now;

	if (handles == NULL)
		return;
	INSTR_TIME_SET_CURRENT(now);
	for (int i = 0; i < n; i++)
	{
		count_io(ios[i], now);
		batch[handle_usage(ios[i])->kind]++;
	}
	for (int kind = 0; kind < AIO_KINDS; kind++)
	{
		if (batch[kind] > 0)
			count_batch(kind, batch[kind]);
	}
}

/*
 * pgaio_io_perform_synchronously(): this process carries it out.  If it has
 * started it, it does so before going on.
 */
void
AioCountSynchronous(PgAioHandle *ioh)
{
	if (handles == NULL || ioh->owner_procno != MyProcNumber)
		return;
	if (INSTR_TIME_IS_ZERO(handle_usage(ioh)->started))
	{
		instr_time	now;

		INSTR_TIME_SET_CURRENT(now);
		count_io(ioh, now);
		count_batch(handle_usage(ioh)->kind, 1);
	}
	aio_usage[handle_usage(ioh)->kind].completed_inline++;
}

/* pgaio_io_reclaim(): its owner is about to use the handle again. */
void
AioCountReclaim(PgAioHandle *ioh)
{
	if (handles == NULL || INSTR_TIME_IS_ZERO(handle_usage(ioh)->started))
		return;
	Assert(ioh->owner_procno == MyProcNumber);
	Assert(aio_usage[handle_usage(ioh)->kind].in_flight > 0);
	aio_usage[handle_usage(ioh)->kind].in_flight--;
	INSTR_TIME_SET_ZERO(handle_usage(ioh)->started);
}

/*
 * This process is about to wait for an I/O, of this process or of another.
 * If it need not, nothing is counted.  An error ends the wait, too; its time is
 * lost then.
 */
void
AioBeginWait(PgAioHandle *ioh, uint64 generation)
{
	PgAioHandleState state;

	waiting_for = AIO_KIND_NONE;
	if (pgaio_io_was_recycled(ioh, generation, &state) ||
		state == PGAIO_HS_COMPLETED_SHARED || state == PGAIO_HS_COMPLETED_LOCAL)
		return;

	/* if it is recycled right now, this is the kind of its successor */
	waiting_for = kind_of(ioh);
	INSTR_TIME_SET_CURRENT(waiting_since);
}

/* The wait has ended. */
void
AioEndWait(void)
{
	if (waiting_for == AIO_KIND_NONE)
		return;
	AioCountWait(waiting_for, waiting_since);
	waiting_for = AIO_KIND_NONE;
}
