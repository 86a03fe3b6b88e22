/*-------------------------------------------------------------------------
 *
 * test_aio_hooks.c
 *	  An extension that refuses to be loaded if somebody has taken a hook.
 *
 * It is told the names of the server's hook variables, finds each by its name,
 * and then takes those of the executor and of EXPLAIN, as extensions do that
 * work in the executor's place: each function calls upstream's own one and
 * counts.
 *
 * It can also register as much as PostgreSQL has room for in a process, and go
 * on after a query's error as nobody should, without a subtransaction.
 *
 * Tests: src/test/aio/hooks/t/001_hooks.pl.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <dlfcn.h>

#include "access/htup_details.h"
#include "access/rmgr.h"
#include "access/table.h"
#include "access/xlog_internal.h"
#include "access/xloginsert.h"
#include "commands/explain.h"
#include "commands/explain_state.h"
#include "executor/executor.h"
#include "executor/spi.h"
#include "fmgr.h"
#include "foreign/fdwapi.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "storage/bufmgr.h"
#include "storage/checksum.h"
#include "storage/smgr.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/inval.h"
#include "utils/rel.h"
#include "utils/syscache.h"
#include "utils/timeout.h"
#include "utils/varlena.h"
#include "utils/wait_event.h"

PG_MODULE_MAGIC;

static char *names;
static int	runs = 0;
static int	finishes = 0;
static int	nodes = 0;

/* how many rows a sequential scan may return; 0 is any */
static int	rows_max;
static int	rows;
static ExecProcNodeMtd scan;	/* upstream's function of the scan */

static TupleTableSlot *
govern(PlanState *node)
{
	TupleTableSlot *slot = scan(node);

	if (!TupIsNull(slot) && ++rows > rows_max)
		ereport(ERROR,
				errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
				errmsg("more than %d rows are read", rows_max));
	return slot;
}

/* PlanState walker: stand before a scan. */
static bool
stand_before(PlanState *node, void *context)
{
	if (!IsA(node, SeqScanState))
		return planstate_tree_walker(node, stand_before, context);
	scan = node->ExecProcNodeReal;
	rows = 0;
	ExecSetExecProcNode(node, govern);
	return true;
}

static void
run(QueryDesc *query, ScanDirection direction, uint64 count)
{
	runs++;
	if (rows_max > 0)
		stand_before(query->planstate, NULL);
	standard_ExecutorRun(query, direction, count);
}

static void
finish(QueryDesc *query)
{
	finishes++;
	standard_ExecutorFinish(query);
}

static void
explain_node(PlanState *planstate, List *ancestors, const char *relationship,
			 const char *plan_name, ExplainState *es)
{
	nodes++;
}

PG_FUNCTION_INFO_V1(test_aio_hooks_called);

/* How often have our hooks been called in this session? */
Datum
test_aio_hooks_called(PG_FUNCTION_ARGS)
{
	PG_RETURN_TEXT_P(cstring_to_text(psprintf("runs=%s finishes=%s nodes=%s",
											  runs > 0 ? "some" : "none",
											  finishes > 0 ? "some" : "none",
											  nodes > 0 ? "some" : "none")));
}

static void
relation_changed(Datum arg, Oid relid)
{
}

static void
catalog_changed(Datum arg, int cacheid, uint32 hashvalue)
{
}

static void
at_timeout(void)
{
}

PG_FUNCTION_INFO_V1(test_aio_hooks_take_slots);

/*
 * Register, once per process, so many callbacks for changed relations and for
 * changed catalogs, and so many timeouts.  Who finds no room ends the process.
 */
Datum
test_aio_hooks_take_slots(PG_FUNCTION_ARGS)
{
	static bool done = false;

	if (!done)
	{
		done = true;
		for (int i = 0; i < PG_GETARG_INT32(0); i++)
			CacheRegisterRelcacheCallback(relation_changed, (Datum) 0);
		for (int i = 0; i < PG_GETARG_INT32(1); i++)
			CacheRegisterSyscacheCallback(PROCOID, catalog_changed, (Datum) 0);
		for (int i = 0; i < PG_GETARG_INT32(2); i++)
			(void) RegisterTimeout(USER_TIMEOUT, at_timeout);
	}
	PG_RETURN_VOID();
}

PG_FUNCTION_INFO_V1(test_aio_hooks_take_wait_events);

/* Name so many wait events. */
Datum
test_aio_hooks_take_wait_events(PG_FUNCTION_ARGS)
{
	for (int i = 0; i < PG_GETARG_INT32(0); i++)
		(void) WaitEventExtensionNew(psprintf("TestAioHooks%d", i));
	PG_RETURN_VOID();
}

/*
 * A resource manager whose redo writes a page past the buffers, where nobody
 * can have it yet when a server recovers from a crash.
 */
typedef struct PageRecord
{
	RelFileLocator locator;
	BlockNumber block;
	PGIOAlignedBlock page;
} PageRecord;

static void
redo_page(XLogReaderState *reader)
{
	PageRecord *record = palloc_aligned(sizeof(PageRecord), PG_IO_ALIGN_SIZE, 0);
	SMgrRelation reln;

	memcpy(record, XLogRecGetData(reader), sizeof(PageRecord));
	reln = smgropen(record->locator, INVALID_PROC_NUMBER);
	PageSetLSN((Page) record->page.data, reader->EndRecPtr);
	PageSetChecksumInplace((Page) record->page.data, record->block);
	smgrwrite(reln, MAIN_FORKNUM, record->block, record->page.data, true);
	pfree(record);
}

static void
describe_page(StringInfo buf, XLogReaderState *record)
{
	appendStringInfoString(buf, "page");
}

static const char *
identify_page(uint8 info)
{
	return "PAGE";
}

