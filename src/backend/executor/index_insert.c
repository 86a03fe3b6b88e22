/*-------------------------------------------------------------------------
 *
 * index_insert.c
 *	  Index inserts whose reads are awaited together.
 *
 * Upstream's ExecInsertIndexTuples() decides what goes into which index: it
 * evaluates predicates and expressions, on the backend's own stack.  A seam in
 * it hands each insert to AioIndexInsert(), with the position of the index and
 * the batch: a row, or all rows that COPY has put into the heap together.  An
 * entry either waits in the statement's backlog, or is inserted by a task, in a
 * scope of the batch, or at once.
 *
 * What is as in upstream:
 * - Unique keys are inserted in row order, and within a row in index order:
 *   the transactions that they wait for, the deadlocks that they meet and the
 *   duplicates that they report, or have checked later, are upstream's.  Only
 *   their reads run ahead.
 * - An insert whose result matters at once is awaited at once.  Whether a key
 *   that is checked later may be a duplicate does not matter before all
 *   entries of the batch are inserted.
 * - An exclusion constraint is checked when everything before it is done.
 * - The error raised is that of the first row that fails (scope.c).
 *
 * INVARIANT-78: a serializable transaction inserts an entry when, and only if,
 * PostgreSQL would: each may meet a conflict with another transaction, and what
 * is found out about one by then no error of another row or index takes back.
 * So nothing waits in a backlog, and as with unique keys only reads run ahead.
 *
 * index_policy.c decides which indexes take part.  Temporary tables do not:
 * their pages are never locked.  And as a task costs some per cent of an
 * insert whose pages are in memory, a table does without tasks while all that
 * this backend inserted into its indexes lately found them there.
 *
 * Tests: src/test/aio.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "aio/index_backlog.h"
#include "aio/index_insert.h"
#include "aio/index_policy.h"
#include "aio/index_task.h"
#include "aio/stats.h"
#include "aio/task.h"
#include "catalog/catalog.h"
#include "catalog/pg_trigger.h"
#include "commands/copyfrom_internal.h"
#include "executor/executor.h"
#include "executor/instrument.h"
#include "guard.h"
#include "utils/injection_point.h"
#include "utils/memutils.h"
#include "utils/rel.h"

/* aio.await_index_inserts */
bool		aio_await_index_inserts = true;

/* What the insert of a key that is checked later has found out. */
typedef struct LaterCheck
{
	struct LaterCheck *next;
	Oid			index;
	int			row;
	bool		is_unique;
} LaterCheck;

/*
 * Rows whose index entries are inserted together, and what upstream's loop over
 * the indexes of a row hands on to us with each entry.  Lives on the stack.
 */
struct AioInsertBatch
{
	AioScope   *scope;			/* whose tasks inserts may be; or NULL */
	AioTablePolicy *policy;
	uint64		policy_generation;
	AioTableBacklog *backlog;	/* where entries may wait, or NULL */

	/* arguments of ExecInsertIndexTuples() */
	ResultRelInfo *rri;
	TupleTableSlot **slots;
	EState	   *estate;
	bool		update;
	bool		noDupErr;
	bool	   *specConflict;
	List	   *arbiterIndexes;
	bool		onlySummarizing;

	int			nslots;
	bool		serializable;	/* entries go one by one */
	List	  **rechecks;		/* result, by row */
	uint64	   *cur_lineno;		/* COPY's current line, or NULL */
	const uint64 *linenos;		/* by row */
	int			row;			/* whose entries are being inserted */
	bool		declined;		/* the entry must not wait, as it may fail */
	bool		result;			/* of the insert that is being awaited */
	LaterCheck *later;			/* of inserts that are not awaited */
	uint64		serial_task;	/* last one of AIO_INDEX_SERIAL */
};

/*
 * May entries of this table's indexes be inserted in other ways than one after
 * the other?  Returns what is known of them, or NULL if not.
 */
