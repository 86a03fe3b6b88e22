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

#include "commands/explain.h"
#include "commands/explain_state.h"
#include "executor/executor.h"
#include "executor/spi.h"
#include "fmgr.h"
#include "foreign/fdwapi.h"
#include "nodes/nodeFuncs.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/inval.h"
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

	ExecutorRun_hook = run;
	ExecutorFinish_hook = finish;
	explain_per_node_hook = explain_node;
}
