// Nothing blocks while a task's reads are staged but not submitted.
//
// What: sleeping on an LWLock, on a condition variable, on a wait event set (and so on latches, heavyweight locks and
//   sockets) or on an AIO submits our batch first; upstream's own use of AIO batch mode ends ours first.  While a handle is
//   reclaimed, nobody else reclaims it, or any other.
// Without it: two backends can wait for each other for ever, one for a page whose read the other has not submitted.
//   And a process that waits for its client to read a message about the reclaiming of a handle would reclaim it twice.
// Could disappear: if upstream's batch mode did this itself.
//
// target: src/backend/storage/lmgr/lwlock.c AioBeforeBlock+1
//   in LWLockQueueSelf
// target: src/backend/storage/ipc/waiteventset.c AioBeforeSleep+1
//   in WaitEventSetWait
// target: src/backend/storage/aio/aio.c AioBeforeBlock+2 AioBeginReclaim+1 AioEndReclaim+1
//   in pgaio_enter_batchmode pgaio_io_reclaim pgaio_wref_wait
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

@reclaim@
type T;
identifier ioh;
@@
  pgaio_io_reclaim(T ioh)
  {
  <...
(
  HOLD_INTERRUPTS();
+ AioBeginReclaim();
|
+ AioEndReclaim();
  RESUME_INTERRUPTS();
)
  ...>
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
