// A task lets its siblings finish before it waits for another transaction.
//
// What: waiting for a transaction, or for a speculative insertion, tells us first.
// Without it: suspended siblings keep buffer pins for as long as the other transaction takes, and VACUUM and the other
//   transaction can deadlock with us through them, undetected.
// Could disappear: if heavyweight locks could be awaited.
//
// target: src/backend/storage/lmgr/lmgr.c AioBeforeLockWait+2
//   in SpeculativeInsertionWait XactLockTableWait

@xact@
statement S1, S2;
@@
  XactLockTableWait(...)
  {
  ... when != S1
+ AioBeforeLockWait();
  S2
  ... when any
  }

@spec@
expression tag, mode;
@@
  SpeculativeInsertionWait(...)
  {
  <+...
+ AioBeforeLockWait();
  (void) LockAcquire(&tag, mode, ...);
  ...+>
  }
