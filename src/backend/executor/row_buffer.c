/*-------------------------------------------------------------------------
 *
 * row_buffer.c
 *	  INSERT puts rows into the heap in batches, as COPY does.
 *
 * One WAL record describes all rows that go to a page, and the page is locked
 * once for them.  Rows are kept back, in the order in which they come, until
 * there are enough, or the statement's backlog is drained; then they go into
 * the heap, into the indexes, and to the triggers, as COPY's do.
 *
 * INVARIANT-37: nobody can tell.  Rows are kept back only where nothing is
 * done for each row but inserting it (no RETURNING, no trigger before it, no
 * check after it), where the rows after a failing one have no side effects
 * (guard_stack.c), and where all rows go to one table, since the order of rows
 * would otherwise be lost.  They are inserted before anybody could see them,
 * in the same places as the backlog, and before a subtransaction begins that
 * they would belong to.
 *
 * Tests: src/test/aio/index/t/001_backlog.pl,
 *		  src/test/aio/index/t/002_random.pl.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/heaptoast.h"
#include "access/htup_details.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "aio/backlog.h"
#include "aio/index_backlog.h"
#include "aio/index_insert.h"
#include "catalog/catalog.h"
#include "commands/trigger.h"
#include "executor/executor.h"
#include "guard.h"
#include "utils/memutils.h"
#include "utils/rel.h"

/* COPY's limits */
#define ROWS_MAX	1000
#define BYTES_MAX	65535

typedef struct AioRowBuffer
{
	AioKeptRows kept;			/* must be first */
	ModifyTableState *mtstate;
	ResultRelInfo *rri;
	TupleDesc	desc;			/* not reference-counted */
	int			nslots;			/* made so far */
	int			nused;
	TupleTableSlot *slots[ROWS_MAX];
	bool		alone[ROWS_MAX];	/* may fail, being too large for a page */
} AioRowBuffer;

/*
 * May rows of this table be kept back?  Those of other access methods have
 * other slots, and may be told only by COPY that there are several.  Asked once
 * per statement and table.
 */
static bool
rows_may_wait(ModifyTableState *mtstate, ResultRelInfo *rri)
{
	ModifyTable *node = (ModifyTable *) mtstate->ps.plan;

	if (node->onConflictAction != ONCONFLICT_NONE ||
		mtstate->mt_partition_tuple_routing != NULL ||
		rri->ri_projectReturning != NULL || rri->ri_FdwRoutine != NULL ||
		IsCatalogRelation(rri->ri_RelationDesc) ||
		!AioIsHeap(rri->ri_RelationDesc))
		return false;
	return AioLaterRowsHaveNoSideEffects(rri, mtstate->ps.state, NULL);
}

/*
 * Keep a row back.  Returns how many bytes it has.
 */
static Size
keep_row(AioRowBuffer *buffer, TupleTableSlot *slot)
{
	TupleTableSlot *copy;
	bool		should_free;
	HeapTuple	tuple;

	Assert(buffer->nused <= buffer->nslots);
	Assert(buffer->nused < ROWS_MAX);
	if (buffer->nused == buffer->nslots)
	{
		MemoryContext old = MemoryContextSwitchTo(GetMemoryChunkContext(buffer));

		buffer->slots[buffer->nslots++] =
			MakeSingleTupleTableSlot(buffer->desc,
									 table_slot_callbacks(buffer->rri->ri_RelationDesc));
		MemoryContextSwitchTo(old);
	}
	copy = buffer->slots[buffer->nused];
	ExecCopySlot(copy, slot);
	copy->tts_tableOid = slot->tts_tableOid;
	tuple = ExecFetchSlotHeapTuple(copy, false, &should_free);
	Assert(!should_free);

	/*
	 * A value that is stored out of line is read when the row is inserted,
	 * which may fail, and may have to stay inline (STORAGE PLAIN).
	 */
	buffer->alone[buffer->nused++] = tuple->t_len > TOAST_TUPLE_THRESHOLD ||
		HeapTupleHasExternal(tuple);
	return tuple->t_len;
}