static AioTablePolicy *
find_policy(ResultRelInfo *rri)
{
	AioTablePolicy *policy;

	if (!aio_await_index_inserts || rri->ri_NumIndices == 0 ||
		!AioScopeAllowed())
		return NULL;

	/*
	 * Nothing locks a temporary table's pages, so nothing would tell when a
	 * task may suspend.  Catalogs are read by the very code that runs in
	 * tasks.
	 */
	if (RelationUsesLocalBuffers(rri->ri_RelationDesc) ||
		IsCatalogRelation(rri->ri_RelationDesc))
		return NULL;

	/* another access method is asked for rows when unique keys are checked */
	if (!AioIsHeap(rri->ri_RelationDesc))
		return NULL;

	policy = AioGetTablePolicy(rri);
	return policy->user_code ? NULL : policy;
}

/*
 * AioScopeBody: insert the index entries of the batch's rows.  Without a scope,
 * and a backlog, one after the other, as if there were no batch.
 */
static void
insert_rows(AioScope *scope, void *arg)
{
	AioInsertBatch *batch = arg;
	bool		at_once = scope == NULL && batch->backlog == NULL;

	batch->scope = scope;
	for (batch->row = 0; batch->row < batch->nslots; batch->row++)
	{
		if (batch->cur_lineno != NULL)
			*batch->cur_lineno = batch->linenos[batch->row];
		batch->rechecks[batch->row] =
			AioExecInsertIndexTuples(batch->rri, batch->slots[batch->row],
									 batch->estate, batch->update,
									 batch->noDupErr, batch->specConflict,
									 batch->arbiterIndexes,
									 batch->onlySummarizing,
									 at_once ? NULL : batch);
		if (batch->backlog != NULL)
			AioBacklogConsider(batch->backlog, scope);
	}
}

/* All entries are inserted: which keys have to be checked later? */
static void
add_rechecks(AioInsertBatch *batch)
{
	for (LaterCheck *later = batch->later; later != NULL; later = later->next)
	{
		List	  **rechecks = &batch->rechecks[later->row];

		if (!later->is_unique)
			*rechecks = lappend_oid(*rechecks, later->index);
	}
}

/* Do tasks of any index of the table have something to do before their turn? */
static bool
any_reads_ahead(const AioTablePolicy *policy)
{
	for (int i = 0; i < policy->nindexes; i++)
	{
		const AioIndexAmOps *ops = policy->indexes[i].ops;

		if (ops != NULL && ops->concurrency != AIO_INDEX_NO_TASKS &&
			ops->look_ahead != NULL)
			return true;
	}
	return false;
}

/*
 * Insert the entries of a batch, as tasks if they could help, and note whether
 * there was anything to read.  A batch that only collects reads nothing, and
 * needs no scope.
 */
static void
insert_batch(AioInsertBatch *batch, bool tasks)
{
	uint64		generation = aio_policy_generation;
	int64		reads_before = pgBufferUsage.shared_blks_read;

	Assert(batch->nslots > 0 && batch->policy != NULL);
	batch->policy_generation = generation;
	batch->serializable = IsolationIsSerializable();
	batch->later = NULL;
	Assert(!batch->serializable || batch->backlog == NULL);
	if (batch->serializable)
		tasks = tasks && any_reads_ahead(batch->policy);
	if (tasks && !(batch->backlog != NULL && batch->backlog->only_collects))
		AioScopeRun(insert_rows, batch, AioIsDataError);
	else
		insert_rows(NULL, batch);
	add_rechecks(batch);
	if (batch->backlog == NULL)
		AioNoteReads(batch->policy, generation, batch->nslots, reads_before);
}

/*
 * Insert the index entries of one row.  table is the backlog of its table, or
 * NULL, and collects says whether its entries are collected there.  policy may
 * be NULL; the other arguments, result and errors are those of
 * ExecInsertIndexTuples().
 */
