// Index inserts are spread over tasks.
//
// What: the executor's loop over the indexes of a row gets the batch that the row is of, as one more argument, and hands
//   each insert to us, with the batch and the position of the index.  Whoever calls that loop for a row calls us; we call
//   it, under its new name, and provide a function of the old one for others.
// Without it: index inserts wait for their reads one after the other.
// Could disappear: if aminsert could return a pending handle, as proposed on pgsql-hackers.
//
// target: src/backend/executor/execIndexing.c AioExecInsertIndexTuples+1 ExecInsertIndexTuples-1 AioInsertBatch+1 batch+2 i+1 AioIndexInsert+1 index_insert-1
//   in ExecInsertIndexTuples
// target: src/backend/executor/nodeModifyTable.c AioInsertIndexTuples+3 ExecInsertIndexTuples-3
//   in ExecInsert ExecUpdateEpilogue
// target: src/backend/executor/execReplication.c AioApplyIndexTuples+2 ExecInsertIndexTuples-2
//   in ExecSimpleRelationInsert ExecSimpleRelationUpdate

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
