// Nothing blocks while a task's reads are staged but not submitted.
//
// What: sleeping on an LWLock, on a condition variable, on a wait event set (and so on latches, heavyweight locks and
//   sockets) or on an AIO submits our batch first; upstream's own use of AIO batch mode ends ours first.
// Without it: two backends can wait for each other for ever, one for a page whose read the other has not submitted.
// Could disappear: if upstream's batch mode did this itself.
//
// target: src/backend/storage/lmgr/lwlock.c AioBeforeBlock+1
//   in LWLockQueueSelf
// target: src/backend/storage/ipc/waiteventset.c AioBeforeSleep+1
//   in WaitEventSetWait
// target: src/backend/storage/aio/aio.c AioBeforeBlock+2
//   in pgaio_enter_batchmode pgaio_wref_wait
// target: src/backend/storage/lmgr/condition_variable.c AioBeforeConditionVariable+1
//   in ConditionVariableTimedSleep

@lwlock@
statement S1, S2;
identifier lock, mode;
type L, M;
@@
  LWLockQueueSelf(L lock, M mode)
  {
  ... when != S1
+ AioBeforeBlock();
  S2
  ... when any
  }

@wes@
expression events;
@@
  WaitEventSetWait(...)
  {
  <+...
+ AioBeforeSleep();
  pgstat_report_wait_start(events);
  ...+>
  }

@aio@
expression ioh, generation;
@@
  pgaio_wref_wait(...)
  {
  <+...
+ AioBeforeBlock();
  pgaio_io_wait(ioh, generation);
  ...+>
  }

@batch@
statement S1, S2;
@@
  pgaio_enter_batchmode(...)
  {
  ... when != S1
+ AioBeforeBlock();
  S2
  ... when any
  }

@cv@
statement S1, S2;
@@
  ConditionVariableTimedSleep(...)
  {
  ... when != S1
+ AioBeforeConditionVariable();
  S2
  ... when any
  }
