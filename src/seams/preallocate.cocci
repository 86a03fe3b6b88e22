// Files grow into space that was allocated before.
//
// What: ExtendBufferedRelShared() locks through us, and says when it unlocks; mdzeroextend() asks us to move the end of the file before
//   it allocates or writes zeros; mdtruncate() and mdunlink() say that what lies past the end is gone.  VACUUM
//   says when it is done with a table, ProcessClientReadInterrupt() that there is nothing to do, and XLogDropDatabase() that files
//   will go of which nobody tells one by one.
// Without it: space is allocated, and waited for, under the relation extension lock.
// Could disappear: if smgr had a call to preallocate space.
//
// target: src/backend/storage/buffer/bufmgr.c AioLockForExtension+1 LockRelationForExtension-1 AioBeforeExtensionUnlock+2 fork+1 extend_by+1 ExclusiveLock-1
//   in ExtendBufferedRelShared
// target: src/backend/storage/smgr/md.c AioFallocate+1 FileFallocate-1 AioFileZero+1 FileZero-1 reln+3 forknum+4 curblocknum+2 AioForgetPreallocation+2 smgr_rlocator+1 locator+2 rlocator+1
//   in mdtruncate mdunlink mdzeroextend
// target: src/backend/tcop/postgres.c AioWhileIdle+1
//   in ProcessClientReadInterrupt
// target: src/backend/access/transam/xlogutils.c AioGiveBackInRecovery+1
//   in XLogDropDatabase
// target: src/backend/commands/vacuum.c AioTableVacuumed+1
//   in vacuum_rel

@lock@
expression r;
symbol fork, extend_by;
@@
  ExtendBufferedRelShared(...)
  {
  <+...
- LockRelationForExtension(r, ExclusiveLock)
+ AioLockForExtension(r, fork, extend_by)
  ...+>
  }

@unlock@
expression r;
@@
  ExtendBufferedRelShared(...)
  {
  <+...
+ AioBeforeExtensionUnlock();
  UnlockRelationForExtension(r, ExclusiveLock);
  ...+>
  }

@allocate@
expression list args;
symbol reln, forknum, curblocknum;
@@
  mdzeroextend(...)
  {
  <+...
- FileFallocate
+ AioFallocate
  (
+ reln, forknum, curblocknum,
  args)
  ...+>
  }

@zero@
expression list args;
symbol reln, forknum, curblocknum;
@@
  mdzeroextend(...)
  {
  <+...
- FileZero
+ AioFileZero
  (
+ reln, forknum, curblocknum,
  args)
  ...+>
  }

@truncate@
symbol reln, forknum;
statement S1, S2;
@@
  mdtruncate(...)
  {
  ... when != S1
+ AioForgetPreallocation(&reln->smgr_rlocator.locator, forknum);
  S2
  ... when any
  }

@unlink@
symbol rlocator, forknum;
statement S1, S2;
@@
  mdunlink(...)
  {
  ... when != S1
+ AioForgetPreallocation(&rlocator.locator, forknum);
  S2
  ... when any
  }

@database@
@@
  XLogDropDatabase(...)
  {
+ AioGiveBackInRecovery(true);
  smgrdestroyall();
  ...
  }

@idle@
@@
  ProcessClientReadInterrupt(...)
  {
  <+...
  if (notifyInterruptPending)
    ProcessNotifyInterrupt(true);
+ AioWhileIdle();
  ...+>
  }

@vacuum@
expression rel;
@@
  table_relation_vacuum(rel, ...);
+ AioTableVacuumed(rel);