static const RmgrData page_rmgr = {
	.rm_name = "test_aio_hooks",
	.rm_redo = redo_page,
	.rm_desc = describe_page,
	.rm_identify = identify_page,
};

PG_FUNCTION_INFO_V1(test_aio_hooks_add);

/*
 * Add so much to the second column, an int like the first one, of the rows of a
 * page, and log the page.
 */
Datum
test_aio_hooks_add(PG_FUNCTION_ARGS)
{
	Relation	rel = table_open(PG_GETARG_OID(0), RowExclusiveLock);
	PageRecord *record = palloc_aligned(sizeof(PageRecord), PG_IO_ALIGN_SIZE, MCXT_ALLOC_ZERO);
	Buffer		buffer = ReadBuffer(rel, PG_GETARG_INT32(1));
	Page		page = BufferGetPage(buffer);

	LockBuffer(buffer, BUFFER_LOCK_EXCLUSIVE);
	START_CRIT_SECTION();
	for (OffsetNumber i = FirstOffsetNumber; i <= PageGetMaxOffsetNumber(page); i++)
	{
		ItemId		item = PageGetItemId(page, i);
		HeapTupleHeader tuple = (HeapTupleHeader) PageGetItem(page, item);

		if (ItemIdIsNormal(item))
			((int32 *) ((char *) tuple + tuple->t_hoff))[1] += PG_GETARG_INT32(2);
	}
	record->locator = rel->rd_locator;
	record->block = PG_GETARG_INT32(1);
	memcpy(record->page.data, page, BLCKSZ);
	MarkBufferDirty(buffer);
	XLogBeginInsert();
	XLogRegisterData(record, sizeof(PageRecord));
	PageSetLSN(page, XLogInsert(RM_EXPERIMENTAL_ID, 0));
	END_CRIT_SECTION();
	UnlockReleaseBuffer(buffer);
	table_close(rel, NoLock);
	PG_RETURN_VOID();
}

PG_FUNCTION_INFO_V1(test_aio_hooks_parts_handler);

static ExecForeignBatchInsert_function insert_batch;

/* Hand a batch on in parts of 30 rows, and count what is inserted. */
static TupleTableSlot **
insert_parts(EState *estate, ResultRelInfo *rri, TupleTableSlot **slots,
			 TupleTableSlot **plan_slots, int *nslots)
{
	int			inserted = 0;

	for (int i = 0; i < *nslots; i += 30)
	{
		int			n = Min(30, *nslots - i);

		if (insert_batch(estate, rri, slots + i, plan_slots ? plan_slots + i : NULL, &n) != NULL)
			inserted += n;
	}
	*nslots = inserted;
	return inserted > 0 ? slots : NULL;
}

/* postgres_fdw with batches in parts. */
Datum
test_aio_hooks_parts_handler(PG_FUNCTION_ARGS)
{
	PGFunction	handler = load_external_function("$libdir/postgres_fdw",
												 "postgres_fdw_handler", true, NULL);
	FdwRoutine *routine;

	LOCAL_FCINFO(call, 0);

	InitFunctionCallInfoData(*call, NULL, 0, InvalidOid, NULL, NULL);
	routine = (FdwRoutine *) DatumGetPointer(handler(call));
	insert_batch = routine->ExecForeignBatchInsert;
	routine->ExecForeignBatchInsert = insert_parts;
	PG_RETURN_POINTER(routine);
}

PG_FUNCTION_INFO_V1(test_aio_hooks_swallow);

/* Execute this query, and go on if it fails.  Returns its SQLSTATE, or NULL. */
Datum
test_aio_hooks_swallow(PG_FUNCTION_ARGS)
{
	MemoryContext old = CurrentMemoryContext;
	char	   *query = text_to_cstring(PG_GETARG_TEXT_PP(0));
	char	   *sqlstate = NULL;

	SPI_connect();
	PG_TRY();
	{
		SPI_execute(query, true, 0);
	}
	PG_CATCH();
	{
		sqlstate = MemoryContextStrdup(old, unpack_sql_state(geterrcode()));
		FlushErrorState();
	}
	PG_END_TRY();
	SPI_finish();
	MemoryContextSwitchTo(old);
	if (sqlstate == NULL)
		PG_RETURN_NULL();
	PG_RETURN_TEXT_P(cstring_to_text(sqlstate));
}

void
_PG_init(void)
{
	List	   *list;
	int			found = 0;

	DefineCustomStringVariable("test_aio_hooks.names",
							   "Names of the variables that must be null.",
							   NULL, &names, "", PGC_USERSET, GUC_LIST_INPUT,
							   NULL, NULL, NULL);
	DefineCustomIntVariable("test_aio_hooks.rows",
							"How many rows a sequential scan may return; 0 is any.",
							NULL, &rows_max, 0, 0, PG_INT32_MAX, PGC_USERSET, 0,
							NULL, NULL, NULL);
	if (!SplitGUCList(pstrdup(names), ',', &list))
		elog(FATAL, "invalid list of hooks");
	foreach_ptr(char, name, list)
	{
		void	  **hook = dlsym(RTLD_DEFAULT, name);

		if (hook == NULL)
			elog(FATAL, "there is no %s", name);
		if (*hook != NULL)
			ereport(FATAL, errmsg("test_aio_hooks has to be loaded first"),
					errdetail("Somebody has taken %s.", name));
		found++;
	}
	elog(LOG, "%d hooks are free", found);

	if (process_shared_preload_libraries_in_progress)
		RegisterCustomRmgr(RM_EXPERIMENTAL_ID, &page_rmgr);
	ExecutorRun_hook = run;
	ExecutorFinish_hook = finish;
	explain_per_node_hook = explain_node;
}
