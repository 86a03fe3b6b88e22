/*-------------------------------------------------------------------------
 *
 * stat.c
 *	  SQL functions that show cumulative statistics.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "aio/pgstat_aio.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"

PG_MODULE_MAGIC_EXT(
					.name = "aio",
					.version = PG_VERSION
);

PG_FUNCTION_INFO_V1(aio_stat_futures);
PG_FUNCTION_INFO_V1(aio_stat_latency);
PG_FUNCTION_INFO_V1(aio_stat_depth);
PG_FUNCTION_INFO_V1(aio_stat_index);
PG_FUNCTION_INFO_V1(aio_stat_reset);
PG_FUNCTION_INFO_V1(aio_stat_reset_index);

/* A value, or NULL if it means nothing for this kind of future. */
static void
put(Datum *values, bool *nulls, int column, bool means_something, Datum value)
{
	if (means_something)
		values[column] = value;
	else
		nulls[column] = true;
}

/*
 * One row for each type of process and kind of future that has been seen.
 */
Datum
aio_stat_futures(PG_FUNCTION_ARGS)
{
#define FUTURES_COLS 16
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	const AioStats *stats;

	InitMaterializedSRF(fcinfo, 0);
	Assert(rsinfo->setDesc->natts == FUTURES_COLS);
	stats = AioFetchStats();
	for (int type = 0; type < BACKEND_NUM_TYPES; type++)
	{
		for (int kind = AIO_KIND_NONE + 1; kind < AIO_KINDS; kind++)
		{
			const AioStatKind *counters = &stats->kinds[type][kind];
			uint64		failed = pg_atomic_read_u64(unconstify(pg_atomic_uint64 *, &stats->failed[type][kind]));
			bool		is_io = kind != AIO_KIND_TASK;
			bool		has_bytes = is_io && (kind < AIO_KIND_WAL_FLUSH || kind == AIO_KIND_BACKUP);
			Datum		values[FUTURES_COLS] = {0};
			bool		nulls[FUTURES_COLS] = {0};
			int			i = 0;

			if (counters->started == 0 && counters->suspended == 0 &&
				counters->waited == 0 && failed == 0)
				continue;
			values[i++] = CStringGetTextDatum(GetBackendTypeDesc(type));
			values[i++] = CStringGetTextDatum(AioFutureKindName(kind));
			values[i++] = Int64GetDatum(counters->started);
			values[i++] = Int64GetDatum(counters->completed_inline);
			values[i++] = Int64GetDatum(counters->suspended);
			put(values, nulls, i++, is_io, Int64GetDatum(counters->waited));
			values[i++] = Int64GetDatum(failed);
			values[i++] = Int64GetDatum(counters->cancelled);
			put(values, nulls, i++, has_bytes, Int64GetDatum(counters->bytes));
			put(values, nulls, i++, is_io, Float8GetDatum(counters->wait_time / 1000.0));
			put(values, nulls, i++, has_bytes, Int64GetDatum(counters->batches));
			put(values, nulls, i++, has_bytes && counters->batches > 0,
				Float8GetDatum((double) counters->started / counters->batches));
			put(values, nulls, i++, has_bytes, Int64GetDatum(counters->batch_max));
			put(values, nulls, i++, is_io && counters->started > 0,
				Float8GetDatum((double) counters->depth / counters->started));
			values[i++] = Int64GetDatum(counters->in_flight_max);
			put(values, nulls, i++, stats->stat_reset_timestamp != 0,
				TimestampTzGetDatum(stats->stat_reset_timestamp));
			Assert(i == FUTURES_COLS);
			tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
		}
	}
	return (Datum) 0;
}

/*
 * One row for each bucket of a histogram that is not empty: kind, where the
 * bucket begins and ends (NULL if it does not), and how many are in it.
 */
static void
put_bucket(ReturnSetInfo *rsinfo, AioFutureKind kind, Datum from, Datum to,
		   bool open, uint64 n)
{
	Datum		values[4];
	bool		nulls[4] = {0};

	if (n == 0)
		return;
	Assert(rsinfo->setDesc->natts == lengthof(values));
	values[0] = CStringGetTextDatum(AioFutureKindName(kind));
	values[1] = from;
	put(values, nulls, 2, !open, to);
	values[3] = Int64GetDatum(n);
	tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
}

/* Latencies, in milliseconds. */
Datum
aio_stat_latency(PG_FUNCTION_ARGS)
{
	const AioStats *stats;

	InitMaterializedSRF(fcinfo, 0);
	stats = AioFetchStats();
	for (int kind = 0; kind < AIO_KINDS; kind++)
	{
		for (int i = 0; i < AIO_LATENCY_BUCKETS; i++)
			put_bucket((ReturnSetInfo *) fcinfo->resultinfo, kind,
					   Float8GetDatum(i == 0 ? 0 : (UINT64CONST(1) << i) / 1000.0),
					   Float8GetDatum((UINT64CONST(2) << i) / 1000.0),
					   i == AIO_LATENCY_BUCKETS - 1,
					   pg_atomic_read_u64(unconstify(pg_atomic_uint64 *, &stats->latency[kind][i])));
	}
	return (Datum) 0;
}

/* How many of a process were in flight when one had been started. */
Datum
aio_stat_depth(PG_FUNCTION_ARGS)
{
	const AioStats *stats;

	InitMaterializedSRF(fcinfo, 0);
	stats = AioFetchStats();
	for (int kind = 0; kind < AIO_KINDS; kind++)
	{
		for (int i = 0; i < AIO_DEPTH_BUCKETS; i++)
			put_bucket((ReturnSetInfo *) fcinfo->resultinfo, kind,
					   Int64GetDatum(INT64CONST(1) << i),
					   Int64GetDatum(INT64CONST(2) << i),
					   i == AIO_DEPTH_BUCKETS - 1, stats->depth[kind][i]);
	}
	return (Datum) 0;
}

/* Counters of an index; NULL if there are none. */
Datum
aio_stat_index(PG_FUNCTION_ARGS)
{
#define INDEX_COLS 6
	const AioIndexStats *stats = AioFetchIndexStats(PG_GETARG_OID(0));
	TupleDesc	tupdesc;
	Datum		values[INDEX_COLS];
	bool		nulls[INDEX_COLS] = {0};

	if (stats == NULL)
		PG_RETURN_NULL();
	if (get_call_result_type(fcinfo, NULL, &tupdesc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	Assert(tupdesc->natts == INDEX_COLS);
	values[0] = Int64GetDatum(stats->entries);
	values[1] = Int64GetDatum(stats->batches);
	values[2] = Int64GetDatum(stats->leaf_visits);
	values[3] = Int64GetDatum(stats->reads);
	values[4] = Int64GetDatum(stats->suspensions);
	put(values, nulls, 5, stats->stat_reset_timestamp != 0,
		TimestampTzGetDatum(stats->stat_reset_timestamp));
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(tupdesc, values, nulls)));
}

/* Begin counting anew, for all processes. */
Datum
aio_stat_reset(PG_FUNCTION_ARGS)
{
	AioResetStats();
	PG_RETURN_VOID();
}

/* Likewise, for one index. */
Datum
aio_stat_reset_index(PG_FUNCTION_ARGS)
{
	AioResetIndexStats(PG_GETARG_OID(0));
	PG_RETURN_VOID();
}
