/*-------------------------------------------------------------------------
 *
 * backlog_keys.c
 *	  Insert the keys of a backlog that are enforced.
 *
 * In index order they are inserted with a check that neither waits nor fails,
 * and what may be a duplicate is checked again in row order.  A session that
 * inserts in another order than that of its rows may have keys in an index that
 * another one waits for, and then wait for that one: a deadlock, where row
 * order would have had one of them wait.
 *
 * So this is done only where nobody else is there: no other transaction in
 * progress has written to the table, and none begins to until the keys are in,
 * because the gate of the table is closed (table_gate.c).  To others it looks
 * as if the rows had been inserted at that moment, one after the other, and no
 * key of theirs has met a transaction that is in progress.  All indexes of the
 * table whose keys are enforced take part, or none (backlog.c).  Otherwise the
 * keys are inserted in row order, index by index for each row, as if they had
 * not been collected, and their reads run ahead.
 *
 * Others wait at the gate meanwhile, so a backlog is inserted in portions.
 * After each, those who have waited go first: they have a lock on the table
 * then.  Who else writes is asked for each portion.  If somebody has waited for
 * long, the next one is so small that it should take a tenth of a second; they
 * grow again while nobody waits.  That is not aimed at before: where pages must
 * be read, small portions read many of them once more each time, and take
 * several times as long altogether.
 *
 * Where nobody else can write to the table anyway, or if the user wants it so,
 * all is inserted at once, without a gate.
 *
 * Tests: src/test/aio/isolation/specs/gate.spec,
 *		  src/test/aio/index/t/006_gate.pl, src/test/aio/sql.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "aio/index_backlog.h"
#include "aio/index_insert.h"
#include "aio/index_policy.h"
#include "aio/index_task.h"
#include "aio/table_gate.h"
#include "commands/copyfrom_internal.h"
#include "executor/instrument.h"
#include "miscadmin.h"
#include "portability/instr_time.h"
#include "storage/lmgr.h"
#include "utils/injection_point.h"
#include "utils/memutils.h"
#include "utils/rel.h"

/* limits of the rows whose keys are inserted while a gate is closed */
#define ROWS_MIN		1024
#define ROWS_MAX		(64 * 1024)

/* how long a gate should stay closed if somebody waits, in milliseconds */
#define GATE_TIME		100.0

/* after so many rows in row order, see whether the others have gone */
#define ROWS_IN_ROW_ORDER	1000

/* The index at this position, if the backlog has keys for it; or NULL. */
static AioIndexBacklog *
keys_at(AioTableBacklog *table, int position)
{
	AioIndexBacklog *backlog = &table->indexes[position];

	return backlog->batch.unique && backlog->first != NULL ? backlog : NULL;
}

/* The table for which a statement has keys, or NULL. */
static AioTableBacklog *
find_table(AioStatementBacklog *statement)
{
	AioTableBacklog *found = NULL;

	for (AioTableBacklog *table = statement->tables; table; table = table->next)
	{
		for (int i = 0; i < table->nindexes; i++)
		{
			if (keys_at(table, i) == NULL)
				continue;
			/* statements whose keys may wait insert into one table */
			Assert(found == NULL || found == table);
			found = table;
		}
	}
	return found;
}

/* The next portion: the keys of rows before this one.  Are there any? */
static bool
take_portion(AioTableBacklog *table, uint32 end)
{
	bool		any = false;

	for (int i = 0; i < table->nindexes; i++)
	{
		AioIndexBacklog *backlog = keys_at(table, i);

		if (backlog == NULL)
			continue;
		AioTakePortion(backlog, end);
		any |= backlog->batch.nentries > 0;
	}
	return any;
}

/* ------------------------------------------------------------------------
 * In index order
 * ------------------------------------------------------------------------
 */

/* Insert all keys index by index, without a gate. */
static void
insert_without_gate(AioTableBacklog *table)
{
	for (int i = 0; i < table->nindexes; i++)
	{
		AioIndexBacklog *backlog = keys_at(table, i);

		if (backlog != NULL)
			AioDrainIndex(backlog);
	}
	AioCheckConflicts(table->statement);
}

/*
 * A gate has been closed since then, until now: how many rows are inserted next
 * time?
 */
