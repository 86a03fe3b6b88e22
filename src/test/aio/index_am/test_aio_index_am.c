/*-------------------------------------------------------------------------
 *
 * test_aio_index_am.c
 *	  Access methods of an extension, which say what may be done with their
 *	  inserts, and others of its code that we know nothing about.
 *
 * Each is GiST under another name, with an aminsert() of its own that counts
 * how it is called.  "plain" has registered nothing, so its entries are
 * inserted as PostgreSQL always did, and it may look into other indexes
 * meanwhile (plain_looks_for()).  "batched" has its entries collected and
 * drained, and allows as many tasks as GiST does.  "serial" allows one task at
 * a time.
 *
 * "single" is a table access method, heap's with a multi_insert() that fails
 * and a tuple_insert() that counts.  copy_numbers() has COPY call the extension
 * for its input, values_of_another_time() has rows go to a receiver of its own,
 * and wrap_receivers() has those of all statements pass one, that calls itself
 * what theirs does.  querying_elements(), querying_hash(), querying_compare()
 * and deep_compare() are what an index calls, and run queries or have much on
 * the stack.
 *
 * The code of each runs in the session that counts; nothing is shared.
 *
 * Tests: src/test/aio/index_am/sql/index_am.sql.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/gist_private.h"
#include "access/heapam.h"
#include "access/table.h"
#include "access/tableam.h"
#include "aio/index_am.h"
#include "aio/read.h"
#include "catalog/pg_type.h"
#include "commands/copy.h"
#include "executor/executor.h"
#include "executor/spi.h"
#include "fmgr.h"
#include "funcapi.h"
#include "lib/stringinfo.h"
#include "parser/parse_node.h"
#include "parser/parse_relation.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/fmgrprotos.h"
#include "utils/geo_decls.h"
#include "utils/guc.h"
#include "utils/rel.h"

PG_MODULE_MAGIC;

PG_FUNCTION_INFO_V1(plain_handler);
PG_FUNCTION_INFO_V1(batched_handler);
PG_FUNCTION_INFO_V1(serial_handler);
PG_FUNCTION_INFO_V1(single_handler);
PG_FUNCTION_INFO_V1(single_rows);
PG_FUNCTION_INFO_V1(copy_numbers);
PG_FUNCTION_INFO_V1(values_of_another_time);
PG_FUNCTION_INFO_V1(wrap_receivers);
PG_FUNCTION_INFO_V1(calls);
PG_FUNCTION_INFO_V1(querying_elements);
PG_FUNCTION_INFO_V1(querying_hash);
PG_FUNCTION_INFO_V1(deep_compare);
PG_FUNCTION_INFO_V1(querying_compare);
PG_FUNCTION_INFO_V1(plain_looks_for);
PG_FUNCTION_INFO_V1(register_again);
PG_FUNCTION_INFO_V1(register_contradiction);

/* How one access method has been called. */
typedef struct AmCalls
{
	int			inserts;
	int			in_tasks;		/* of these */
	int			running;		/* tasks that are inserting now */
	int			running_max;
	int			pages;			/* that were reported as they arrived */
	int			collected;
	int			drained;
} AmCalls;

static AmCalls plain_calls;
static AmCalls batched_calls;
static AmCalls serial_calls;

/* GiST's aminsert(), counted. */
static bool
insert(AmCalls *calls, Relation index, Datum *values, bool *isnull,
	   ItemPointer tid, Relation heap, IndexUniqueCheck check_unique,
	   bool unchanged, IndexInfo *info)
{
	bool		result;

	calls->inserts++;
	if (aio_current_task != NULL)
	{
		calls->in_tasks++;
		calls->running++;
		calls->running_max = Max(calls->running_max, calls->running);
	}
	result = gistinsert(index, values, isnull, tid, heap, check_unique,
						unchanged, info);
	if (aio_current_task != NULL)
		calls->running--;
	return result;
}

/* What "plain" runs for each entry, with its value, or NULL. */
static char *plain_query = NULL;
static int	plain_found = 0;	/* by it */

static void
look_for(Datum value)
{
	Oid			type = POINTOID;
	bool		isnull;

	SPI_connect();
	if (SPI_execute_with_args(plain_query, 1, &type, &value, NULL, false, 0) != SPI_OK_SELECT)
		elog(ERROR, "not a query: %s", plain_query);
	plain_found += DatumGetInt64(SPI_getbinval(SPI_tuptable->vals[0],
											   SPI_tuptable->tupdesc, 1, &isnull));
	SPI_finish();
}

