// Index entries wait until the statement has inserted its rows, or until somebody could look.
//
// What: COPY and the executor's inserting node tell us when their rows are in, before any trigger is fired for them; so
//   does the executor when it finishes, as it need not have run to the end; and every executor run tells us its
//   snapshot before it begins.  COPY and the executor's main loop run in a guard.
//   A row that the executor is about to insert is offered to us; before a subtransaction begins, we insert those that we
//   have kept.  Logical replication tells us of each message, and DDL before it looks who uses a table.
// Without it: a statement would end with index entries that are nowhere but in its memory; and a later row's error would
//   hide that of a row whose keys are waiting.
// Could disappear: with a table access method interface for bulk inserts into indexes.
//
// target: src/backend/commands/copyfrom.c AioRowsInserted+1
//   in CopyFrom
// target: src/backend/executor/nodeModifyTable.c AioRowsInserted+1 AioKeepBack+1 NULL+1
//   in ExecInsert ExecModifyTable
// target: src/backend/executor/execMain.c AioBeforeQuery+1 AioRowsInserted+1 AioExecutePlan+1 ExecutePlan-1
//   in standard_ExecutorFinish standard_ExecutorRun
// target: src/backend/commands/copy.c AioCopyFrom+1 CopyFrom-1
//   in DoCopy
// target: src/backend/access/transam/xact.c AioBeforeSubtransaction+1
//   in BeginInternalSubTransaction
// target: src/backend/commands/tablecmds.c AioBeforeDDL+1
//   in CheckTableNotInUse
// target: src/backend/replication/logical/worker.c AioBeforeMessage+1
//   in apply_dispatch
// target: src/backend/replication/logical/tablesync.c AioCopyFrom+1 CopyFrom-1
//   in copy_table

@copy@
symbol estate, error_context_stack;
identifier callback;
@@
  CopyFrom(...)
  {
  <+...
+ AioRowsInserted(estate);
  error_context_stack = callback.previous;
  ...+>
  }

@guard_copy@
expression cstate;
@@
- CopyFrom(cstate)
+ AioCopyFrom(cstate)

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

@keep_back@
expression rel, slot, cid;
symbol mtstate, resultRelInfo, canSetTag, NULL;
@@
  ExecInsert(...)
  {
  <+...
+ if (AioKeepBack(mtstate, resultRelInfo, slot, canSetTag))
+ return NULL;
  table_tuple_insert(rel, slot, cid, 0, NULL);
  ...+>
  }

@finish@
symbol estate;
@@
  standard_ExecutorFinish(...)
  {
  <+...
  ExecPostprocessPlan(estate);
+ AioRowsInserted(estate);
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

@guard_plan@
@@
  standard_ExecutorRun(...)
  {
  <+...
- ExecutePlan
+ AioExecutePlan
  (...)
  ...+>
  }

@message@
symbol action, saved_command, apply_error_callback_arg;
@@
  apply_dispatch(...)
  {
  <+...
+ AioBeforeMessage(action);
  saved_command = apply_error_callback_arg.command;
  ...+>
  }

@subtransaction@
symbol ExitOnAnyError, true;
@@
  BeginInternalSubTransaction(...)
  {
  <+...
+ AioBeforeSubtransaction();
  ExitOnAnyError = true;
  ...+>
  }

@ddl@
symbol expected_refcnt, rel;
@@
  CheckTableNotInUse(...)
  {
  <+...
+ AioBeforeDDL();
  expected_refcnt = rel->rd_isnailed ? 2 : 1;
  ...+>
  }
