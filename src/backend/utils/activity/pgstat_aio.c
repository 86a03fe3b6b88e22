/*-------------------------------------------------------------------------
 *
 * pgstat_aio.c
 *	  Cumulative statistics of futures, and of index inserts.
 *
 * Two custom kinds of upstream's cumulative statistics.  What a process has
 * counted (usage.c) is added when upstream reports its own statistics, which
 * is after a transaction, and from time to time in processes that have none.
 * Latencies and failures are added at once: the process that completes an I/O
 * may be one that never reports, and be in a critical section.
 *
 * The numbers of custom kinds are few, and extensions have theirs built in.  So
 * ours are the last two that no preloaded library has taken.  If there are not
 * even two, there are no statistics.
 *
 * They are kept in a file of their own (pgstat_internals.c), because
 * PostgreSQL without us would take the usual one for damaged if it found them
 * in it.
 *
 * Statistics of an index go when it is dropped, or when the transaction that
 * has created it aborts.  Upstream writes such drops to WAL, and PostgreSQL
 * without us could not replay one of a kind that it does not know; so there are
 * none, and ours go whenever upstream's of the relation do.
 *
 * Tests: src/test/aio/stats/t/001_statistics.pl.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "aio/pgstat_aio.h"
#include "aio/quick_io.h"
#include "aio/usage.h"
#include "miscadmin.h"
#include "port/pg_bitutils.h"
#include "utils/elog.h"
#include "utils/guc.h"
#include "utils/pgstat_internal.h"
#include "utils/rel.h"

typedef struct SharedStats
{
	LWLock		lock;			/* protects what is not atomic */
	AioStats	stats;
} SharedStats;

typedef struct SharedIndexStats
{
	PgStatShared_Common header;
	AioIndexStats stats;
} SharedIndexStats;

/* what has been added to the shared statistics already */
static AioKindUsage reported[AIO_KINDS];

static void init_stats(void *stats);
static bool flush_stats(bool nowait);
static void reset_stats(TimestampTz ts);
static void take_snapshot(void);
static bool flush_index(PgStat_EntryRef *entry_ref, bool nowait);
static void reset_index(PgStatShared_Common *header, TimestampTz ts);

static const PgStat_KindInfo kind_info = {
	.name = "aio",
	.fixed_amount = true,
	.write_to_file = true,
	.shared_size = sizeof(SharedStats),
	.shared_data_off = offsetof(SharedStats, stats),
	.shared_data_len = sizeof(AioStats),
	.init_shmem_cb = init_stats,
	.flush_static_cb = flush_stats,
	.reset_all_cb = reset_stats,
	.snapshot_cb = take_snapshot,
};

static const PgStat_KindInfo index_kind_info = {
	.name = "aio_index",
	.fixed_amount = false,
	.write_to_file = true,
	.shared_size = sizeof(SharedIndexStats),
	.shared_data_off = offsetof(SharedIndexStats, stats),
	.shared_data_len = sizeof(AioIndexStats),
	.pending_size = sizeof(AioIndexStats),
	.flush_pending_cb = flush_index,
	.reset_timestamp_cb = reset_index,
};

/* The numbers of both kinds, or PGSTAT_KIND_INVALID where there are none. */
PgStat_Kind aio_stats_kind = PGSTAT_KIND_INVALID;
PgStat_Kind aio_index_stats_kind = PGSTAT_KIND_INVALID;

/* The shared statistics, or NULL where there are none. */
static SharedStats *
shared_stats(void)
{
	if (pgStatLocal.shmem == NULL || aio_stats_kind == PGSTAT_KIND_INVALID)
		return NULL;
	return pgstat_get_custom_shmem_data(aio_stats_kind);
}

/* ------------------------------------------------------------------------
 * Futures
 * ------------------------------------------------------------------------
 */

static void
init_stats(void *stats)
{
	SharedStats *shared = stats;

	LWLockInitialize(&shared->lock, LWTRANCHE_PGSTATS_DATA);
	MemSet(&shared->stats, 0, sizeof(shared->stats));
}

