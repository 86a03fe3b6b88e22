// Workers of a parallel plan insert the rows they find into a new table.
//
// What: ExecInitParallelPlan() creates the workers' shared memory through us; ParallelQueryMain() asks us where a worker's
//   rows go, and ExecParallelFinish() tells us that the workers have ended; heap_prepare_insert() and toast_save_datum() ask us what a worker
//   may do.
// Without it: the leader inserts all rows.
// Could disappear: if upstream's workers could insert.
//
// target: src/backend/executor/execParallel.c AioInitializeParallelDSM+1 InitializeParallelDSM-1 planstate+1 AioParallelReceiver+1 receiver+2 toc+1 AioWorkersFinished+1 pei+1 pcxt+1
//   in ExecInitParallelPlan ExecParallelFinish ParallelQueryMain
// target: src/backend/access/heap/heapam.c AioForbidsInsert+1 IsParallelWorker-1
//   in heap_prepare_insert
// target: src/backend/access/common/toast_internals.c AioInsertCommandId+1 GetCurrentCommandId-1
//   in toast_save_datum

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
