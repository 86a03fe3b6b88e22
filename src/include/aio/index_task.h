/*-------------------------------------------------------------------------
 *
 * index_task.h
 *	  One index insert as a task.  Private to src/backend/executor.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AIO_INDEX_TASK_H
#define AIO_INDEX_TASK_H

#include "access/genam.h"
#include "aio/index_am.h"

struct AioInsertState;

/*
 * Argument of the task.  What it points to belongs to the statement and
 * outlives the task; key values are copied, pass-by-reference data are not.
 */
typedef struct AioIndexTask
{
	AioIndexEntry entry;		/* must be first: page_arrived() gets it */
	const AioIndexAmOps *ops;
	struct AioInsertState *insert_state;	/* to give back, or NULL */
	IndexUniqueCheck check_unique;
	bool		unchanged;
	bool		ordered;
	bool	   *result;			/* where to, if somebody waits for it */
	uint64	   *cur_lineno;		/* COPY's line number for error context, */
	uint64		lineno;			/* and this row's; or NULL */
} AioIndexTask;

/* index_task.c */
extern AioIndexTask *AioPrepareIndexTask(AioScope *scope,
										 const AioIndexAmOps *ops,
										 Relation index, Relation heap,
										 IndexInfo *info,
										 const Datum *values,
										 const bool *isnull,
										 ItemPointer tid);
extern uint64 AioStartIndexTask(AioScope *scope, AioIndexTask *task);

/* insert_state.c */
extern struct AioInsertState *AioAcquireInsertState(IndexInfo *info, uint64 *wait_for);
extern IndexInfo *AioInsertStateInfo(struct AioInsertState *insert_state);
extern void AioInsertStateSetTask(struct AioInsertState *insert_state, uint64 task_id);
extern void AioReleaseInsertState(struct AioInsertState *insert_state);

#endif							/* AIO_INDEX_TASK_H */
