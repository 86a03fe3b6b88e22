/*-------------------------------------------------------------------------
 *
 * test_aio_lookup.c
 *	  The window of lookups ahead, a probe, and reads ahead, without a
 *	  statement; and a function that keeps something from call to call.
 *
 * Tests: src/test/aio/lookup/sql/window.sql,
 *		  src/test/aio/lookup/t/001_lookups.pl,
 *		  src/test/aio/lookup/t/002_order.pl,
 *		  src/test/aio/lookup/t/006_victims.pl.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/stratnum.h"
#include "access/table.h"
#include "aio/index_policy.h"
#include "aio/read.h"
#include "aio/task.h"
#include "catalog/index.h"
#include "catalog/pg_type_d.h"
#include "executor/spi.h"
#include "fmgr.h"
#include "lookup.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/rel.h"

PG_MODULE_MAGIC;

PG_FUNCTION_INFO_V1(window_distances);

Datum
window_distances(PG_FUNCTION_ARGS)
{
	char	   *events = text_to_cstring(PG_GETARG_TEXT_PP(0));
	int			n = strlen(events);
	Datum	   *distances = palloc_array(Datum, n + 1);
	AioLookupWindow window;

	AioWindowOpen(&window, PG_GETARG_INT32(1), PG_GETARG_INT64(2));
	window.needed = PG_GETARG_INT32(3);
	window.in_vain = PG_GETARG_INT32(4);
	distances[0] = Int32GetDatum(window.distance);
	for (int i = 0; i < n; i++)
	{
		if (events[i] == 'n')
			window.needed++;
		else if (events[i] == 'v')
			window.in_vain++;
		else if (events[i] == 'R' || events[i] == 'M')
			AioWindowLooked(&window, 1, events[i] == 'R');
		else
			AioWindowAdjust(&window, events[i] == 'r');
		distances[i + 1] = Int32GetDatum(AioWindowDistance(&window));
	}
	PG_RETURN_ARRAYTYPE_P(construct_array_builtin(distances, n + 1, INT4OID));
}

PG_FUNCTION_INFO_V1(probe_steps);

/* Probe an index of integers; the steps that this takes. */
Datum
probe_steps(PG_FUNCTION_ARGS)
{
	Oid			index = PG_GETARG_OID(0);
	AioLookupTarget target = {.nkeys = 1,.direction = ForwardScanDirection};
	ScanKeyData key;
	bool		begun = false;
	Relation	heap = table_open(IndexGetRelation(index, false), AccessShareLock);
	int			steps = 0;

	target.heap = heap;
	target.index = index_open(index, AccessShareLock);
	target.ops = AioFindIndexAm(target.index->rd_indam->aminsert);
	ScanKeyInit(&key, 1, PG_GETARG_INT16(2), F_INT4EQ, PG_GETARG_DATUM(1));
	target.keys = &key;
	if (!AioMayProbe(&target))
		elog(ERROR, "the index cannot be probed");
	do
	{
		AioRunProbes(AioAddProbe(NIL, &target, &key, 1, &begun));
		steps++;
	} while (begun);
	index_close(target.index, AccessShareLock);
	table_close(heap, AccessShareLock);
	PG_RETURN_INT32(steps);
}

PG_FUNCTION_INFO_V1(read_ahead_in_tasks);

typedef struct ReadingTask
{
	Relation	index;
	BlockNumber block;
} ReadingTask;

typedef struct Reading
{
	Relation	index;
	Relation	heap;
	BlockNumber nblocks;
} Reading;

static void
read_ahead_in_task(void *arg)
{
	ReadingTask *task = arg;

	AioBeginRead(task->index, task->block);
}

/* AioScopeBody: what tasks are suspended in, we do meanwhile, several times */
static void
read_ahead(AioScope *scope, void *arg)
{
	Reading    *reading = arg;
	ReadingTask task = {.index = reading->index};
	AioTaskOptions options = {.subject = reading->index};

	for (BlockNumber block = 1; block < reading->nblocks; block++)
	{
		task.block = block;
		AioSpawn(scope, &options, read_ahead_in_task, &task, sizeof(task));
		for (BlockNumber other = 1; other <= 8; other++)
			AioBeginRead(reading->heap, (block * 8 + other) % reading->nblocks);
	}
}

/*
 * Have pages of an index read ahead by tasks, and those of its table besides.
 * Returns how often a task has been suspended.
 */
Datum
read_ahead_in_tasks(PG_FUNCTION_ARGS)
{
	Oid			index = PG_GETARG_OID(0);
	Reading		reading;
	uint64		suspensions = aio_task_counters.suspensions;

	reading.heap = table_open(IndexGetRelation(index, false), AccessShareLock);
	reading.index = index_open(index, AccessShareLock);
	reading.nblocks = PG_GETARG_INT32(1);
	AioScopeRun(read_ahead, &reading, NULL);
	AioReadAheadWaitAll();
	index_close(reading.index, AccessShareLock);
	table_close(reading.heap, AccessShareLock);
	PG_RETURN_INT32(aio_task_counters.suspensions - suspensions);
}

PG_FUNCTION_INFO_V1(fail_in_spi);

/* The argument, or an error while SPI is connected if 7 divides it. */
Datum
fail_in_spi(PG_FUNCTION_ARGS)
{
	int32		value = PG_GETARG_INT32(0);

	SPI_connect();
	SPI_execute("SELECT 1 FROM pg_class LIMIT 1", true, 1);
	if (value % 7 == 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("7 divides it")));
	SPI_finish();
	PG_RETURN_INT32(value);
}

PG_FUNCTION_INFO_V1(count_calls);

Datum
count_calls(PG_FUNCTION_ARGS)
{
	FmgrInfo   *flinfo = fcinfo->flinfo;

	if (flinfo->fn_extra == NULL)
		flinfo->fn_extra = MemoryContextAllocZero(flinfo->fn_mcxt, sizeof(int32));
	PG_RETURN_INT32(++*(int32 *) flinfo->fn_extra);
}
