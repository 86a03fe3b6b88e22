// Somebody inserts unique keys in the order of their index, while nobody else writes to the table.
//
// What: whoever has got a lock on a table looks whether another session keeps it for itself for a moment, and waits if so.
// Without it: a session that inserts keys in index order could wait for one that has come meanwhile, and that one for it.
// Could disappear: if a lock could be held for a moment that neither lock_timeout nor NOWAIT count as one.
//
// target: src/backend/storage/lmgr/lmgr.c AioTableLocked+3
//   in LockRelation LockRelationId LockRelationOid

@locked@
expression mode, log;
symbol res, tag, locallock;
identifier f = {LockRelation, LockRelationId, LockRelationOid};
@@
  f(...)
  {
  <+...
  res = LockAcquireExtended(&tag, mode, false, false, true, &locallock, log);
+ AioTableLocked(&tag, mode);
  ...+>
  }
