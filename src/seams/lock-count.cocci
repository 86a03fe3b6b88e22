// Count the heavyweight locks held that must exclude sibling tasks.
//
// What: the local lock table tells us where its count of a lock goes up, down, or away.
// Without it: a task could suspend while it holds a relation extension lock, which its siblings would then share.
// Could disappear: if upstream counted these locks outside assertions.
//
// target: src/backend/storage/lmgr/lock.c AioLocalLockGranted+1 AioLocalLockReleased+1 AioLocalLockRemoved+1
//   in GrantLockLocal LockRelease RemoveLocalLock

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
