// Index inserts are spread over tasks.
//
// What: the executor's loop over the indexes of a row gets the batch that the row is of, as one more argument, and hands
//   each insert to us, with the batch and the position of the index.  Whoever calls that loop for a row calls us; we call
//   it, under its new name, and provide a function of the old one for others.
//   Invalidating a relation cache entry hands the access method's cache, at which a task may be looking, to us instead of
//   freeing it.
// Without it: index inserts wait for their reads one after the other; and one that was suspended in a read could come back
//   to freed memory, if a sibling processed invalidations meanwhile.
// Could disappear: if aminsert could return a pending handle, as proposed on pgsql-hackers.
// Why so many: spatch lays out a function anew whose parameters change; 18 lines are the parameters of one.
//
// target: src/backend/executor/execIndexing.c AioExecInsertIndexTuples+1 ExecInsertIndexTuples-1 AioInsertBatch+1 batch+2 i+1 AioIndexInsert+1 index_insert-1
//   in AioExecInsertIndexTuples ExecInsertIndexTuples
// target: src/backend/executor/nodeModifyTable.c AioInsertIndexTuples+3 ExecInsertIndexTuples-3
//   in ExecInsert ExecUpdateEpilogue
// target: src/backend/executor/execReplication.c AioApplyIndexTuples+2 ExecInsertIndexTuples-2
//   in ExecSimpleRelationInsert ExecSimpleRelationUpdate
// target: src/backend/utils/cache/relcache.c AioRetireAmCache+1 pfree-1 rd_amcache-1
//   in RelationInvalidateRelation

@insert@
typedef AioInsertBatch;
parameter list arguments;
symbol i, batch;
@@
- ExecInsertIndexTuples(arguments)
+ AioExecInsertIndexTuples(arguments, AioInsertBatch *batch)
  {
  <+...
- index_insert
+ AioIndexInsert
  (
+ batch, i,
  ...)
  ...+>
  }

@apply@
identifier f =~ "^ExecSimpleRelation";
@@
  f(...)
  {
  <+...
- ExecInsertIndexTuples
+ AioApplyIndexTuples
  (...)
  ...+>
  }

@calls@
identifier f != ExecInsertIndexTuples;
@@
  f(...)
  {
  <+...
- ExecInsertIndexTuples
+ AioInsertIndexTuples
  (...)
  ...+>
  }

@amcache@
symbol relation;
@@
  RelationInvalidateRelation(...)
  {
  <+...
- pfree(relation->rd_amcache)
+ AioRetireAmCache(relation)
  ...+>
  }