/* One that was started then is complete.  In a critical section, perhaps. */
static void
count_latency(AioFutureKind kind, instr_time start)
{
	SharedStats *shared = shared_stats();
	instr_time	latency;
	uint64		us;
	int			bucket;

	Assert(kind > AIO_KIND_NONE && kind < AIO_KINDS);
	if (shared == NULL)
		return;
	INSTR_TIME_SET_CURRENT(latency);
	INSTR_TIME_SUBTRACT(latency, start);
	us = INSTR_TIME_GET_MICROSEC(latency);
	bucket = us < 2 ? 0 : pg_leftmost_one_pos64(us);
	bucket = Min(bucket, AIO_LATENCY_BUCKETS - 1);
	pg_atomic_fetch_add_u64(&shared->stats.latency[kind][bucket], 1);
}

/*
 * One that is no I/O of upstream's is complete, or nobody will know when it is,
 * if 'start' is zero.
 */
void
AioCountEnd(AioFutureKind kind, instr_time start)
{
	Assert(aio_usage[kind].in_flight > 0);
	aio_usage[kind].in_flight--;
	if (!INSTR_TIME_IS_ZERO(start))
		count_latency(kind, start);
}

/* pgaio_io_process_completion(): its result is known, in any process. */
void
AioCountCompletion(PgAioHandle *ioh)
{
	const AioHandleUsage *usage = AioUsageOfHandle(ioh);

	if (usage == NULL)
		return;
	Assert(!INSTR_TIME_IS_ZERO(usage->started));
	count_latency(usage->kind, usage->started);
	if (ioh->owner_procno == MyProcNumber &&
		(usage->kind == AIO_KIND_READ || usage->kind == AIO_KIND_WRITE))
		AioNoteTime(usage->kind, ioh, usage->started);
	if (ioh->result < 0 || ioh->distilled_result.status == PGAIO_RS_ERROR)
		AioStatFailure(usage->backend_type, usage->kind);
}

/*
 * One has failed that a process of this type had started.  In a critical
 * section, perhaps.
 */
void
AioStatFailure(BackendType backend_type, AioFutureKind kind)
{
	SharedStats *shared = shared_stats();

	Assert(kind > AIO_KIND_NONE && kind < AIO_KINDS);
	Assert(backend_type < BACKEND_NUM_TYPES);
	if (shared != NULL)
		pg_atomic_fetch_add_u64(&shared->stats.failed[backend_type][kind], 1);
}

/*
 * flush_static_cb: add what has been counted since the last time.  Returns
 * true if it could not be, for want of the lock.
 */
static bool
flush_stats(bool nowait)
{
	SharedStats *shared = shared_stats();
	AioKindUsage now[AIO_KINDS];

	/* whatever is counted is counted there */
	AioUsageNow(now);
	if (memcmp(now, reported, sizeof(now)) == 0)
		return false;
	if (!nowait)
		LWLockAcquire(&shared->lock, LW_EXCLUSIVE);
	else if (!LWLockConditionalAcquire(&shared->lock, LW_EXCLUSIVE))
		return true;

	for (int kind = 0; kind < AIO_KINDS; kind++)
	{
		AioStatKind *to = &shared->stats.kinds[MyBackendType][kind];
		AioKindUsage *from = &now[kind];
		AioKindUsage *last = &reported[kind];
		instr_time	wait_time = from->wait_time;

		INSTR_TIME_SUBTRACT(wait_time, last->wait_time);
		/* counters only grow, and no maximum is less than what there is now */
		Assert(from->started >= last->started);
		Assert(from->in_flight_max >= from->in_flight);
#define ADD(counter) to->counter += from->counter - last->counter
		ADD(started);
		ADD(completed_inline);
		ADD(suspended);
		ADD(waited);
		ADD(cancelled);
		ADD(bytes);
		ADD(batches);
		ADD(depth);
#undef ADD
		to->wait_time += INSTR_TIME_GET_MICROSEC(wait_time);
		to->batch_max = Max(to->batch_max, from->batch_max);
		to->in_flight_max = Max(to->in_flight_max, from->in_flight_max);

		for (int bucket = 0; bucket < AIO_DEPTH_BUCKETS; bucket++)
			shared->stats.depth[kind][bucket] += aio_depths[kind][bucket];

		/* maxima are those since then */
		aio_usage[kind].batch_max = 0;
		aio_usage[kind].in_flight_max = aio_usage[kind].in_flight;
		from->batch_max = aio_usage[kind].batch_max;
		from->in_flight_max = aio_usage[kind].in_flight_max;
	}
	LWLockRelease(&shared->lock);
	memcpy(reported, now, sizeof(now));
	MemSet(aio_depths, 0, sizeof(aio_depths));
	return false;
}

