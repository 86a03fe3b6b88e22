/*-------------------------------------------------------------------------
 *
 * index_insert.c
 *	  Index inserts whose reads are awaited together.
 *
 * Upstream's ExecInsertIndexTuples() decides what goes into which index: it
 * evaluates predicates and expressions, on the backend's own stack.  A seam in
 * it hands each insert to AioIndexInsert(), which makes a task of it.  The
 * tasks of a row, or of all rows that COPY has put into the heap together,
 * share a scope.
 *
 * What stays as it was:
 * - Immediately enforced unique keys are inserted in row order, and within a
 *   row in index order: the transactions that they wait for, the deadlocks
 *   that they meet and the duplicates that they report are upstream's.  Only
 *   their reads run ahead.
 * - An insert whose result matters at once is awaited at once.
 * - An exclusion constraint is checked when everything before it is done.
 * - The error raised is that of the first row that fails (scope.c).
 *
 * Which indexes take part is index_policy.c's decision.  Temporary tables do
 * not: their pages are never locked.  And as a task costs some per cent of an
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

#include "aio/index_insert.h"
#include "aio/task.h"
#include "backlog.h"
#include "catalog/catalog.h"
#include "commands/copyfrom_internal.h"
#include "executor/executor.h"
#include "executor/instrument.h"
#include "index_task.h"
#include "storage/aio.h"
#include "utils/memutils.h"
#include "utils/rel.h"

/* aio.await_index_inserts */
bool		aio_await_index_inserts = true;

/*
 * A table does without tasks once the entries of so many rows, one after the
 * other, needed no read.  Then the next read is waited for, and tasks are back:
 * once in so many rows that is less, on any device, than they would cost.
 */
#define ROWS_WITHOUT_READS_MAX	1000

/* rows whose index entries are inserted in one scope */
typedef struct InsertBatch
{
	AioScope   *scope;
	AioTablePolicy *policy;
	uint64		policy_generation;
	bool		tasks;			/* inserts may be tasks */
	AioTableBacklog *backlog;	/* or wait here, if not NULL */

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
	List	  **rechecks;		/* result, by row */
	uint64	   *cur_lineno;		/* COPY's current line, or NULL */
	const uint64 *linenos;		/* by row */
	int			row;			/* whose entries are being inserted */
	int			next_index;		/* likely position of the next index */
	bool		result;			/* of the insert that is being awaited */
	uint64		serial_task;	/* last task of an AIO_INDEX_SERIAL index */
} InsertBatch;

StaticAssertDecl(sizeof(AioIndexTask) <= AIO_TASK_ARG_MAX,
				 "an index insert fits into a task's argument");

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

	policy = AioGetTablePolicy(rri);
	return policy->user_code ? NULL : policy;
}

/* Have the indexes been in memory for so long that nothing will be read? */
static bool
in_memory(const AioTablePolicy *policy)
{
	return policy->rows_without_reads >= ROWS_WITHOUT_READS_MAX &&
		!aio_debug_suspend;
}

/* Could tasks help to insert this table's entries? */
static bool
tasks_help(const AioTablePolicy *policy)
{
	return policy != NULL && !in_memory(policy) &&
		io_method != IOMETHOD_SYNC && AioTasksCanSuspend() &&
		AioTaskLimit() >= 2;
}

/*
 * Rows were inserted under a policy: note whether there was anything to read,
 * given its generation and the number of reads before.
 */
static void
note_reads(AioTablePolicy *policy, uint64 generation, int nrows,
		   int64 reads_before)
{
	if (generation != aio_policy_generation)
		return;
	if (pgBufferUsage.shared_blks_read != reads_before)
		policy->rows_without_reads = 0;
	else if (policy->rows_without_reads < ROWS_WITHOUT_READS_MAX)
		policy->rows_without_reads += nrows;
}

/*
 * AioScopeBody: insert the index entries of the batch's rows.  Without a scope,
 * one after the other.
 */
static void
insert_rows(AioScope *scope, void *arg)
{
	InsertBatch *batch = arg;

	batch->scope = scope;
	for (batch->row = 0; batch->row < batch->nslots; batch->row++)
	{
		if (batch->cur_lineno != NULL)
			*batch->cur_lineno = batch->linenos[batch->row];
		batch->next_index = 0;
		batch->rechecks[batch->row] =
			ExecInsertIndexTuples(batch->rri, batch->slots[batch->row],
								  batch->estate, batch->update,
								  batch->noDupErr, batch->specConflict,
								  batch->arbiterIndexes,
								  batch->onlySummarizing);
		if (batch->backlog != NULL)
			AioBacklogConsider(batch->backlog, scope);
	}
}