/* Begin to run a query for each entry, or end it; says how many were found. */
Datum
plain_looks_for(PG_FUNCTION_ARGS)
{
	int			found = plain_found;

	if (plain_query != NULL)
		pfree(plain_query);
	plain_query = PG_ARGISNULL(0) ? NULL :
		MemoryContextStrdup(TopMemoryContext, text_to_cstring(PG_GETARG_TEXT_PP(0)));
	plain_found = 0;
	PG_RETURN_INT32(found);
}

static bool
plain_insert(Relation index, Datum *values, bool *isnull, ItemPointer tid,
			 Relation heap, IndexUniqueCheck check_unique, bool unchanged,
			 IndexInfo *info)
{
	if (plain_query != NULL)
		look_for(values[0]);
	return insert(&plain_calls, index, values, isnull, tid, heap, check_unique,
				  unchanged, info);
}

static bool
batched_insert(Relation index, Datum *values, bool *isnull, ItemPointer tid,
			   Relation heap, IndexUniqueCheck check_unique, bool unchanged,
			   IndexInfo *info)
{
	return insert(&batched_calls, index, values, isnull, tid, heap,
				  check_unique, unchanged, info);
}

static bool
serial_insert(Relation index, Datum *values, bool *isnull, ItemPointer tid,
			  Relation heap, IndexUniqueCheck check_unique, bool unchanged,
			  IndexInfo *info)
{
	return insert(&serial_calls, index, values, isnull, tid, heap,
				  check_unique, unchanged, info);
}

/* AioTaskHook */
static void
batched_page_arrived(void *event, void *arg)
{
	const AioPageEvent *arrived = event;
	const AioIndexEntry *entry = arg;

	if (arrived->rel != entry->index)
		elog(ERROR, "a page of another relation was reported");
	batched_calls.pages++;
}

/* Points to the left of the origin are not collected. */
static bool
batched_collect(AioIndexBatch *batch, const AioIndexRow *row,
				const Datum *values, const bool *isnull)
{
	if (!isnull[0] && DatumGetPointP(values[0])->x < 0)
		return false;
	if (!AioCollectValues(batch, row, values, isnull))
		return false;
	batched_calls.collected++;
	return true;
}

static void
batched_drain(AioIndexBatch *batch, AioEntry *entries, AioScope *scope)
{
	batched_calls.drained += batch->nentries;
	AioDrainOrdered(batch, entries, scope);
}

static const AioIndexAmOps batched_ops = {
	.insert = batched_insert,
	.concurrency = AIO_INDEX_STATES,
	.page_arrived = batched_page_arrived,
	.may_collect = AioTypeHasOrder,
	.collect = batched_collect,
	.collects_input = true,
	.sort = AioSortByType,
	.drain = batched_drain,
};

static const AioIndexAmOps serial_ops = {
	.insert = serial_insert,
	.concurrency = AIO_INDEX_SERIAL,
};

void
_PG_init(void)
{
	AioRegisterIndexAm(&batched_ops);
	AioRegisterIndexAm(&serial_ops);
}

/* GiST, but for how an entry is inserted. */
static Datum
gist_with(aminsert_function insert)
{
	IndexAmRoutine *routine = (IndexAmRoutine *)
		DatumGetPointer(OidFunctionCall0(F_GISTHANDLER));

	routine->aminsert = insert;
	PG_RETURN_POINTER(routine);
}

Datum
plain_handler(PG_FUNCTION_ARGS)
{
	return gist_with(plain_insert);
}

Datum
batched_handler(PG_FUNCTION_ARGS)
{
	return gist_with(batched_insert);
}

Datum
serial_handler(PG_FUNCTION_ARGS)
{
	return gist_with(serial_insert);
}

static void
refuse_rows(Relation rel, TupleTableSlot **slots, int nslots, CommandId cid,
			int options, BulkInsertState bistate)
{
	ereport(ERROR,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 errmsg("several rows at a time are not supported")));
}

/* rows that "single" has got */
static int	single_inserts;

static void
insert_single(Relation rel, TupleTableSlot *slot, CommandId cid, int options,
			  struct BulkInsertStateData *bistate)
{
	single_inserts++;
	GetHeapamTableAmRoutine()->tuple_insert(rel, slot, cid, options, bistate);
}