static void
adjust_portion(AioTableBacklog *table, instr_time begin)
{
	instr_time	time;
	double		ms;

	INSTR_TIME_SET_CURRENT(time);
	INSTR_TIME_SUBTRACT(time, begin);
	ms = INSTR_TIME_GET_MILLISEC(time);

	/* who is at the gate has a lock already */
	if (!AioOthersWrite(table->rri->ri_RelationDesc))
		table->rows_at_once = Min(table->rows_at_once * 2, ROWS_MAX);
	else if (ms > GATE_TIME)
		table->rows_at_once = Max((uint32) (table->rows_at_once * GATE_TIME / ms),
								  ROWS_MIN);
}

/*
 * Insert a portion index by index.  If the gate cannot be closed, returns false
 * and does nothing.
 */
static bool
insert_in_index_order(AioTableBacklog *table)
{
	AioEntry  **sorted = palloc0(sizeof(AioEntry *) * table->nindexes);
	volatile bool alone = false;
	instr_time	begin;

	/* this may look up catalogs, and wait for locks on these */
	for (int i = 0; i < table->nindexes; i++)
	{
		AioIndexBacklog *backlog = keys_at(table, i);

		if (backlog != NULL)
			sorted[i] = AioSortEntries(backlog);
	}

	INSTR_TIME_SET_CURRENT(begin);
	PG_TRY();
	{
		alone = AioCloseGate(table->rri->ri_RelationDesc);
		if (alone)
			INJECTION_POINT("aio-gate-closed",
							psprintf("%u rows", table->rows_at_once));
		for (int i = 0; alone && i < table->nindexes; i++)
		{
			AioIndexBacklog *backlog = keys_at(table, i);

			if (backlog != NULL)
				AioInsertSorted(backlog, sorted[i]);
		}
		if (alone)
		{
			AioCheckConflicts(table->statement);
			adjust_portion(table, begin);
		}
	}
	PG_FINALLY();
	{
		AioOpenGate();
	}
	PG_END_TRY();
	return alone;
}

/* ------------------------------------------------------------------------
 * In row order
 * ------------------------------------------------------------------------
 */

/* Insert a key as its row would have, in a task if there is a scope. */
static void
insert_key(AioIndexBacklog *backlog, IndexTuple tuple, AioScope *scope)
{
	AioStatementBacklog *statement = backlog->table->statement;
	AioIndexBatch *batch = &backlog->batch;
	CopyFromState cstate = statement->cstate;
	uint64		line = statement->base_line + AioGetEntryRow(tuple)->line;
	Datum		values[INDEX_MAX_KEYS];
	bool		isnull[INDEX_MAX_KEYS];
	AioIndexTask *task;

	Assert(batch->info->ii_NumIndexAttrs == RelationGetDescr(batch->index)->natts);
	index_deform_tuple(tuple, RelationGetDescr(batch->index), values, isnull);
	if (scope == NULL || backlog->ops->concurrency != AIO_INDEX_CONCURRENT)
	{
		if (scope != NULL)
			AioScopeJoin(scope);
		if (cstate != NULL)
			cstate->cur_lineno = line;
		index_insert(batch->index, values, isnull, &tuple->t_tid, batch->heap,
					 UNIQUE_CHECK_YES, false, batch->info);
		return;
	}
	task = AioPrepareIndexTask(scope, backlog->ops, batch->index, batch->heap,
							   batch->info, values, isnull, &tuple->t_tid);
	task->check_unique = UNIQUE_CHECK_YES;
	task->ordered = true;
	task->cur_lineno = cstate != NULL ? &cstate->cur_lineno : NULL;
	task->lineno = line;
	AioStartIndexTask(scope, task);
}