/* Insert some of the rows, and their index entries; tell triggers. */
static void
insert_rows(AioRowBuffer *buffer, TupleTableSlot **slots, int n)
{
	ModifyTableState *mtstate = buffer->mtstate;
	EState	   *estate = mtstate->ps.state;
	ResultRelInfo *rri = buffer->rri;
	List	  **rechecks;
	MemoryContext old;

	Assert(n > 0 && n <= ROWS_MAX);
	old = MemoryContextSwitchTo(GetPerTupleMemoryContext(estate));
	table_multi_insert(rri->ri_RelationDesc, slots, n,
					   estate->es_output_cid, 0, NULL);
	MemoryContextSwitchTo(old);

	rechecks = AioInsertIndexBatch(rri, slots, n, estate->es_output_cid,
								   estate, NULL, NULL);
	for (int i = 0; i < n; i++)
	{
		List	   *recheck = NIL;

		if (rechecks != NULL)
			recheck = rechecks[i];
		else if (rri->ri_NumIndices > 0)
			recheck = ExecInsertIndexTuples(rri, slots[i], estate,
											false, false, NULL, NIL, false);
		ExecARInsertTriggers(estate, rri, slots[i], recheck,
							 mtstate->mt_transition_capture);
		list_free(recheck);
		ExecClearTuple(slots[i]);
	}
}

/*
 * AioKeptRows.flush: insert the rows that were kept back.  One that may fail
 * goes alone: if it fails, those before it are in, with their keys.
 *
 * The statement may be in the middle of a row, whose checks call a function
 * that opens a table, so what expressions are evaluated for is left as it is.
 */
static void
flush_rows(AioKeptRows *rows)
{
	AioRowBuffer *buffer = (AioRowBuffer *) rows;
	ExprContext *econtext = GetPerTupleExprContext(buffer->mtstate->ps.state);
	TupleTableSlot *row = econtext->ecxt_scantuple;
	int			n = buffer->nused;
	int			first = 0;

	buffer->nused = 0;
	for (int i = 0; i < n; i++)
	{
		if (!buffer->alone[i])
			continue;
		if (i > first)
			insert_rows(buffer, &buffer->slots[first], i - first);
		insert_rows(buffer, &buffer->slots[i], 1);
		first = i + 1;
	}
	if (n > first)
		insert_rows(buffer, &buffer->slots[first], n - first);
	econtext->ecxt_scantuple = row;
}

/* Make a buffer for a table's rows, which lives as long as the statement. */
static AioKeptRows *
make_buffer(ModifyTableState *mtstate, ResultRelInfo *rri, MemoryContext context)
{
	MemoryContext old = MemoryContextSwitchTo(context);
	AioRowBuffer *buffer = palloc(sizeof(AioRowBuffer));

	buffer->kept.flush = flush_rows;
	buffer->mtstate = mtstate;
	buffer->rri = rri;
	buffer->desc = CreateTupleDescCopyConstr(RelationGetDescr(rri->ri_RelationDesc));
	buffer->nslots = 0;
	buffer->nused = 0;
	MemoryContextSwitchTo(old);
	return &buffer->kept;
}

/*
 * INSERT is about to put a row into the heap: keep it back?  It counts as
 * inserted, then.
 */
bool
AioBufferRow(ModifyTableState *mtstate, ResultRelInfo *rri,
			 TupleTableSlot *slot, bool canSetTag)
{
	EState	   *estate = mtstate->ps.state;
	AioStatementBacklog *statement;
	AioTableBacklog *table;

	if (!aio_await_index_inserts || mtstate->operation != CMD_INSERT ||
		IsolationIsSerializable())
		return false;
	table = AioGetTableBacklog(rri, estate, estate->es_output_cid, NULL);
	if (table == NULL)
		return false;

	statement = table->statement;
	if (!table->rows_checked)
	{
		table->rows_checked = true;
		if (statement->cid == estate->es_output_cid &&
			rows_may_wait(mtstate, rri))
			table->rows_kept = make_buffer(mtstate, rri, statement->context);
	}
	if (table->rows_kept == NULL ||
		statement->short_drains >= AIO_SHORT_DRAINS_MAX)
		return false;

	/* a subscription's worker might look for them */
	if (!AioNobodyLooks(table))
	{
		AioFlushKeptRows(statement);
		table->rows_kept = NULL;
		return false;
	}

	Assert(!statement->draining);
	statement->bytes_kept += keep_row((AioRowBuffer *) table->rows_kept, slot);
	statement->rows_kept++;
	Assert(((AioRowBuffer *) table->rows_kept)->nused <= statement->rows_kept);
	if (canSetTag)
		estate->es_processed++;
	if (statement->rows_kept >= ROWS_MAX || statement->bytes_kept >= BYTES_MAX)
		AioFlushKeptRows(statement);
	return true;
}
