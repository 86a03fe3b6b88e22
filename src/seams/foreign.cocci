// Batches of rows go to foreign servers without waiting for the answer.
//
// What: INSERT and COPY hand a batch for a foreign table to us, with the counter to which they add its rows, and the
//   flag that has the context of errors not name a line.
// Without it: a statement waits for each server in turn.
// Could disappear: if upstream's asynchronous execution knew inserts.
//
// target: src/backend/executor/nodeModifyTable.c AioForeignBatchInsert+1 ExecForeignBatchInsert-1 ri_FdwRoutine-1 canSetTag+1 es_processed+1 estate+1 NULL+2 resultRelInfo-1
//   in ExecBatchInsert
// target: src/backend/commands/copyfrom.c AioForeignBatchInsert+1 ExecForeignBatchInsert-1 ri_FdwRoutine-1 processed+1 uint64+1 resultRelInfo-1 cstate+1 relname_only+1
//   in CopyMultiInsertBufferFlush

@insert@
expression rri, slots, planslots, n;
symbol estate, canSetTag;
@@
  ExecBatchInsert(...)
  {
  <+...
- rri->ri_FdwRoutine->ExecForeignBatchInsert
+ AioForeignBatchInsert
  (
+ canSetTag ? &estate->es_processed : NULL, NULL,
  estate, rri, slots, planslots, n)
  ...+>
  }

@copy@
typedef uint64;
expression rri, slots, planslots, n;
symbol estate, processed, cstate;
@@
  CopyMultiInsertBufferFlush(...)
  {
  <+...
- rri->ri_FdwRoutine->ExecForeignBatchInsert
+ AioForeignBatchInsert
  (
+ (uint64 *) processed, &cstate->relname_only,
  estate, rri, slots, planslots, n)
  ...+>
  }
