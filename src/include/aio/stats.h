/*-------------------------------------------------------------------------
 *
 * stats.h
 *	  Counters of this session's tasks and awaited reads.
 *
 * Plain backend-local memory: counting costs an increment, and reading the
 * clock happens only when a task suspends or a read starts.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AIO_STATS_H
#define AIO_STATS_H

#include "aio/task.h"
#include "portability/instr_time.h"

typedef struct AioSessionStats
{
	AioTaskCounters tasks;		/* where they are shown; see aio_task_counters */
	uint64		reads;			/* started by tasks */
	int			reads_in_flight;
	int			reads_in_flight_max;
	instr_time	wait_time;		/* scheduler had nothing to run */

	/* index entries that have waited in a backlog */
	uint64		entries_collected;
	uint64		batches;		/* in which they have been inserted */
	uint64		batches_full;	/* of these, because memory was used up */
	uint64		batches_before_query;	/* likewise, because of another query */
	uint64		bytes_spilled;	/* of entries, to temporary files */
	uint64		leaf_visits;	/* pages found for them, by search or forecast */

	/* foreign keys, and others that are checked by triggers */
	uint64		checks_direct;	/* without a query */
	uint64		checks_by_query;
	uint64		check_keys_ahead;	/* looked up ahead of their checks */

	/* extensions of files */
	uint64		preallocation_hits; /* that used preallocated space */
	uint64		preallocation_waits;	/* that waited for it */
	uint64		preallocation_requests;

	/* WAL */
	uint64		wal_writes;		/* started without waiting for them */
	uint64		flushes_awaited;	/* before a page could be written */
	uint64		commits_held;	/* whose replies waited, while we did not */

	/* integral of reads_in_flight over time, in read-microseconds */
	double		reads_in_flight_us;
	/* time during which at least one task was suspended, in microseconds */
	double		suspended_us;
	instr_time	last_change;	/* when the two integrals were advanced */
} AioSessionStats;

extern PGDLLIMPORT AioSessionStats aio_session_stats_data;

extern void AioStatsReset(void);
extern void AioStatsShown(AioSessionStats *shown);
extern void AioStatsAdvance(void);
extern void AioStatsReadStarted(void);
extern void AioStatsReadEnded(void);
extern void AioStatsSuspended(int change);

#endif							/* AIO_STATS_H */
