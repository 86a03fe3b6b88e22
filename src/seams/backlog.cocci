// Index entries wait until the statement has inserted its rows, or until somebody could look.
//
// What: COPY and the executor's inserting node tell us when their rows are in, before any trigger is fired for them; and
//   every executor run tells us its snapshot before it begins.
// Without it: a statement would end with index entries that are nowhere but in its memory.
// Could disappear: with a table access method interface for bulk inserts into indexes.
//
// target: src/backend/commands/copyfrom.c AioRowsInserted+1
// target: src/backend/executor/nodeModifyTable.c AioRowsInserted+1
// target: src/backend/executor/execMain.c AioBeforeQuery+1

@copy@
expression estate;
@@
  CopyFrom(...)
  {
  <+...
+ AioRowsInserted(estate);
  ExecASInsertTriggers(estate, ...);
  ...+>
  }

@insert@
symbol estate;
@@
  ExecModifyTable(...)
  {
  <+...
+ AioRowsInserted(estate);
  fireASTriggers(...);
  ...+>
  }

@look@
symbol estate, queryDesc;
@@
  standard_ExecutorRun(...)
  {
  <+...
  estate = queryDesc->estate;
+ AioBeforeQuery(estate->es_snapshot);
  ...+>
  }
