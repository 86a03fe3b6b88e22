// Index inserts are spread over tasks.
//
// What: the executor's loop over the indexes of a row hands each insert to us, and whoever calls that loop for a row
//   opens a scope around it.
// Without it: index inserts wait for their reads one after the other.
// Could disappear: if aminsert could return a pending handle, as proposed on pgsql-hackers.
//
// target: src/backend/executor/execIndexing.c AioIndexInsert+1 index_insert-1
// target: src/backend/executor/nodeModifyTable.c AioInsertIndexTuples+3 ExecInsertIndexTuples-3
// target: src/backend/executor/execReplication.c AioApplyIndexTuples+2 ExecInsertIndexTuples-2

@insert@
@@
  ExecInsertIndexTuples(...)
  {
  <+...
- index_insert
+ AioIndexInsert
  (...)
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
