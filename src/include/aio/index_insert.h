/*-------------------------------------------------------------------------
 *
 * index_insert.h
 *	  Index inserts whose reads are awaited together.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AIO_INDEX_INSERT_H
#define AIO_INDEX_INSERT_H

#include "access/genam.h"
#include "commands/copy.h"
#include "nodes/execnodes.h"

extern PGDLLIMPORT bool aio_await_index_inserts;

typedef struct AioInsertBatch AioInsertBatch;

extern void AioRegisterBuiltInAms(void);
extern List *AioInsertIndexTuples(ResultRelInfo *rri, TupleTableSlot *slot,
								  EState *estate, bool update, bool noDupErr,
								  bool *specConflict, List *arbiterIndexes,
								  bool onlySummarizing);
extern List *AioApplyIndexTuples(ResultRelInfo *rri, TupleTableSlot *slot,
								 EState *estate, bool update, bool noDupErr,
								 bool *specConflict, List *arbiterIndexes,
								 bool onlySummarizing);
extern List **AioInsertIndexBatch(ResultRelInfo *rri, TupleTableSlot **slots,
								  int nslots, CommandId cid, EState *estate,
								  CopyFromState cstate, const uint64 *linenos);
extern bool AioIsDataError(int sqlerrcode);
extern bool AioIndexInsertInBatch(AioInsertBatch *batch, int position,
								  Relation indexRelation, Datum *values,
								  bool *isnull, ItemPointer tid,
								  Relation heapRelation,
								  IndexUniqueCheck checkUnique,
								  bool indexUnchanged, IndexInfo *indexInfo);

/* execIndexing.c: ExecInsertIndexTuples(), for a row of a batch, or NULL */
extern List *AioExecInsertIndexTuples(ResultRelInfo *resultRelInfo,
									  TupleTableSlot *slot, EState *estate,
									  bool update, bool noDupErr,
									  bool *specConflict,
									  List *arbiterIndexes,
									  bool onlySummarizing,
									  AioInsertBatch *batch);

extern PGDLLIMPORT void (*aio_entries_awaited_hook) (const EState *estate);

#endif							/* AIO_INDEX_INSERT_H */