/* heap's refuses tables that are not its own; these are empty */
static double
build_nothing(Relation table, Relation index, IndexInfo *info,
			  bool allow_sync, bool anyvisible, bool progress,
			  BlockNumber start, BlockNumber nblocks,
			  IndexBuildCallback callback, void *callback_state,
			  TableScanDesc scan)
{
	return 0;
}

Datum
single_handler(PG_FUNCTION_ARGS)
{
	static TableAmRoutine single;

	single = *GetHeapamTableAmRoutine();
	single.multi_insert = refuse_rows;
	single.tuple_insert = insert_single;
	single.index_build_range_scan = build_nothing;
	PG_RETURN_POINTER(&single);
}

/* How many rows has it got since this was asked last? */
Datum
single_rows(PG_FUNCTION_ARGS)
{
	int			rows = single_inserts;

	single_inserts = 0;
	PG_RETURN_INT32(rows);
}

/* A receiver of rows; of those that it passes on, if there is somebody. */
typedef struct Receiver
{
	DestReceiver pub;
	DestReceiver *inner;
	struct Receiver *self;		/* nothing that one of PostgreSQL's has here */
	int			rows;
	int			wrong;
} Receiver;

/* The row has the value of a setting, which is another one from then on. */
static bool
check_time(TupleTableSlot *slot, DestReceiver *self)
{
	Receiver   *receiver = (Receiver *) self;
	char		number[20];
	bool		isnull;

	receiver->wrong += DatumGetInt32(slot_getattr(slot, 1, &isnull)) != receiver->rows;
	snprintf(number, sizeof(number), "%d", ++receiver->rows);
	SetConfigOption("test_aio.row", number, PGC_USERSET, PGC_S_SESSION);
	return true;
}

static void
ignore_start(DestReceiver *self, int operation, TupleDesc desc)
{
}

static void
ignore_end(DestReceiver *self)
{
}

/*
 * Of a query whose first column is the setting test_aio.row, how many rows have
 * that of another row?  Its receiver has this CommandDest.
 */
Datum
values_of_another_time(PG_FUNCTION_ARGS)
{
	Receiver	receiver = {.pub = {check_time, ignore_start, ignore_end, ignore_end,
	PG_GETARG_INT32(1)}};
	SPIExecuteOptions options = {.dest = &receiver.pub};

	SetConfigOption("test_aio.row", "0", PGC_USERSET, PGC_S_SESSION);
	SPI_connect();
	SPI_execute_extended(text_to_cstring(PG_GETARG_TEXT_PP(0)), &options);
	SPI_finish();
	PG_RETURN_INT32(receiver.wrong);
}

static bool
pass_row(TupleTableSlot *slot, DestReceiver *self)
{
	Receiver   *receiver = (Receiver *) self;

	receiver->rows++;
	return receiver->inner->receiveSlot(slot, receiver->inner);
}

static void
pass_start(DestReceiver *self, int operation, TupleDesc desc)
{
	Receiver   *receiver = (Receiver *) self;

	receiver->inner->rStartup(receiver->inner, operation, desc);
}

static void
pass_end(DestReceiver *self)
{
	Receiver   *receiver = (Receiver *) self;

	receiver->inner->rShutdown(receiver->inner);
}

static ExecutorRun_hook_type next_run = NULL;

/* ExecutorRun_hook */
static void
run_wrapped(QueryDesc *query, ScanDirection direction, uint64 count)
{
	Receiver	receiver = {.pub = {pass_row, pass_start, pass_end, pass_end, query->dest->mydest},
	.inner = query->dest};

	receiver.self = &receiver;
	query->dest = &receiver.pub;
	if (next_run)
		next_run(query, direction, count);
	else
		standard_ExecutorRun(query, direction, count);
	query->dest = receiver.inner;
	if (receiver.pub.mydest == DestIntoRel)
		ereport(NOTICE, (errmsg("%d rows were passed on", receiver.rows)));
}

/* From now on, or no longer. */
Datum
wrap_receivers(PG_FUNCTION_ARGS)
{
	if (PG_GETARG_BOOL(0))
	{
		next_run = ExecutorRun_hook;
		ExecutorRun_hook = run_wrapped;
	}
	else
		ExecutorRun_hook = next_run;
	PG_RETURN_VOID();
}

