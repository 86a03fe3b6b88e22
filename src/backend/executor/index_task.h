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
#include "aio/task.h"
#include "index_policy.h"
#include "storage/buf.h"

struct AioIndexLane;

/*
 * Argument of the task.  What it points to belongs to the statement and
 * outlives the task; key values are copied, pass-by-reference data are not.
 */
typedef struct AioIndexTask
{
	Relation	index;
	Relation	heap;
	IndexInfo  *info;
	struct AioIndexLane *lane;	/* to give back, or NULL */
	AioIndexMode mode;
	IndexUniqueCheck check_unique;
	bool		unchanged;
	bool		ordered;
	ItemPointerData tid;
	bool	   *result;			/* where to, if somebody waits for it */
	uint64	   *cur_lineno;		/* COPY's line number for error context, */
	uint64		lineno;			/* and this row's; or NULL */
	Size		tuple_bytes;	/* space that the index tuple takes, or 0 */
	int			natts;
	bool		isnull[INDEX_MAX_KEYS];
	Datum		values[INDEX_MAX_KEYS];
} AioIndexTask;

/* btree_read.c, hash_read.c: bring in what the insert will need */
extern void AioBtreeWatchPage(void *event, void *arg);
extern void AioBtreeReadAhead(AioIndexTask *task);
extern void AioHashReadAhead(AioIndexTask *task);

/* index_insert.c */
extern void AioSpawnIndexInsert(AioScope *scope, Relation index, Relation heap,
								IndexInfo *info, AioIndexMode mode,
								const Datum *values, const bool *isnull,
								ItemPointer tid);

/* lanes.c */
extern struct AioIndexLane *AioAcquireLane(IndexInfo *info, uint64 *wait_for);
extern IndexInfo *AioLaneInfo(struct AioIndexLane *lane);
extern void AioLaneSetTask(struct AioIndexLane *lane, uint64 task_id);
extern void AioReleaseLane(struct AioIndexLane *lane);

#endif							/* AIO_INDEX_TASK_H */
