// Workers of a parallel plan insert the rows they find into a new table.
//
// What: ExecInitParallelPlan() creates the workers' shared memory through us; ParallelQueryMain() asks us where a worker's
//   rows go, and ExecParallelFinish() tells us that the workers have ended; heap_prepare_insert() and toast_save_datum() ask us what a worker
//   may do; CREATE TABLE AS, EXPLAIN of it, and REFRESH MATERIALIZED VIEW plan through us.
// Without it: the leader inserts all rows.
// Could disappear: if upstream's workers could insert.  Planning is no matter for planner_hook, which does not hear into
//   which table the rows go: another hook would have to leave that for it, and other queries are planned in between.
//
// target: src/backend/executor/execParallel.c AioInitializeParallelDSM+1 InitializeParallelDSM-1 planstate+1 AioParallelReceiver+1 receiver+2 toc+1 AioWorkersFinished+1 pei+1 pcxt+1
//   in ExecInitParallelPlan ExecParallelFinish ParallelQueryMain
// target: src/backend/access/heap/heapam.c AioForbidsInsert+1 IsParallelWorker-1
//   in heap_prepare_insert
// target: src/backend/access/common/toast_internals.c AioInsertCommandId+1 GetCurrentCommandId-1
//   in toast_save_datum
// target: src/backend/commands/createas.c AioPlanInto+1 pg_plan_query-1 into+1
//   in ExecCreateTableAs
// target: src/backend/commands/explain.c AioPlanInto+1 pg_plan_query-1 into+1
//   in standard_ExplainOneQuery
// target: src/backend/commands/matview.c AioPlanMatview+1 pg_plan_query-1 dest+1
//   in refresh_matview_datafill

@share@
expression pcxt;
symbol planstate;
@@
  ExecInitParallelPlan(...)
  {
  <+...
- InitializeParallelDSM(pcxt)
+ AioInitializeParallelDSM(pcxt, planstate)
  ...+>
  }

@receiver@
expression seg;
symbol receiver, toc;
@@
  ParallelQueryMain(...)
  {
  <+...
  receiver = ExecParallelGetReceiver(seg, toc);
+ receiver = AioParallelReceiver(toc, receiver);
  ...+>
  }

@finish@
expression pcxt;
@@
  ExecParallelFinish(...)
  {
  <+...
  WaitForParallelWorkersToFinish(pcxt);
+ AioWorkersFinished(pcxt);
  ...+>
  }

@insert@
@@
  heap_prepare_insert(...)
  {
  <+...
- IsParallelWorker()
+ AioForbidsInsert()
  ...+>
  }

@toast@
identifier cid;
type T;
@@
  toast_save_datum(...)
  {
  ...
  T cid =
- GetCurrentCommandId
+ AioInsertCommandId
  (true);
  ...
  }

@plan@
identifier f = {ExecCreateTableAs, standard_ExplainOneQuery};
expression list args;
symbol into;
@@
  f(...)
  {
  <+...
- pg_plan_query
+ AioPlanInto
  (
+ into,
  args)
  ...+>
  }

@matview@
expression list args;
symbol dest;
@@
  refresh_matview_datafill(...)
  {
  <+...
- pg_plan_query
+ AioPlanMatview
  (
+ dest,
  args)
  ...+>
  }
