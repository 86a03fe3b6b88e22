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

AioSessionStats aio_session_stats_data;

/* Begin anew; what is under way stays counted as under way. */
void
AioStatsReset(void)
{
	int			reads_in_flight = aio_session_stats_data.reads_in_flight;
	int			suspended_tasks = aio_session_stats_data.suspended_tasks;

	memset(&aio_session_stats_data, 0, sizeof(aio_session_stats_data));
	aio_session_stats_data.reads_in_flight = reads_in_flight;
	aio_session_stats_data.reads_in_flight_max = reads_in_flight;
	aio_session_stats_data.suspended_tasks = suspended_tasks;
	INSTR_TIME_SET_CURRENT(aio_session_stats_data.last_change);
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
	if (stats->suspended_tasks > 0)
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
	AioStatsAdvance();
	aio_session_stats_data.reads_in_flight--;
}

/* The number of suspended tasks changes by so many. */
void
AioStatsSuspended(int change)
{
	AioStatsAdvance();
	aio_session_stats_data.suspended_tasks += change;
}