static List *
insert_row(AioTablePolicy *policy, AioTableBacklog *table, bool collects,
		   ResultRelInfo *rri, TupleTableSlot *slot, EState *estate,
		   bool update, bool noDupErr, bool *specConflict,
		   List *arbiterIndexes, bool onlySummarizing)
{
	uint64		generation = aio_policy_generation;
	int64		reads_before = pgBufferUsage.shared_blks_read;
	bool		tasks = rri->ri_NumIndices >= 2 && AioTasksHelp(policy, rri) &&
		!(table != NULL && table->in_order);
	List	   *recheck = NIL;
	AioInsertBatch batch;

	Assert(table != NULL || !collects);
	if (!collects && !tasks)
	{
		recheck = AioExecInsertIndexTuples(rri, slot, estate, update, noDupErr,
										   specConflict, arbiterIndexes,
										   onlySummarizing, NULL);
		if (policy != NULL)
			AioNoteReads(policy, generation, 1, reads_before);
		return recheck;
	}

	batch.policy = policy;
	batch.backlog = collects ? table : NULL;
	batch.rri = rri;
	batch.slots = &slot;
	batch.estate = estate;
	batch.update = update;
	batch.noDupErr = noDupErr;
	batch.specConflict = specConflict;
	batch.arbiterIndexes = arbiterIndexes;
	batch.onlySummarizing = onlySummarizing;
	batch.nslots = 1;
	batch.rechecks = &recheck;
	batch.cur_lineno = NULL;
	batch.linenos = NULL;
	batch.serial_task = 0;
	insert_batch(&batch, tasks);
	return recheck;
}

/*
 * May a statement collect entries of rows that it inserts, or updates, one by
 * one?  Its keys that are unique are looked for meanwhile if it does both, or
 * inserts what may conflict; so these are not collected (AioBacklogAdd()).  A
 * row that an UPDATE moves to another partition has its entries at once.
 */
static bool
may_collect_row(const EState *estate, bool update)
{
	return !IsolationIsSerializable() &&
		estate->es_processed >= (uint64) aio_debug_rows_before_batch &&
		estate->es_plannedstmt != NULL &&
		(update || estate->es_plannedstmt->commandType != CMD_UPDATE);
}

/* lookup.c; tasks have awaited pages to insert the entries of a row */
void		(*aio_entries_awaited_hook) (const EState *estate) = NULL;

/*
 * Insert the index entries of one row.  Arguments, result and errors are
 * those of ExecInsertIndexTuples().
 */
List *
AioInsertIndexTuples(ResultRelInfo *rri, TupleTableSlot *slot, EState *estate,
					 bool update, bool noDupErr, bool *specConflict,
					 List *arbiterIndexes, bool onlySummarizing)
{
	bool		may_collect = may_collect_row(estate, update);
	AioTablePolicy *policy = NULL;
	AioTableBacklog *table = NULL;
	bool		collects = false;
	uint64		reads = aio_session_stats_data.reads;
	List	   *recheck;

	if (noDupErr)
		INJECTION_POINT("aio-speculative-insert", NULL);
	if (may_collect || rri->ri_NumIndices >= 2)
		policy = find_policy(rri);
	if (may_collect && policy != NULL)
	{
		table = AioGetTableBacklog(rri, estate, estate->es_output_cid, NULL);
		collects = table != NULL && AioBacklogTakes(table, estate->es_output_cid, 1);
		policy = AioGetTablePolicy(rri);
	}
	if (may_collect && !collects)
		AioDrainKeysBefore(estate);
	recheck = insert_row(policy, table, collects, rri, slot, estate, update,
						 noDupErr, specConflict, arbiterIndexes,
						 onlySummarizing);
	if (unlikely(aio_session_stats_data.reads != reads))
		aio_entries_awaited_hook(estate);

	/* the row dies now, and its entries must not be inserted later */
	if (collects && specConflict != NULL && *specConflict)
		AioDrainStatement(estate);
	return recheck;
}