/*
 * Insert the index entries of one row, or gather them in a backlog if that is
 * not NULL.  policy may be NULL; the other arguments, result and errors are
 * those of ExecInsertIndexTuples().
 */
static List *
insert_row(AioTablePolicy *policy, AioTableBacklog *backlog,
		   ResultRelInfo *rri, TupleTableSlot *slot, EState *estate,
		   bool update, bool noDupErr, bool *specConflict,
		   List *arbiterIndexes, bool onlySummarizing)
{
	uint64		generation = aio_policy_generation;
	int64		reads_before = pgBufferUsage.shared_blks_read;
	bool		tasks = rri->ri_NumIndices >= 2 && tasks_help(policy) &&
		!AioBacklogInOrder(rri, estate);
	List	   *recheck = NIL;
	InsertBatch batch;

	if (backlog == NULL && !tasks)
		recheck = ExecInsertIndexTuples(rri, slot, estate, update, noDupErr,
										specConflict, arbiterIndexes,
										onlySummarizing);
	else
	{
		batch.policy = policy;
		batch.policy_generation = generation;
		batch.tasks = tasks;
		batch.backlog = backlog;
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
		AioScopeRun(insert_rows, &batch, AioIsDataError);
	}
	if (policy != NULL && backlog == NULL)
		note_reads(policy, generation, 1, reads_before);
	return recheck;
}

/*
 * Insert the index entries of one row.  Arguments, result and errors are
 * those of ExecInsertIndexTuples().
 */
List *
AioInsertIndexTuples(ResultRelInfo *rri, TupleTableSlot *slot, EState *estate,
					 bool update, bool noDupErr, bool *specConflict,
					 List *arbiterIndexes, bool onlySummarizing)
{
	/* row by row, only plain inserts in great number gather entries */
	bool		may_gather = !update && !noDupErr &&
		estate->es_processed >= aio_debug_rows_before_batch &&
		estate->es_plannedstmt != NULL &&
		estate->es_plannedstmt->commandType != CMD_UPDATE;
	AioTablePolicy *policy = NULL;
	AioTableBacklog *backlog = NULL;

	if (may_gather || rri->ri_NumIndices >= 2)
		policy = find_policy(rri);
	if (may_gather && policy != NULL)
	{
		backlog = AioBacklogFor(rri, estate, estate->es_output_cid, NULL, 1);
		policy = AioGetTablePolicy(rri);
	}
	return insert_row(policy, backlog, rri, slot, estate, update, noDupErr,
					  specConflict, arbiterIndexes, onlySummarizing);
}

/*
 * Likewise, for a row that logical replication applies.  Keys that are unique
 * are not gathered there, so it does not matter that conflicts are looked for.
 */
List *
AioApplyIndexTuples(ResultRelInfo *rri, TupleTableSlot *slot, EState *estate,
					bool update, bool noDupErr, bool *specConflict,
					List *arbiterIndexes, bool onlySummarizing)
{
	AioTablePolicy *policy = find_policy(rri);
	AioTableBacklog *backlog = NULL;

	if (policy != NULL && !update)
	{
		backlog = AioApplyBacklog(rri, estate->es_output_cid);
		policy = AioGetTablePolicy(rri);
	}
	return insert_row(policy, backlog, rri, slot, estate, update, noDupErr,
					  specConflict, arbiterIndexes, onlySummarizing);
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
	AioTablePolicy *policy = find_policy(rri);
	uint64		generation;
	int64		reads_before = pgBufferUsage.shared_blks_read;
	InsertBatch batch = {0};

	if (policy == NULL)
		return NULL;
	batch.backlog = AioBacklogFor(rri, estate, cid, cstate, nslots);
	policy = AioGetTablePolicy(rri);
	generation = aio_policy_generation;
	batch.tasks = tasks_help(policy) && !AioBacklogInOrder(rri, estate) &&
		(nslots >= 2 || rri->ri_NumIndices >= 2);

	batch.policy = policy;
	batch.policy_generation = generation;
	batch.rri = rri;
	batch.slots = slots;
	batch.estate = estate;
	batch.nslots = nslots;
	batch.rechecks = MemoryContextAllocZero(GetPerTupleMemoryContext(estate),
											sizeof(List *) * nslots);
	batch.cur_lineno = cstate ? &cstate->cur_lineno : NULL;
	batch.linenos = linenos;
	if (batch.backlog != NULL || batch.tasks)
		AioScopeRun(insert_rows, &batch, AioIsDataError);
	else
		insert_rows(NULL, &batch);
	/* rows that only gather read nothing yet */
	if (batch.backlog == NULL)
		note_reads(policy, generation, nslots, reads_before);
	return batch.rechecks;
}

