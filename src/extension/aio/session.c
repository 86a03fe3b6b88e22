/*-------------------------------------------------------------------------
 *
 * session.c
 *	  SQL functions that show what the session's tasks did.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "aio/stats.h"
#include "fmgr.h"
#include "funcapi.h"
#include "utils/builtins.h"

PG_FUNCTION_INFO_V1(aio_session_stats);
PG_FUNCTION_INFO_V1(aio_session_blocked);
PG_FUNCTION_INFO_V1(aio_session_batches);
PG_FUNCTION_INFO_V1(aio_session_checks);
PG_FUNCTION_INFO_V1(aio_session_preallocation);
PG_FUNCTION_INFO_V1(aio_session_wal);
PG_FUNCTION_INFO_V1(aio_session_stats_reset);

/* The counters; in memory of the caller's context. */
static const AioSessionStats *
shown(void)
{
	AioSessionStats *stats = palloc(sizeof(AioSessionStats));

	AioStatsShown(stats);
	return stats;
}

/* A function's row, of counters that are not null. */
static Datum
row_of(FunctionCallInfo fcinfo, Datum *values, int nvalues)
{
	bool	   *nulls = palloc0_array(bool, nvalues);
	TupleDesc	tupdesc;

	if (get_call_result_type(fcinfo, NULL, &tupdesc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	Assert(tupdesc->natts == nvalues);

	return HeapTupleGetDatum(heap_form_tuple(tupdesc, values, nulls));
}

/*
 * The session's counters, as one row.
 */
Datum
aio_session_stats(PG_FUNCTION_ARGS)
{
#define SESSION_STATS_COLS 12
	const AioSessionStats *stats = shown();
	TupleDesc	tupdesc;
	Datum		values[SESSION_STATS_COLS] = {0};
	bool		nulls[SESSION_STATS_COLS] = {0};
	uint64		blocked = 0;
	int			i = 0;

	if (get_call_result_type(fcinfo, NULL, &tupdesc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	Assert(tupdesc->natts == SESSION_STATS_COLS);

	for (int v = 0; v < AIO_SUSPEND_VERDICTS; v++)
		blocked += stats->tasks.blocked[v];

	values[i++] = Int64GetDatum(stats->tasks.scopes);
	values[i++] = Int64GetDatum(stats->tasks.tasks);
	values[i++] = Int64GetDatum(stats->tasks.tasks - stats->tasks.tasks_suspended);
	values[i++] = Int64GetDatum(stats->tasks.tasks_suspended);
	values[i++] = Int64GetDatum(stats->tasks.tasks_failed);
	values[i++] = Int64GetDatum(stats->tasks.tasks_dropped);
	values[i++] = Int64GetDatum(stats->tasks.suspensions);
	values[i++] = Int64GetDatum(blocked);
	values[i++] = Int64GetDatum(stats->reads);
	values[i++] = Int32GetDatum(stats->reads_in_flight_max);
	if (stats->suspended_us > 0)
		values[i] = Float8GetDatum(stats->reads_in_flight_us / stats->suspended_us);
	else
		nulls[i] = true;
	i++;
	values[i++] = Float8GetDatum(INSTR_TIME_GET_MILLISEC(stats->wait_time));
	Assert(i == SESSION_STATS_COLS);

	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(tupdesc, values, nulls)));
}

/*
 * How often tasks blocked where they wanted to suspend, by reason.
 */
Datum
aio_session_blocked(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	const AioSessionStats *stats = shown();

	InitMaterializedSRF(fcinfo, 0);
	for (int v = 0; v < AIO_SUSPEND_VERDICTS; v++)
	{
		Datum		values[2];
		bool		nulls[2] = {0};

		if (stats->tasks.blocked[v] == 0)
			continue;
		values[0] = CStringGetTextDatum(AioSuspendVerdictName(v));
		values[1] = Int64GetDatum(stats->tasks.blocked[v]);
		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
	}
	return (Datum) 0;
}

/*
 * Index entries that were collected and inserted in batches.
 */
Datum
aio_session_batches(PG_FUNCTION_ARGS)
{
	const AioSessionStats *stats = shown();
	Datum		values[] = {
		Int64GetDatum(stats->entries_collected),
		Int64GetDatum(stats->batches),
		Int64GetDatum(stats->batches_full),
		Int64GetDatum(stats->batches_before_query),
		Int64GetDatum(stats->leaf_visits),
		Int64GetDatum(stats->bytes_spilled),
	};

	PG_RETURN_DATUM(row_of(fcinfo, values, lengthof(values)));
}

/*
 * Foreign keys that were checked, and what was looked up ahead for checks.
 */
Datum
aio_session_checks(PG_FUNCTION_ARGS)
{
	const AioSessionStats *stats = shown();
	Datum		values[] = {
		Int64GetDatum(stats->checks_direct),
		Int64GetDatum(stats->checks_by_query),
		Int64GetDatum(stats->check_keys_ahead),
	};

	PG_RETURN_DATUM(row_of(fcinfo, values, lengthof(values)));
}

/*
 * Space that was allocated ahead.
 */
Datum
aio_session_preallocation(PG_FUNCTION_ARGS)
{
	const AioSessionStats *stats = shown();
	Datum		values[] = {
		Int64GetDatum(stats->preallocation_hits),
		Int64GetDatum(stats->preallocation_waits),
		Int64GetDatum(stats->preallocation_requests),
	};

	PG_RETURN_DATUM(row_of(fcinfo, values, lengthof(values)));
}

/*
 * WAL that was written without waiting, and commits.
 */
Datum
aio_session_wal(PG_FUNCTION_ARGS)
{
	const AioSessionStats *stats = shown();
	Datum		values[] = {
		Int64GetDatum(stats->wal_writes),
		Int64GetDatum(stats->flushes_awaited),
		Int64GetDatum(stats->commits_held),
	};

	PG_RETURN_DATUM(row_of(fcinfo, values, lengthof(values)));
}

/*
 * Begin counting anew.
 */
Datum
aio_session_stats_reset(PG_FUNCTION_ARGS)
{
	AioStatsReset();
	PG_RETURN_VOID();
}