/*
 * Add what this process has counted, if it has counted anything.  Called where
 * upstream reports I/O of processes without transactions.
 */
void
AioReportStats(bool nowait)
{
	if (shared_stats() != NULL)
		(void) flush_stats(nowait);
}

static void
reset_stats(TimestampTz ts)
{
	SharedStats *shared = shared_stats();
	AioStats   *stats;

	if (shared == NULL)
		return;
	stats = &shared->stats;
	LWLockAcquire(&shared->lock, LW_EXCLUSIVE);
	MemSet(stats->kinds, 0, sizeof(stats->kinds));
	MemSet(stats->depth, 0, sizeof(stats->depth));
	for (int kind = 0; kind < AIO_KINDS; kind++)
	{
		for (int type = 0; type < BACKEND_NUM_TYPES; type++)
			pg_atomic_write_u64(&stats->failed[type][kind], 0);
		for (int bucket = 0; bucket < AIO_LATENCY_BUCKETS; bucket++)
			pg_atomic_write_u64(&stats->latency[kind][bucket], 0);
	}
	stats->stat_reset_timestamp = ts;
	LWLockRelease(&shared->lock);
}

/*
 * The statistics are about to be written, after the checkpoint that ends here.
 */
void
AioStampStats(XLogRecPtr checkpoint)
{
	/* the only process that is left, as no lock is taken */
	Assert(!IsUnderPostmaster || AmCheckpointerProcess());
	shared_stats()->stats.checkpoint = checkpoint;
}

/* They have been read.  Were they written by the server that ran last? */
bool
AioStatsAreCurrent(XLogRecPtr checkpoint)
{
	return shared_stats()->stats.checkpoint == checkpoint;
}

static void
take_snapshot(void)
{
	SharedStats *shared = shared_stats();
	AioStats   *snapshot = pgstat_get_custom_snapshot_data(aio_stats_kind);

	LWLockAcquire(&shared->lock, LW_SHARED);
	memcpy(snapshot, &shared->stats, sizeof(AioStats));
	LWLockRelease(&shared->lock);
}

/*
 * The statistics, as of the transaction's snapshot of statistics if it has
 * one; or only zeros, where there are none.  They are upstream's, and valid
 * until the next call.
 */
const AioStats *
AioFetchStats(void)
{
	static AioStats none;

	if (shared_stats() == NULL)
		return &none;
	pgstat_snapshot_fixed(aio_stats_kind);
	return pgstat_get_custom_snapshot_data(aio_stats_kind);
}

/* Begin anew, for all processes. */
void
AioResetStats(void)
{
	if (shared_stats() == NULL)
		return;
	pgstat_reset_of_kind(aio_stats_kind);
}

/* ------------------------------------------------------------------------
 * Indexes
 * ------------------------------------------------------------------------
 */

/*
 * Where to count for an index until statistics are reported, or NULL where
 * that may not be: finding the place may need memory.
 */