/*
 * Likewise, for a row that logical replication applies.  Keys that are unique
 * are not collected there, so it does not matter that conflicts are looked
 * for.
 */
List *
AioApplyIndexTuples(ResultRelInfo *rri, TupleTableSlot *slot, EState *estate,
					bool update, bool noDupErr, bool *specConflict,
					List *arbiterIndexes, bool onlySummarizing)
{
	AioTablePolicy *policy = find_policy(rri);
	AioTableBacklog *backlog = NULL;
	List	   *recheck;

	if (policy != NULL && !IsolationIsSerializable())
	{
		backlog = AioApplyBacklog(rri, estate->es_output_cid);
		policy = AioGetTablePolicy(rri);
	}
	recheck = insert_row(policy, backlog, backlog != NULL, rri, slot, estate,
						 update, noDupErr, specConflict, arbiterIndexes,
						 onlySummarizing);
	if (backlog != NULL)
		AioAppliedRow();
	return recheck;
}

/*
 * Is anything of this table evaluated after the entries of a row, and before
 * those of the next?  What AFTER triggers do comes later, but not whether they
 * are to do it.
 */
static bool
evaluates_between_rows(const ResultRelInfo *rri)
{
	const TriggerDesc *triggers = rri->ri_TrigDesc;

	for (int i = 0; triggers != NULL && i < triggers->numtriggers; i++)
	{
		const Trigger *trigger = &triggers->triggers[i];

		if (TRIGGER_FOR_ROW(trigger->tgtype) &&
			TRIGGER_FOR_INSERT(trigger->tgtype) &&
			TRIGGER_FOR_AFTER(trigger->tgtype) && trigger->tgqual != NULL)
			return true;
	}
	return false;
}

/*
 * Insert the index entries of rows that COPY, or INSERT (row_buffer.c), has
 * inserted into the heap.
 *
 * cid is the command id that the rows have been inserted with, cstate COPY's or
 * NULL, and so are the rows' lines.
 *
 * Returns, allocated in the per-tuple context, what ExecInsertIndexTuples()
 * would have returned for each row; or NULL if nothing was done because the
 * caller may as well go row by row.  The current line of COPY is set to each
 * row's, such that errors report the line that they are about.
 */
List	  **
AioInsertIndexBatch(ResultRelInfo *rri, TupleTableSlot **slots, int nslots,
					CommandId cid, EState *estate,
					CopyFromState cstate, const uint64 *linenos)
{
	bool		tasks = !evaluates_between_rows(rri) && find_policy(rri) != NULL;
	AioTableBacklog *table = NULL;
	AioInsertBatch batch = {0};

	Assert((cstate == NULL) == (linenos == NULL));
	Assert(nslots >= 0);
	/* COPY also flushes what is empty */
	if (nslots == 0)
		return NULL;
	if (tasks && !IsolationIsSerializable())
		table = AioGetTableBacklog(rri, estate, cid, cstate);
	if (table != NULL && AioBacklogTakes(table, cid, nslots))
		batch.backlog = table;
	else
		AioDrainKeysBefore(estate);
	if (!tasks)
		return NULL;

	batch.policy = AioGetTablePolicy(rri);
	batch.rri = rri;
	batch.slots = slots;
	batch.estate = estate;
	batch.nslots = nslots;
	batch.rechecks = MemoryContextAllocZero(GetPerTupleMemoryContext(estate),
											sizeof(List *) * nslots);
	batch.cur_lineno = cstate ? &cstate->cur_lineno : NULL;
	batch.linenos = linenos;
	insert_batch(&batch,
				 (nslots >= 2 || rri->ri_NumIndices >= 2) &&
				 AioTasksHelp(batch.policy, rri) &&
				 !(table != NULL && table->in_order));

	return batch.rechecks;
}

/*
 * Upstream's function of this name: what calls it has no batch.
 */
