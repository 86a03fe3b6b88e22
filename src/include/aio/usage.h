/*-------------------------------------------------------------------------
 *
 * usage.h
 *	  What this process has started and waited for, by kind of future.
 *
 * Counters in local memory that only grow, from which cumulative statistics
 * (pgstat_aio.c) and EXPLAIN take what has changed.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AIO_USAGE_H
#define AIO_USAGE_H

#include "portability/instr_time.h"
#include "storage/aio_internal.h"
#include "storage/relfilelocator.h"

/* What is pending, in statistics: AioFutureOps.kind. */
typedef enum AioFutureKind
{
	AIO_KIND_NONE,				/* what only tasks wait for; not shown */
	AIO_KIND_TASK,				/* tasks themselves */
	AIO_KIND_READ,				/* of pages, by anyone */
	AIO_KIND_WRITE,				/* of pages */
	AIO_KIND_PREALLOCATION,		/* space allocated ahead */
	AIO_KIND_WAL_WRITE,			/* writes of WAL */
	AIO_KIND_WAL_FLUSH,			/* of WAL */
	AIO_KIND_FOREIGN,			/* batches of rows for foreign servers */
	AIO_KIND_LOOKUP,			/* in indexes, ahead of need */
	AIO_KIND_WAL_SYNC,			/* of received WAL */
	AIO_KIND_BACKUP,			/* reads of files by base backups */
} AioFutureKind;

#define AIO_KINDS	(AIO_KIND_BACKUP + 1)

typedef struct AioKindUsage
{
	uint64		started;
	uint64		completed_inline;	/* before starting it had returned */
	uint64		suspended;		/* tasks, until it is complete */
	uint64		waited;			/* the process, likewise */
	uint64		cancelled;		/* nobody waits for it any more */
	uint64		bytes;
	uint64		batches;		/* submissions of one or more at once */
	uint64		batch_max;
	uint64		depth;			/* in flight when one is started, summed up */
	instr_time	wait_time;		/* of the process */
	int			in_flight;
	int			in_flight_max;
} AioKindUsage;

extern PGDLLIMPORT AioKindUsage aio_usage[AIO_KINDS];

/*
 * How many of its kind were in flight when one had been started, in buckets of
 * which each is twice as wide as the one before; since they were reported last
 */
#define AIO_DEPTH_BUCKETS		11
extern PGDLLIMPORT uint64 aio_depths[AIO_KINDS][AIO_DEPTH_BUCKETS];

/* reads of what AioWatchReads() was told */
extern PGDLLIMPORT uint64 aio_reads_watched;

/* What is known of an I/O of upstream's, beside its handle. */
typedef struct AioHandleUsage
{
	instr_time	started;		/* zero unless it has been counted */
	uint8		kind;
	uint8		backend_type;	/* of its owner */
} AioHandleUsage;

extern void AioUsageInitialize(void);
extern void AioUsageNow(AioKindUsage *usage);
extern void AioWatchReads(const RelFileLocator *locator);
extern const AioHandleUsage *AioUsageOfHandle(const PgAioHandle *ioh);
extern void AioCountStart(AioFutureKind kind, uint64 bytes);
extern void AioCountLookup(bool has_read, int ahead);
extern void AioCountWait(AioFutureKind kind, instr_time start);
extern const char *AioFutureKindName(AioFutureKind kind);

/* pgstat_aio.c, which adds latencies to what all processes have counted */
extern void AioCountEnd(AioFutureKind kind, instr_time start);

/* called by seams in upstream's AIO, and by whoever waits otherwise */
extern void AioCountSubmission(PgAioHandle **ios, int n);
extern void AioCountSynchronous(PgAioHandle *ioh);
extern void AioCountReclaim(PgAioHandle *ioh);
extern void AioBeginWait(PgAioHandle *ioh, uint64 generation);
extern void AioEndWait(void);

#endif							/* AIO_USAGE_H */
