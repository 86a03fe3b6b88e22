// Heavyweight locks, and a task that holds or awaits one.
//
// What: the local lock table tells us where its count of a lock goes up, down, or away; waiting for a transaction, or for a
//   speculative insertion, tells us first; and so does whoever gets a lock.
// Without it: a task could suspend while it holds a relation extension lock, which its siblings would then share; and
//   suspended siblings would keep buffer pins for as long as another transaction takes, so that VACUUM and that
//   transaction can deadlock with us through them, undetected.  A subscription's worker would wait for a lock whose owner
//   waits for an index that it has locked for its next rows; and others would insert keys that a statement keeps back.
// Could disappear: if upstream counted these locks outside assertions, and heavyweight locks could be awaited.
//
// target: src/backend/storage/lmgr/lock.c AioBeforeLock+1 AioLocalLockGranted+1 AioLocalLockReleased+1 AioLocalLockRemoved+1
//   in GrantLockLocal LockAcquireExtended LockRelease RemoveLocalLock
// target: src/backend/storage/lmgr/lmgr.c AioBeforeLockWait+2
//   in SpeculativeInsertionWait XactLockTableWait

@acquire@
symbol locktag, lockmode, sessionLock, dontWait, lockMethodTable;
expression method;
@@
  LockAcquireExtended(...)
  {
  <+...
+ AioBeforeLock(locktag, lockmode, sessionLock, dontWait);
  lockMethodTable = method;
  ...+>
  }

@granted@
symbol locallock;
@@
  GrantLockLocal(...)
  {
  <+...
+ AioLocalLockGranted(locallock);
  locallock->nLocks++;
  ...+>
  }

@released@
symbol locallock;
@@
  LockRelease(...)
  {
  <+...
  locallock->nLocks--;
+ AioLocalLockReleased(locallock);
  ...+>
  }

@removed@
statement S1, S2;
identifier locallock;
type L;
@@
  RemoveLocalLock(L locallock)
  {
  ... when != S1
+ AioLocalLockRemoved(locallock);
  S2
  ... when any
  }

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
