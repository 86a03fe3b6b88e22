// Files grow into space that was allocated before.
//
// What: ExtendBufferedRelShared() locks through us, and says when it unlocks; mdzeroextend() asks us to move the end of the file
//   before it allocates or writes zeros, and mdextend() writes through us; mdtruncate() and mdunlink() say when a file begins
//   to be cut, and when that is done, XLogDropDatabase(), ForgetDatabaseSyncRequests() and movedb() that files will go, or be
//   copied, of which nobody tells one by one: nothing there may be given back any more.  The checkpointer gives back, at the
//   end, what the background writer has not.
//   VACUUM says when it is done with a table, and ProcessClientReadInterrupt() that there is nothing to do.
// Without it: space is allocated, and waited for, under the relation extension lock.
// Could disappear: if smgr had a call to preallocate space.
// Why so many: each line is one call, in eleven functions.
//
// target: src/backend/storage/buffer/bufmgr.c AioLockForExtension+1 LockRelationForExtension-1 AioBeforeExtensionUnlock+2 fork+1 extend_by+1 ExclusiveLock-1
//   in ExtendBufferedRelShared
// target: src/backend/storage/smgr/md.c AioFallocate+1 FileFallocate-1 AioFileZero+1 FileZero-1 AioFileExtend+1 FileWrite-1 reln+4 forknum+5 curblocknum+2 AioBeginCut+2 AioEndFileChange+2 AioSettleTrimsOf+1 dbid+1 smgr_rlocator+1 locator+2 rlocator+1
//   in ForgetDatabaseSyncRequests mdextend mdtruncate mdunlink mdzeroextend
// target: src/backend/commands/dbcommands.c AioSettleTrimsOf+1 db_id+1
//   in movedb
// target: src/backend/tcop/postgres.c AioWhileIdle+1
//   in ProcessClientReadInterrupt
// target: src/backend/access/transam/xlogutils.c AioGiveBackInRecovery+1 AioSettleTrimsOf+1 dbid+1
//   in XLogDropDatabase
// target: src/backend/access/transam/xlog.c AioTrimWanted+1
//   in ShutdownXLOG
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
symbol reln, forknum, curopensegs, md_num_open_segs;
@@
  mdtruncate(...)
  {
  ... when any
+ AioBeginCut(&reln->smgr_rlocator.locator, forknum);
  curopensegs = reln->md_num_open_segs[forknum];
  ... when any
+ AioEndFileChange();
  }

@unlink@
symbol rlocator, forknum;
statement S1, S2;
@@
  mdunlink(...)
  {
  ... when != S1
+ AioBeginCut(&rlocator.locator, forknum);
  S2
  ... when any
+ AioEndFileChange();
  }

@database@
symbol dbid;
@@
  XLogDropDatabase(...)
  {
+ AioGiveBackInRecovery(true);
+ AioSettleTrimsOf(dbid);
  smgrdestroyall();
  ...
  }

@dropped@
symbol dbid;
@@
  ForgetDatabaseSyncRequests(...)
  {
  <+...
+ AioSettleTrimsOf(dbid);
  RegisterSyncRequest(...);
  ...+>
  }

@extend@
expression list args;
symbol reln, forknum;
@@
  mdextend(...)
  {
  <+...
- FileWrite
+ AioFileExtend
  (
+ reln, forknum,
  args)
  ...+>
  }

@move@
symbol db_id;
expression list args;
@@
  movedb(...)
  {
  <+...
+ AioSettleTrimsOf(db_id);
  copydir(args);
  ...+>
  }

@shutdown@
@@
  ShutdownXLOG(...)
  {
  <+...
  WalSndWaitStopping();
+ AioTrimWanted();
  ...+>
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