AioIndexStats *
AioPendingIndexStats(Relation index)
{
	PgStat_EntryRef *entry_ref;

	if (CritSectionCount > 0 || !pgstat_track_counts || shared_stats() == NULL)
		return NULL;
	entry_ref = pgstat_prep_pending_entry(aio_index_stats_kind, MyDatabaseId,
										  RelationGetRelid(index), NULL);
	return entry_ref->pending;
}

static bool
flush_index(PgStat_EntryRef *entry_ref, bool nowait)
{
	AioIndexStats *from = entry_ref->pending;
	AioIndexStats *to = &((SharedIndexStats *) entry_ref->shared_stats)->stats;

	if (!pgstat_lock_entry(entry_ref, nowait))
		return false;
	to->entries += from->entries;
	to->batches += from->batches;
	to->leaf_visits += from->leaf_visits;
	to->reads += from->reads;
	to->suspensions += from->suspensions;
	pgstat_unlock_entry(entry_ref);
	return true;
}

static void
reset_index(PgStatShared_Common *header, TimestampTz ts)
{
	((SharedIndexStats *) header)->stats.stat_reset_timestamp = ts;
}

/*
 * Statistics of an index of this database, or NULL if there are none.  Like
 * AioFetchStats().
 */
const AioIndexStats *
AioFetchIndexStats(Oid index)
{
	if (shared_stats() == NULL)
		return NULL;
	return (const AioIndexStats *)
		pgstat_fetch_entry(aio_index_stats_kind, MyDatabaseId, index);
}

/* Begin anew, for one index of this database. */
void
AioResetIndexStats(Oid index)
{
	if (shared_stats() == NULL)
		return;
	pgstat_reset(aio_index_stats_kind, MyDatabaseId, index);
}

/*
 * pgstat_drop_entry_ext(): what upstream drops with a relation, of which it
 * keeps account in WAL and for prepared transactions, goes for ours, too.
 */
void
AioDropStats(PgStat_Kind kind, Oid dboid, uint64 objid)
{
	if (kind == PGSTAT_KIND_RELATION && shared_stats() != NULL &&
		!pgstat_drop_entry_ext(aio_index_stats_kind, dboid, objid, true))
		pgstat_request_entry_refs_gc();
}

/* pgstat_copy_relation_stats(): an index takes the place of another one. */
void
AioCopyIndexStats(Relation dst, Relation src)
{
	const AioIndexStats *stats = AioFetchIndexStats(RelationGetRelid(src));
	PgStat_EntryRef *entry_ref;

	if (stats == NULL)
		return;
	entry_ref = pgstat_get_entry_ref_locked(aio_index_stats_kind, MyDatabaseId,
											RelationGetRelid(dst), false);
	((SharedIndexStats *) entry_ref->shared_stats)->stats = *stats;
	pgstat_unlock_entry(entry_ref);
}

/*
 * When the libraries have been preloaded, but may still register kinds: find
 * numbers for ours.  Extensions are told to take the first ones.
 */
void
AioPgStatInitialize(void)
{
	PgStat_Kind found[2] = {PGSTAT_KIND_INVALID, PGSTAT_KIND_INVALID};
	int			nfound = 0;
	int			save_log_min_messages = log_min_messages;

	for (PgStat_Kind kind = PGSTAT_KIND_CUSTOM_MAX; kind >= PGSTAT_KIND_CUSTOM_MIN && nfound < lengthof(found); kind--)
	{
		if (pgstat_get_kind_info(kind) == NULL)
			found[nfound++] = kind;
	}
	if (nfound < lengthof(found))
	{
		ereport(WARNING,
				(errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
				 errmsg("there are no statistics of asynchronous I/O"),
				 errdetail("Libraries in \"%s\" have registered nearly all custom cumulative statistics that there can be.",
						   "shared_preload_libraries")));
		return;
	}

	/* upstream would log a message for each */
	log_min_messages = FATAL;
	pgstat_register_kind(found[1], &kind_info);
	pgstat_register_kind(found[0], &index_kind_info);
	log_min_messages = save_log_min_messages;
	aio_stats_kind = found[1];
	aio_index_stats_kind = found[0];
}
