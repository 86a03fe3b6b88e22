/*-------------------------------------------------------------------------
 *
 * index_task.c
 *	  One index insert as a task.
 *
 * The task calls upstream's index_insert(), after it has awaited its turn and
 * has had read what its access method asks for (aio/index_am.h).  Its argument
 * is in the task's own memory; values that are passed by reference stay where
 * they are until the scope ends (INVARIANT-19).
 *
 * Of the errors of such tasks, those about data are raised in the order of rows
 * (INVARIANT-22).
 *
 * Tests: src/test/aio/sql, src/test/aio/index_am.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "aio/index_insert.h"
#include "aio/index_task.h"
#include "utils/rel.h"

StaticAssertDecl(sizeof(AioIndexTask) <= AIO_TASK_ARG_MAX,
				 "an index insert fits into a task's argument");
StaticAssertDecl(offsetof(AioIndexTask, entry) == 0,
				 "a task's argument is an entry, too");

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
	AioIndexEntry *entry = &task->entry;
	const AioIndexAmOps *ops = task->ops;
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
		if (ops->look_ahead != NULL)
			ops->look_ahead(entry);
		AioAwaitTurn();
		Assert(AioTaskHasTurn());
	}
	if (ops->reads_first)
	{
		ops->look_ahead(entry);
		AioTaskForbidSuspend();
	}

	result = index_insert(entry->index, entry->values, entry->isnull,
						  &entry->tid, entry->heap, task->check_unique,
						  task->unchanged, entry->info);
	if (task->result != NULL)
		*task->result = result;
	if (task->insert_state != NULL)
		AioReleaseInsertState(task->insert_state);

	if (task->cur_lineno != NULL)
		error_context_stack = callback.previous;
}

/*
 * Have an insert state of an index that needs one for each of its tasks, and
 * wait for one if need be.
 */
static struct AioInsertState *
get_insert_state(AioScope *scope, Relation index, IndexInfo *info)
{
	uint64		wait_for;
	struct AioInsertState *insert_state = AioAcquireInsertState(info, &wait_for);

	if (insert_state == NULL)
	{
		AioScopeJoinTask(scope, wait_for);
		insert_state = AioAcquireInsertState(info, &wait_for);
	}
	if (insert_state == NULL)
		elog(ERROR, "index \"%s\" has no free insert state",
			 RelationGetRelationName(index));
	return insert_state;
}

/*
 * Begin to insert an entry, without any check, as a task of the scope.  The
 * caller may ask for more in what is returned, and calls AioStartIndexTask(),
 * raising and spawning nothing in between.
 *
 * May wait for other tasks of the scope, and raise their errors.
 */
AioIndexTask *
AioPrepareIndexTask(AioScope *scope, const AioIndexAmOps *ops,
					Relation index, Relation heap, IndexInfo *info,
					const Datum *values, const bool *isnull, ItemPointer tid)
{
	struct AioInsertState *insert_state = ops->concurrency == AIO_INDEX_STATES ?
		get_insert_state(scope, index, info) : NULL;
	AioIndexTask *task = AioSpawnPrepare(scope);
	AioIndexEntry *entry = &task->entry;

	Assert(ops->concurrency != AIO_INDEX_NO_TASKS);
	Assert(info->ii_NumIndexAttrs <= INDEX_MAX_KEYS);

	entry->index = index;
	entry->heap = heap;
	entry->info = insert_state ? AioInsertStateInfo(insert_state) : info;
	entry->tid = *tid;
	entry->tuple_bytes = 0;
	entry->natts = info->ii_NumIndexAttrs;
	for (int i = 0; i < entry->natts; i++)
	{
		entry->values[i] = values[i];
		entry->isnull[i] = isnull[i];
	}
	task->ops = ops;
	task->insert_state = insert_state;
	task->check_unique = UNIQUE_CHECK_NO;
	task->unchanged = false;
	task->ordered = false;
	task->result = NULL;
	task->cur_lineno = NULL;
	task->lineno = 0;
	return task;
}

/* Start the task.  Returns its number. */
uint64
AioStartIndexTask(AioScope *scope, AioIndexTask *task)
{
	struct AioInsertState *insert_state = task->insert_state;
	AioTaskOptions options = {0};
	uint64		task_id;

	Assert(ItemPointerIsValid(&task->entry.tid));

	options.subject = task->entry.index;
	options.hook = task->ops->page_arrived;
	options.ordered = task->ordered;
	task_id = AioSpawnPrepared(scope, &options, insert_entry, task);
	/* the task's memory may be another one's by now */
	if (insert_state != NULL)
		AioInsertStateSetTask(insert_state, task_id);
	return task_id;
}

/*
 * Could this error be about the data of a row, so that inserting the rows one
 * after the other would have met an earlier row's error first?  Says yes if in
 * doubt: the others are those that come at any time, whatever the rows are.
 */
bool
AioIsDataError(int sqlerrcode)
{
	/* such as too large a result, or a value that an index cannot place */
	if (sqlerrcode == ERRCODE_INTERNAL_ERROR)
		return true;
	switch (ERRCODE_TO_CATEGORY(sqlerrcode))
	{
		case ERRCODE_CONNECTION_EXCEPTION:
		case ERRCODE_INVALID_TRANSACTION_STATE:
		case ERRCODE_TRANSACTION_ROLLBACK:
		case ERRCODE_INSUFFICIENT_RESOURCES:
		case ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE:
		case ERRCODE_OPERATOR_INTERVENTION:
		case ERRCODE_SYSTEM_ERROR:
		case ERRCODE_INTERNAL_ERROR:
			return false;
		default:
			return true;
	}
}