/* AioScopeBody, or without a scope: insert a portion row by row. */
static void
insert_rows(AioScope *scope, void *arg)
{
	AioTableBacklog *table = arg;
	AioEntry  **next = palloc0(sizeof(AioEntry *) * table->nindexes);
	AioEntry  **end = palloc0(sizeof(AioEntry *) * table->nindexes);

	for (int i = 0; i < table->nindexes; i++)
	{
		AioIndexBacklog *backlog = keys_at(table, i);

		if (backlog == NULL)
			continue;
		next[i] = AioListEntries(&backlog->batch);
		end[i] = next[i] + backlog->batch.nentries;
	}
	for (;;)
	{
		int			first = -1;

		CHECK_FOR_INTERRUPTS();
		for (int i = 0; i < table->nindexes; i++)
		{
			if (next[i] < end[i] &&
				(first < 0 || AioGetEntryRow(next[i]->tuple)->number <
				 AioGetEntryRow(next[first]->tuple)->number))
				first = i;
		}
		if (first < 0)
			break;
		insert_key(&table->indexes[first], (next[first]++)->tuple, scope);
	}
}

/* Insert a portion of that many rows as if they had not been collected. */
static void
insert_in_row_order(AioTableBacklog *table, int nrows)
{
	AioTablePolicy *policy = AioGetTablePolicy(table->rri);
	uint64		generation = aio_policy_generation;
	int64		reads_before = pgBufferUsage.shared_blks_read;

	INJECTION_POINT("aio-keys-in-row-order", NULL);
	if (AioTasksHelp(policy, table->rri) && AioScopeAllowed())
		AioScopeRun(insert_rows, table, AioIsDataError);
	else
		insert_rows(NULL, table);
	AioNoteReads(policy, generation, nrows, reads_before);
}

/* ------------------------------------------------------------------------
 * All keys
 * ------------------------------------------------------------------------
 */

/* Insert the keys of a portion of rows, from this one on.  Returns its end. */
static uint32
insert_portion(AioTableBacklog *table, uint32 begin)
{
	bool		alone = !AioOthersWrite(table->rri->ri_RelationDesc);
	uint32		end;

	if (table->rows_at_once == 0)
		table->rows_at_once = ROWS_MAX;
	end = begin + (alone ? table->rows_at_once : ROWS_IN_ROW_ORDER);
	if (!take_portion(table, end))
		return end;
	/* somebody may come while it is sorted */
	if (!alone || !insert_in_index_order(table))
		insert_in_row_order(table, Min(end, table->statement->rows + 1) - begin);
	return end;
}

/* Insert all keys in portions, and free them. */
static void
insert_in_portions(AioTableBacklog *table)
{
	/* the row that is being inserted may have some, too */
	for (uint32 row = table->statement->keys_from; row <= table->statement->rows;)
	{
		row = insert_portion(table, row);
		MemoryContextReset(CurrentMemoryContext);
	}
	for (int i = 0; i < table->nindexes; i++)
	{
		AioIndexBacklog *backlog = keys_at(table, i);

		if (backlog != NULL)
			AioFreeEntries(backlog);
	}
}

static void
insert_all(AioTableBacklog *table)
{
	MemoryContext context = AllocSetContextCreate(table->statement->context,
												  "index backlog keys",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);

	if (aio_batch_unique_keys == AIO_BATCH_UNIQUE_KEYS_ON ||
		CheckRelationLockedByMe(table->rri->ri_RelationDesc, ShareLock, true))
		insert_without_gate(table);
	else
		insert_in_portions(table);
	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);
}

/*
 * Insert all keys of a statement that are enforced.  Waits for other
 * transactions, and raises the error of the first row that fails, with its line
 * as COPY's current one.
 */
void
AioDrainKeys(AioStatementBacklog *statement)
{
	CopyFromState cstate = statement->cstate;
	AioTableBacklog *table = find_table(statement);
	uint64		save_lineno;
	bool		save_line_valid;
	bool		save_relname_only;
	const char *save_attname;

	if (table == NULL)
		return;
	Assert(statement->keys);
	if (cstate == NULL)
	{
		insert_all(table);
		return;
	}

	save_lineno = cstate->cur_lineno;
	save_line_valid = cstate->line_buf_valid;
	save_relname_only = cstate->relname_only;
	save_attname = cstate->cur_attname;
	cstate->line_buf_valid = false;
	cstate->relname_only = false;
	cstate->cur_attname = NULL;
	insert_all(table);
	cstate->cur_lineno = save_lineno;
	cstate->line_buf_valid = save_line_valid;
	cstate->relname_only = save_relname_only;
	cstate->cur_attname = save_attname;
}
