/*-------------------------------------------------------------------------
 *
 * stats.c
 *	  Counters of this session's tasks and awaited reads.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "aio/stats.h"
#include "aio/usage.h"

AioSessionStats aio_session_stats_data;

/* what the counters were when they were shown from 0 on again */
static AioSessionStats base;

/*
 * Show them from 0 on again.  They go on counting, as others want to know what
 * has changed between two moments; but the maximum is that since now.
 */
void
AioStatsReset(void)
{
	AioStatsAdvance();
	base = aio_session_stats_data;
	base.tasks = aio_task_counters;
	aio_session_stats_data.reads_in_flight_max = aio_session_stats_data.reads_in_flight;
}

/* What is to be shown: what has been counted since then. */
void
AioStatsShown(AioSessionStats *shown)
{
	AioStatsAdvance();
	*shown = aio_session_stats_data;
	shown->tasks = aio_task_counters;
#define SINCE_BASE(counter) shown->counter -= base.counter
	SINCE_BASE(tasks.scopes);
	SINCE_BASE(tasks.tasks);
	SINCE_BASE(tasks.tasks_suspended);
	SINCE_BASE(tasks.tasks_failed);
	SINCE_BASE(tasks.tasks_dropped);
	SINCE_BASE(tasks.suspensions);
	for (int i = 0; i < AIO_SUSPEND_VERDICTS; i++)
		SINCE_BASE(tasks.blocked[i]);
	SINCE_BASE(reads);
	INSTR_TIME_SUBTRACT(shown->wait_time, base.wait_time);
	SINCE_BASE(entries_collected);
	SINCE_BASE(batches);
	SINCE_BASE(batches_full);
	SINCE_BASE(batches_before_query);
	SINCE_BASE(bytes_spilled);
	SINCE_BASE(leaf_visits);
	SINCE_BASE(checks_direct);
	SINCE_BASE(checks_by_query);
	SINCE_BASE(check_keys_ahead);
	SINCE_BASE(preallocation_hits);
	SINCE_BASE(preallocation_waits);
	SINCE_BASE(preallocation_requests);
	SINCE_BASE(wal_writes);
	SINCE_BASE(flushes_awaited);
	SINCE_BASE(commits_held);
	SINCE_BASE(reads_in_flight_us);
	SINCE_BASE(suspended_us);
#undef SINCE_BASE
}

/*
 * Bring the time integrals up to now.  Called before each change of what is
 * integrated, and before they are shown.
 */
void
AioStatsAdvance(void)
{
	AioSessionStats *stats = &aio_session_stats_data;
	instr_time	now;

	INSTR_TIME_SET_CURRENT(now);
	if (aio_task_counters.suspended > 0)
	{
		instr_time	elapsed = now;
		double		us;

		INSTR_TIME_SUBTRACT(elapsed, stats->last_change);
		us = INSTR_TIME_GET_DOUBLE(elapsed) * 1e6;
		stats->suspended_us += us;
		stats->reads_in_flight_us += us * stats->reads_in_flight;
	}
	stats->last_change = now;
}

/* A task has started a read. */
void
AioStatsReadStarted(void)
{
	AioSessionStats *stats = &aio_session_stats_data;

	AioStatsAdvance();
	stats->reads++;
	stats->reads_in_flight++;
	stats->reads_in_flight_max = Max(stats->reads_in_flight_max,
									 stats->reads_in_flight);
}

/* A task's read is known to be complete, or nobody is interested any more. */
void
AioStatsReadEnded(void)
{
	Assert(aio_session_stats_data.reads_in_flight > 0);
	AioStatsAdvance();
	aio_session_stats_data.reads_in_flight--;
}

/* The number of suspended tasks is going to change by so many. */
void
AioStatsSuspended(int change)
{
	AioKindUsage *usage = &aio_usage[AIO_KIND_TASK];

	AioStatsAdvance();
	usage->in_flight = aio_task_counters.suspended + change;
	Assert(usage->in_flight >= 0);
	usage->in_flight_max = Max(usage->in_flight_max, usage->in_flight);
}
