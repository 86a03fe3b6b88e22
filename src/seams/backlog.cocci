// Index entries wait until the statement has inserted its rows, or until somebody could look.
//
// What: COPY and the executor's inserting node tell us when their rows are in, before any trigger is fired for them; so
//   does the executor when it finishes, as it need not have run to the end; and every executor run tells us its
//   snapshot before it begins.  A row that the executor is about to insert is offered to us; before a subtransaction begins, we insert those that we
//   have kept.  Logical replication tells us of each message, DDL before it looks who uses a table, and a trigger before it runs;
//   so does whoever is about to insert into a table.
// Without it: a statement would end with index entries that are nowhere but in its memory; and a later row's error would
//   hide that of a row whose keys are waiting.
// Could disappear: with a table access method interface for bulk inserts into indexes.  Not by hooks: an extension's
//   ExecutorRun_hook may call standard_ExecutorRun() without calling ours, and its query would not see rows of this
//   statement through an index; and ProcessUtility_hook does not hear of tables that C code alters or drops by itself,
//   as extensions do in triggers, which would then fail because the table is in use.
//
// target: src/backend/commands/copyfrom.c AioRowsInserted+1
//   in CopyFrom
// target: src/backend/executor/nodeModifyTable.c AioRowsInserted+1 AioKeepBack+1 NULL+1
//   in ExecInsert ExecModifyTable
// target: src/backend/executor/execMain.c AioBeforeQuery+1 AioRowsInserted+1 AioBeforeRow+1
//   in InitResultRelInfo standard_ExecutorFinish standard_ExecutorRun
// target: src/backend/access/transam/xact.c AioBeforeSubtransaction+1
//   in BeginInternalSubTransaction
// target: src/backend/commands/tablecmds.c AioBeforeDDL+1
//   in CheckTableNotInUse
// target: src/backend/commands/trigger.c AioBeforeTrigger+1
//   in ExecCallTriggerFunc
// target: src/backend/replication/logical/worker.c AioBeforeMessage+1
//   in apply_dispatch

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

@trigger@
symbol finfo, tgindx, trigdata;
@@
  ExecCallTriggerFunc(...)
  {
  <+...
+ AioBeforeTrigger(trigdata);
  finfo += tgindx;
  ...+>
  }

@table@
symbol resultRelInfo, resultRelationDesc;
@@
  InitResultRelInfo(...)
  {
  <+...
+ AioBeforeRow(resultRelationDesc);
  resultRelInfo->ri_RelationDesc = resultRelationDesc;
  ...+>
  }
