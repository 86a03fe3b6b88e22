// Files grow into space that was allocated before.
//
// What: ExtendBufferedRelShared() locks through us, and says when it unlocks; mdzeroextend() asks us to move the end of the file
//   before it allocates or writes zeros; mdtruncate() and mdunlink() say that what lies past the end is gone, mdextend() that
//   the file grows, XLogDropDatabase() and ForgetDatabaseSyncRequests() that files will go of which nobody tells one by one:
//   nothing there may be given back any more.  The checkpointer gives back, at the end, what the background writer has not.
//   VACUUM says when it is done with a table, and ProcessClientReadInterrupt() that there is nothing to do.
// Without it: space is allocated, and waited for, under the relation extension lock.
// Could disappear: if smgr had a call to preallocate space.
// Why so many: each line is one call, in eleven functions.
//
// target: src/backend/storage/buffer/bufmgr.c AioLockForExtension+1 LockRelationForExtension-1 AioBeforeExtensionUnlock+2 fork+1 extend_by+1 ExclusiveLock-1
//   in ExtendBufferedRelShared
// target: src/backend/storage/smgr/md.c AioFallocate+1 FileFallocate-1 AioFileZero+1 FileZero-1 reln+4 forknum+5 curblocknum+2 AioForgetPreallocation+2 AioWaitForTrim+1 AioSettleTrimsOf+1 dbid+1 smgr_rlocator+2 locator+3 rlocator+1
//   in ForgetDatabaseSyncRequests mdextend mdtruncate mdunlink mdzeroextend
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
expression v;
symbol reln, forknum;
@@
  mdextend(...)
  {
  <+...
+ AioWaitForTrim(&reln->smgr_rlocator.locator, forknum);
  v = _mdfd_getseg(reln, forknum, ...);
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
