// Count the heavyweight locks that must exclude sibling tasks.
//
// What: each entry of the local lock table is announced when it comes and when it goes.
// Without it: a task could suspend while it holds a relation extension lock, which its siblings would then share.
// Could disappear: if upstream counted these locks outside assertions.
//
// target: src/backend/storage/lmgr/lock.c AioLocalLockCreated+1 AioLocalLockRemoved+1

@created@
symbol locallock, localtag;
@@
  LockAcquireExtended(...)
  {
  <+...
+ AioLocalLockCreated(&localtag.lock);
  locallock->hashcode = LockTagHashCode(&(localtag.lock));
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
+ AioLocalLockRemoved(&locallock->tag.lock);
  S2
  ... when any
  }
