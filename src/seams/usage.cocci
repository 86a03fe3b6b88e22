// What upstream's AIO does is counted, by kind of I/O.
//
// What: calls where I/Os are submitted, executed by the process itself, completed and reclaimed; one
//   where processes without transactions report what they have counted; two around the execution of a plan node, and
//   one where its instrumentation is made; three where a parallel worker is instrumented, and where that is passed on.
// Without it: our views and EXPLAIN (AIO) would know only what tasks do.
// Could disappear: when upstream has statistics of its AIO.
//
// target: src/backend/storage/aio/aio.c AioCountSubmission+1 AioCountCompletion+1 AioCountReclaim+1
//   in pgaio_io_process_completion pgaio_io_reclaim pgaio_submit_staged
// target: src/backend/storage/aio/aio_io.c AioCountSynchronous+1
//   in pgaio_io_perform_synchronously
// target: src/backend/utils/activity/pgstat_io.c AioReportStats+1
//   in pgstat_flush_io
// target: src/backend/executor/instrument.c AioStartNode+1 AioStopNode+1 AioForgetNodes+1
//   in InstrAlloc InstrStartNode InstrStopNode
// target: src/backend/executor/execParallel.c AioStartUsageOfWorker+1 AioReportNodeUsage+1 AioCollectNodeUsage+1 toc+2 pei+2 pcxt+1 planstate+2 queryDesc+1
//   in ExecParallelCleanup ParallelQueryMain

@submit@
symbol pgaio_method_ops;
expression result;
@@
  pgaio_submit_staged(...)
  {
  <...
+ AioCountSubmission(pgaio_my_backend->staged_ios, pgaio_my_backend->num_staged_ios);
  result = pgaio_method_ops->submit(...);
  ...>
  }

@complete@
expression ioh;
@@
  pgaio_io_process_completion(...)
  {
  <...
  pgaio_io_call_complete_shared(ioh);
+ AioCountCompletion(ioh);
  ...>
  }

@reclaim@
type T;
identifier ioh;
@@
  pgaio_io_reclaim(T ioh)
  {
  <...
  HOLD_INTERRUPTS();
+ AioCountReclaim(ioh);
  ...>
  }

@perform@
type T;
identifier ioh;
@@
  pgaio_io_perform_synchronously(T ioh)
  {
  <...
  START_CRIT_SECTION();
+ AioCountSynchronous(ioh);
  ...>
  }

@report@
type T;
identifier nowait;
@@
  pgstat_flush_io(T nowait)
  {
  ...
+ AioReportStats(nowait);
  }

@start@
type T;
identifier instr;
statement S1, S2;
@@
  InstrStartNode(T instr)
  {
  ... when != S1
+ AioStartNode(instr);
  S2
  ... when any
  }

@stop@
type T;
identifier instr;
@@
  InstrStopNode(T instr, ...)
  {
  ...
+ AioStopNode(instr);
  }

@make@
identifier n, instr;
@@
  InstrAlloc(int n, ...)
  {
  ...
+ AioForgetNodes(instr, n);
  return instr;
  }

@begin@
@@
  ParallelQueryMain(...)
  {
  <+...
  InstrStartParallelQuery();
+ AioStartUsageOfWorker();
  ...+>
  }

@worker@
symbol toc;
expression planstate, instrumentation;
@@
  ParallelQueryMain(...)
  {
  <+...
+ AioReportNodeUsage(toc, planstate);
  ExecParallelReportInstrumentation(planstate, instrumentation);
  ...+>
  }

@leader@
identifier pei;
type T;
expression planstate, instrumentation;
@@
  ExecParallelCleanup(T pei)
  {
  <+...
+ AioCollectNodeUsage(pei->pcxt->toc, planstate);
  ExecParallelRetrieveInstrumentation(planstate, instrumentation);
  ...+>
  }
