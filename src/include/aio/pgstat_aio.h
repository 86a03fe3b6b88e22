/*-------------------------------------------------------------------------
 *
 * pgstat_aio.h
 *	  Cumulative statistics of futures, and of index inserts.
 *
 * Two kinds of upstream's cumulative statistics: one of a fixed size, by type
 * of process and kind of future, and one with an entry for each index.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AIO_PGSTAT_AIO_H
#define AIO_PGSTAT_AIO_H

#include "access/xlogdefs.h"
#include "aio/usage.h"
#include "datatype/timestamp.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "port/atomics.h"
#include "utils/pgstat_kind.h"
#include "utils/relcache.h"

/*
 * To be counted up whenever AioStats or AioIndexStats change: the number is in
 * the name of the file, and so are those of both kinds.
 */
#define AIO_STATS_FORMAT		"4"

/*
 * Each bucket of a histogram is twice as wide as the one before: latencies
 * from 2^i microseconds on, and depths from 2^i.  The first bucket of latencies
 * begins at 0, the last ones are open.
 */
#define AIO_LATENCY_BUCKETS		25

/* Counters of one type of process and one kind of future. */
typedef struct AioStatKind
{
	PgStat_Counter started;
	PgStat_Counter completed_inline;
	PgStat_Counter suspended;
	PgStat_Counter waited;
	PgStat_Counter cancelled;
	PgStat_Counter bytes;
	PgStat_Counter batches;
	PgStat_Counter batch_max;
	PgStat_Counter depth;
	PgStat_Counter wait_time;	/* microseconds */
	PgStat_Counter in_flight_max;
} AioStatKind;

/*
 * The statistics of fixed size.  Those counted where no lock can be taken are
 * atomic.
 */
typedef struct AioStats
{
	TimestampTz stat_reset_timestamp;
	XLogRecPtr	checkpoint;		/* after which they were written */
	AioStatKind kinds[BACKEND_NUM_TYPES][AIO_KINDS];
	pg_atomic_uint64 failed[BACKEND_NUM_TYPES][AIO_KINDS];
	pg_atomic_uint64 latency[AIO_KINDS][AIO_LATENCY_BUCKETS];
	PgStat_Counter depth[AIO_KINDS][AIO_DEPTH_BUCKETS];
} AioStats;

/* Of one index. */
typedef struct AioIndexStats
{
	PgStat_Counter entries;		/* that have waited in a backlog */
	PgStat_Counter batches;		/* in which they were inserted */
	PgStat_Counter leaf_visits; /* pages found for them */
	PgStat_Counter reads;		/* of its pages, started for entries */
	PgStat_Counter suspensions; /* of tasks that insert into it */
	TimestampTz stat_reset_timestamp;
} AioIndexStats;

extern PGDLLIMPORT PgStat_Kind aio_stats_kind;
extern PGDLLIMPORT PgStat_Kind aio_index_stats_kind;
extern void AioPgStatInitialize(void);
extern const AioStats *AioFetchStats(void);
extern const AioIndexStats *AioFetchIndexStats(Oid index);
extern void AioReportStats(bool nowait);
extern void AioResetStats(void);
extern void AioResetIndexStats(Oid index);
extern void AioCountCompletion(PgAioHandle *ioh);
extern void AioStatFailure(BackendType backend_type, AioFutureKind kind);
extern AioIndexStats *AioPendingIndexStats(Relation index);
extern void AioDropStats(PgStat_Kind kind, Oid dboid, uint64 objid);
extern void AioCopyIndexStats(Relation dst, Relation src);
extern void AioStampStats(XLogRecPtr checkpoint);
extern bool AioStatsAreCurrent(XLogRecPtr checkpoint);

struct PgStat_KindInfo;

/* xlog_internals.c */
extern XLogRecPtr AioLastCheckpoint(void);

/* pgstat_internals.c, called by seams */
extern const char *AioStatsFile(void);
extern bool AioWritesStats(const struct PgStat_KindInfo *info);
extern void AioWriteStatsFiles(void);
extern void AioReadStatsFiles(void);
extern void AioRemoveStatsFile(void);

#endif							/* AIO_PGSTAT_AIO_H */