List *
ExecInsertIndexTuples(ResultRelInfo *resultRelInfo, TupleTableSlot *slot,
					  EState *estate, bool update, bool noDupErr,
					  bool *specConflict, List *arbiterIndexes,
					  bool onlySummarizing)
{
	return AioExecInsertIndexTuples(resultRelInfo, slot, estate, update,
									noDupErr, specConflict, arbiterIndexes,
									onlySummarizing, NULL);
}

/*
 * Insert an entry on the backend's own stack.
 */
static bool
insert_inline(AioInsertBatch *batch, int position, Relation index, Datum *values,
			  bool *isnull, ItemPointer tid, Relation heap,
			  IndexUniqueCheck check_unique, bool unchanged, IndexInfo *info)
{
	/*
	 * It may wait for transactions, or report a duplicate or a conflict; or
	 * its code looks for rows whose entries tasks are inserting, as it may do
	 * anything.
	 */
	if (check_unique != UNIQUE_CHECK_NO || info->ii_ExclusionOps != NULL ||
		batch->serializable || batch->policy->indexes[position].looks)
		AioScopeJoin(batch->scope);

	/* a task that reported something has moved it */
	if (batch->cur_lineno != NULL)
		*batch->cur_lineno = batch->linenos[batch->row];
	return index_insert(index, values, isnull, tid, heap, check_unique,
						unchanged, info);
}

/* The policy that the batch goes by, which may have been made anew. */
static const AioIndexAmOps *
current_ops(AioInsertBatch *batch, int position)
{
	if (unlikely(batch->policy_generation != aio_policy_generation))
	{
		batch->policy = AioGetTablePolicy(batch->rri);
		batch->policy_generation = aio_policy_generation;
	}
	Assert(position < batch->policy->nindexes);
	return batch->policy->indexes[position].ops;
}

/* Where the insert of a key that is checked later tells what it finds out. */
static bool *
note_later_check(AioInsertBatch *batch, Relation index)
{
	LaterCheck *later = MemoryContextAlloc(GetPerTupleMemoryContext(batch->estate),
										   sizeof(LaterCheck));

	later->index = RelationGetRelid(index);
	later->row = batch->row;
	later->is_unique = true;
	later->next = batch->later;
	batch->later = later;
	return &later->is_unique;
}

/*
 * Could the insert of an entry fail for what is in it, as it has been declined,
 * or for its size, and does the table have keys that wait?  Those of later rows
 * must not be in the backlog when it fails, as the guard would check them, too.
 */
static bool
must_not_be_overtaken(AioInsertBatch *batch, Relation heap, IndexInfo *info,
					  const Datum *values, const bool *isnull)
{
	Size		bytes = 0;

	if (batch->backlog == NULL || !AioBacklogCollectsKeys(batch->backlog))
		return false;
	if (batch->declined)
		return true;
	for (int i = 0; i < info->ii_NumIndexAttrs; i++)
	{
		AttrNumber	attnum = info->ii_IndexAttrNumbers[i];
		int			length;

		if (isnull[i])
			continue;
		/* nothing is known of the result of an expression */
		if (attnum <= 0)
			return true;
		length = TupleDescCompactAttr(RelationGetDescr(heap), attnum - 1)->attlen;
		if (length == -1)
		{
			if (VARATT_IS_EXTERNAL(DatumGetPointer(values[i])) ||
				VARATT_IS_COMPRESSED(DatumGetPointer(values[i])))
				return true;
			length = VARSIZE_ANY(DatumGetPointer(values[i]));
		}
		else if (length < 0)
			return true;
		bytes += length;
	}
	return bytes > AIO_SMALL_ENTRY;
}

/*
 * Insert an entry as a task.  Returns what index_insert() returns if the caller
 * needs it, and otherwise true, while the insert may be suspended.
 */