/* Error context callback of a task: let COPY report this row's line. */
static void
set_lineno(void *arg)
{
	AioIndexTask *task = arg;

	*task->cur_lineno = task->lineno;
}

/*
 * AioTaskBody: insert one index entry.
 */
static void
insert_entry(void *arg)
{
	AioIndexTask *task = arg;
	ErrorContextCallback callback;
	bool		result;

	if (task->cur_lineno != NULL)
	{
		callback.callback = set_lineno;
		callback.arg = task;
		callback.previous = error_context_stack;
		error_context_stack = &callback;
	}

	if (task->ordered && !AioTaskHasTurn())
	{
		if (task->mode == AIO_INDEX_BTREE)
			AioBtreeReadAhead(task);
		AioAwaitTurn();
	}
	if (task->mode == AIO_INDEX_HASH)
	{
		AioHashReadAhead(task);
		AioTaskForbidSuspend();
	}

	result = index_insert(task->index, task->values, task->isnull, &task->tid,
						  task->heap, task->check_unique, task->unchanged,
						  task->info);
	if (task->result != NULL)
		*task->result = result;
	if (task->lane != NULL)
		AioReleaseLane(task->lane);

	if (task->cur_lineno != NULL)
		error_context_stack = callback.previous;
}

/*
 * Find which of the batch's indexes this is, or return -1 if it is not the
 * batch that is being inserted.
 */
static int
find_index(InsertBatch *batch, IndexInfo *info)
{
	/* upstream goes through the indexes in order, skipping some */
	for (int i = batch->next_index; i < batch->rri->ri_NumIndices; i++)
	{
		if (batch->rri->ri_IndexRelationInfo[i] == info)
		{
			batch->next_index = i + 1;
			return i;
		}
	}
	return -1;
}

/*
 * Insert an entry on the backend's own stack.
 */
static bool
insert_inline(InsertBatch *batch, Relation index, Datum *values, bool *isnull,
			  ItemPointer tid, Relation heap, IndexUniqueCheck check_unique,
			  bool unchanged, IndexInfo *info)
{
	/* it may wait for transactions, or report a duplicate */
	if (check_unique != UNIQUE_CHECK_NO || info->ii_ExclusionOps != NULL)
		AioScopeJoin(batch->scope);

	/* a task that reported something has moved it */
	if (batch->cur_lineno != NULL)
		*batch->cur_lineno = batch->linenos[batch->row];
	return index_insert(index, values, isnull, tid, heap, check_unique,
						unchanged, info);
}

/*
 * Have a lane of an AIO_INDEX_LANES index, waiting for one if need be.
 */
static struct AioIndexLane *
get_lane(AioScope *scope, Relation index, IndexInfo *info)
{
	uint64		wait_for;
	struct AioIndexLane *lane = AioAcquireLane(info, &wait_for);

	if (lane == NULL)
	{
		AioScopeJoinTask(scope, wait_for);
		lane = AioAcquireLane(info, &wait_for);
	}
	if (lane == NULL)
		elog(ERROR, "index \"%s\" has no free lane",
			 RelationGetRelationName(index));
	return lane;
}

/*
 * Insert an entry that is not checked, as a task of the scope.  What values
 * point to must stay where it is until the scope ends.
 */
void
AioSpawnIndexInsert(AioScope *scope, Relation index, Relation heap,
					IndexInfo *info, AioIndexMode mode,
					const Datum *values, const bool *isnull, ItemPointer tid)
{
	struct AioIndexLane *lane = mode == AIO_INDEX_LANES ?
		get_lane(scope, index, info) : NULL;
	AioTaskOptions options = {0};
	AioIndexTask *task = AioSpawnPrepare(scope);
	uint64		task_id;

	memset(task, 0, offsetof(AioIndexTask, isnull));
	task->index = index;
	task->heap = heap;
	task->info = lane ? AioLaneInfo(lane) : info;
	task->lane = lane;
	task->mode = mode;
	task->check_unique = UNIQUE_CHECK_NO;
	task->tid = *tid;
	task->natts = info->ii_NumIndexAttrs;
	memcpy(task->values, values, sizeof(Datum) * task->natts);
	memcpy(task->isnull, isnull, sizeof(bool) * task->natts);
	options.subject = index;
	task_id = AioSpawnPrepared(scope, &options, insert_entry, task);
	if (lane != NULL)
		AioLaneSetTask(lane, task_id);
}