/* what copy_numbers() is at */
static int	copy_next;
static int	copy_last;

/* copy_data_source_cb */
static int
next_numbers(void *outbuf, int minread, int maxread)
{
	int			bytes = 0;

	while (copy_next <= copy_last && maxread - bytes > 20)
	{
		if (copy_next % 1000 == 0)
			ereport(NOTICE, (errmsg("number %d", copy_next)));
		/* keys that come in order do not wait */
		bytes += sprintf((char *) outbuf + bytes, "%d\n",
						 (int) ((int64) (copy_next < copy_last ? copy_next : 1) * 7919 % 1000003));
		copy_next++;
	}
	return bytes;
}

Datum
copy_numbers(PG_FUNCTION_ARGS)
{
	Relation	rel = table_open(PG_GETARG_OID(0), RowExclusiveLock);
	ParseState *pstate = make_parsestate(NULL);
	CopyFromState cstate;
	uint64		rows;

	copy_next = 1;
	copy_last = PG_GETARG_INT32(1);
	addRangeTableEntryForRelation(pstate, rel, RowExclusiveLock, NULL, false, false);
	cstate = BeginCopyFrom(pstate, rel, NULL, NULL, false, next_numbers, NIL, NIL);
	rows = CopyFrom(cstate);
	EndCopyFrom(cstate);
	table_close(rel, NoLock);
	PG_RETURN_INT64(rows);
}

/* What has been called, and forget it. */
Datum
calls(PG_FUNCTION_ARGS)
{
	const char *am = text_to_cstring(PG_GETARG_TEXT_PP(0));
	AmCalls    *counts = strcmp(am, "plain") == 0 ? &plain_calls :
		strcmp(am, "batched") == 0 ? &batched_calls : &serial_calls;
	TupleDesc	desc;
	Datum		values[6];
	bool		nulls[6] = {0};

	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	values[0] = Int32GetDatum(counts->inserts);
	values[1] = Int32GetDatum(counts->in_tasks);
	values[2] = Int32GetDatum(counts->running_max);
	values[3] = Int32GetDatum(counts->pages);
	values[4] = Int32GetDatum(counts->collected);
	values[5] = Int32GetDatum(counts->drained);
	memset(counts, 0, sizeof(AmCalls));
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(desc), values, nulls)));
}

Datum
register_again(PG_FUNCTION_ARGS)
{
	AioRegisterIndexAm(&batched_ops);
	PG_RETURN_VOID();
}

/* Entries would be collected, and never inserted. */
Datum
register_contradiction(PG_FUNCTION_ARGS)
{
	static const AioIndexAmOps never_drained = {
		.insert = plain_insert,
		.collect = batched_collect,
	};

	AioRegisterIndexAm(&never_drained);
	PG_RETURN_VOID();
}

/* A query that is not read-only, in the midst of whatever an index does. */
static void
query(void)
{
	SPI_connect();
	if (SPI_execute("SELECT count(*) FROM pg_class WHERE oid < 10", false, 0) != SPI_OK_SELECT)
		elog(ERROR, "query failed");
	SPI_finish();
}

/* GIN's extractValue() of arrays */
Datum
querying_elements(PG_FUNCTION_ARGS)
{
	query();
	return ginarrayextract(fcinfo);
}

Datum
querying_hash(PG_FUNCTION_ARGS)
{
	query();
	return hashint4(fcinfo);
}

/* PostgreSQL lets a function have as much, as its own stack is larger. */
Datum
deep_compare(PG_FUNCTION_ARGS)
{
	volatile char frame[900 * 1024];

	for (size_t i = 0; i < sizeof(frame); i += 1024)
		frame[i] = (char) i;
	if (frame[1024] != 0)
		elog(ERROR, "the stack has changed");
	return btint4cmp(fcinfo);
}

/* Of points, which have no operator class of PostgreSQL's. */
Datum
querying_compare(PG_FUNCTION_ARGS)
{
	Point	   *a = PG_GETARG_POINT_P(0);
	Point	   *b = PG_GETARG_POINT_P(1);

	query();
	if (a->x != b->x)
		PG_RETURN_INT32(a->x < b->x ? -1 : 1);
	PG_RETURN_INT32(a->y < b->y ? -1 : a->y > b->y);
}