static bool
insert_as_task(AioInsertBatch *batch, const AioIndexAmOps *ops,
			   Relation index, Datum *values, bool *isnull, ItemPointer tid,
			   Relation heap, IndexUniqueCheck check_unique, bool unchanged,
			   IndexInfo *info)
{
	bool		exclusion = info->ii_ExclusionOps != NULL;
	bool		later = check_unique == UNIQUE_CHECK_PARTIAL && !exclusion &&
		!batch->noDupErr;
	bool		result_wanted = exclusion ||
		(check_unique == UNIQUE_CHECK_PARTIAL && !later);
	bool	   *result = later ? note_later_check(batch, index) : NULL;
	AioIndexTask *task;
	uint64		task_id;

	/* those of a serializable transaction await their turn anyway */
	if (ops->concurrency == AIO_INDEX_SERIAL && !batch->serializable)
		AioScopeJoinTask(batch->scope, batch->serial_task);

	task = AioPrepareIndexTask(batch->scope, ops, index, heap, info,
							   values, isnull, tid);
	task->check_unique = check_unique;
	task->unchanged = unchanged;
	task->ordered = check_unique == UNIQUE_CHECK_YES || later || batch->serializable;
	/* not in this frame, which an error of a sibling may leave */
	task->result = result_wanted ? &batch->result : result;
	task->cur_lineno = batch->cur_lineno;
	task->lineno = batch->cur_lineno ? batch->linenos[batch->row] : 0;
	task_id = AioStartIndexTask(batch->scope, task);

	if (ops->concurrency == AIO_INDEX_SERIAL)
		batch->serial_task = task_id;

	/* the caller goes on to check the constraint, on its own stack */
	if (exclusion)
		AioScopeJoin(batch->scope);
	else if (result_wanted ||
			 must_not_be_overtaken(batch, heap, info, values, isnull))
		AioScopeJoinTask(batch->scope, task_id);

	/* a task that reported something has moved it */
	if (batch->cur_lineno != NULL)
		*batch->cur_lineno = batch->linenos[batch->row];
	return result_wanted ? batch->result : true;
}

/*
 * In place of index_insert(), with its arguments, for an entry of a batch and
 * the index at a position of its table: collect the entry, or start the
 * insert.
 *
 * Returns what index_insert() returns if the caller needs it, that is unless
 * it would be true.  Pass-by-reference values must stay where they are until
 * the batch is inserted.
 */
bool
AioIndexInsertInBatch(AioInsertBatch *batch, int position,
					  Relation indexRelation, Datum *values, bool *isnull,
					  ItemPointer tid, Relation heapRelation,
					  IndexUniqueCheck checkUnique, bool indexUnchanged,
					  IndexInfo *indexInfo)
{
	const AioIndexAmOps *ops;

	Assert(batch->rri->ri_IndexRelationDescs[position] == indexRelation);
	Assert(batch->row < batch->nslots);

	if (batch->backlog != NULL &&
		AioBacklogAdd(batch->backlog, position, values, isnull, tid,
					  batch->linenos ? batch->linenos[batch->row] : 0,
					  batch->update || batch->noDupErr, indexUnchanged))
		return true;
	/* or never may: its operator classes, which tell its place, may fail */
	batch->declined = batch->backlog != NULL &&
		(batch->backlog->indexes[position].collects ||
		 indexRelation->rd_indam->amstrategies == 0);
	if (batch->scope == NULL)
		return index_insert(indexRelation, values, isnull, tid, heapRelation,
							checkUnique, indexUnchanged, indexInfo);

	Assert(aio_current_scope == batch->scope);
	ops = current_ops(batch, position);
	if (ops == NULL || ops->concurrency == AIO_INDEX_NO_TASKS)
		return insert_inline(batch, position, indexRelation, values, isnull, tid,
							 heapRelation, checkUnique, indexUnchanged,
							 indexInfo);
	return insert_as_task(batch, ops, indexRelation, values, isnull, tid,
						  heapRelation, checkUnique, indexUnchanged,
						  indexInfo);
}