/*
 * Is this error about the data of a row, so that inserting the rows one after
 * the other would have met an earlier row's error first?
 */
bool
AioIsDataError(int sqlerrcode)
{
	int			category = ERRCODE_TO_CATEGORY(sqlerrcode);

	return category == ERRCODE_DATA_EXCEPTION ||
		category == ERRCODE_INTEGRITY_CONSTRAINT_VIOLATION ||
		category == ERRCODE_PROGRAM_LIMIT_EXCEEDED;
}

/*
 * In place of index_insert(), with its arguments, while a scope is open: start
 * the insert.
 *
 * Returns what index_insert() returns if the caller needs it, that is unless
 * it would be true.  Pass-by-reference values must stay where they are until
 * the scope ends.
 */
bool
AioIndexInsertInScope(Relation indexRelation, Datum *values, bool *isnull,
					  ItemPointer tid, Relation heapRelation,
					  IndexUniqueCheck checkUnique, bool indexUnchanged,
					  IndexInfo *indexInfo)
{
	InsertBatch *batch = AioScopeArg(insert_rows);
	AioIndexMode mode;
	AioTaskOptions options;
	AioIndexTask *task;
	struct AioIndexLane *lane = NULL;
	uint64		task_id;
	bool		exclusion = indexInfo->ii_ExclusionOps != NULL;
	bool		result_wanted = exclusion || checkUnique == UNIQUE_CHECK_PARTIAL;
	int			position = batch ? find_index(batch, indexInfo) : -1;

	if (unlikely(position < 0))
		return index_insert(indexRelation, values, isnull, tid, heapRelation,
							checkUnique, indexUnchanged, indexInfo);

	if (batch->backlog != NULL &&
		AioBacklogAdd(batch->backlog, position, values, isnull, tid,
					  batch->linenos ? batch->linenos[batch->row] : 0))
		return true;
	if (!batch->tasks)
		return index_insert(indexRelation, values, isnull, tid, heapRelation,
							checkUnique, indexUnchanged, indexInfo);

	if (unlikely(batch->policy_generation != aio_policy_generation))
	{
		batch->policy = AioGetTablePolicy(batch->rri);
		batch->policy_generation = aio_policy_generation;
	}
	mode = batch->policy->indexes[position].mode;
	switch (mode)
	{
		case AIO_INDEX_INLINE:
			return insert_inline(batch, indexRelation, values, isnull, tid,
								 heapRelation, checkUnique, indexUnchanged,
								 indexInfo);
		case AIO_INDEX_SERIAL:
			AioScopeJoinTask(batch->scope, batch->serial_task);
			break;
		case AIO_INDEX_LANES:
			lane = get_lane(batch->scope, indexRelation, indexInfo);
			break;
		case AIO_INDEX_BTREE:
		case AIO_INDEX_HASH:
		case AIO_INDEX_GIN:
		case AIO_INDEX_CONCURRENT:
			break;
	}

	task = AioSpawnPrepare(batch->scope);
	task->index = indexRelation;
	task->heap = heapRelation;
	task->info = lane ? AioLaneInfo(lane) : indexInfo;
	task->lane = lane;
	task->mode = mode;
	task->check_unique = checkUnique;
	task->unchanged = indexUnchanged;
	task->ordered = checkUnique == UNIQUE_CHECK_YES;
	task->tid = *tid;
	/* not in this frame, which an error of a sibling may leave */
	task->result = result_wanted ? &batch->result : NULL;
	task->cur_lineno = batch->cur_lineno;
	task->lineno = batch->cur_lineno ? batch->linenos[batch->row] : 0;
	task->tuple_bytes = 0;
	task->natts = indexInfo->ii_NumIndexAttrs;
	for (int i = 0; i < task->natts; i++)
	{
		task->values[i] = values[i];
		task->isnull[i] = isnull[i];
	}

	options.subject = indexRelation;
	options.hook = mode == AIO_INDEX_BTREE ? AioBtreeWatchPage : NULL;
	options.ordered = task->ordered;
	task_id = AioSpawnPrepared(batch->scope, &options, insert_entry, task);

	if (mode == AIO_INDEX_SERIAL)
		batch->serial_task = task_id;
	else if (lane != NULL)
		AioLaneSetTask(lane, task_id);

	/* the caller goes on to check the constraint, on its own stack */
	if (exclusion)
		AioScopeJoin(batch->scope);
	else if (result_wanted)
		AioScopeJoinTask(batch->scope, task_id);

	/* a task that reported something has moved it */
	if (batch->cur_lineno != NULL)
		*batch->cur_lineno = batch->linenos[batch->row];
	return result_wanted ? batch->result : true;
}
