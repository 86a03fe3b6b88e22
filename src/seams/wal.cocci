// WAL is written and synced by several at a time.
//
// What: the callers of XLogWrite() ask us first; XLogInsertRecord() tells how far WAL has been inserted; the WAL writer's
//   cycle is ours; where recovery ends, StartupXLOG() has us erase what a crash has left behind a hole.
// Without it: one write or one sync is in flight in the whole server, and whoever fills the WAL buffers waits for it.
// Could disappear: when upstream writes WAL through its AIO.
//
// target: src/backend/access/transam/xlog.c AioWalRecordInserted+1 AioFreeWalBuffers+1 AioFlushWal+1 AioWriteWalInBackground+1 AioEraseWalBehind+1 if+4
//   in AdvanceXLInsertBuffer StartupXLOG XLogBackgroundFlush XLogFlush XLogInsertRecord
// target: src/backend/postmaster/walwriter.c AioWalWriterCycle+1 XLogBackgroundFlush-1
//   in WalWriterMain

@inserted@
expression kind;
symbol WALINSERT_SPECIAL_SWITCH, EndPos;
statement S;
@@
  XLogInsertRecord(...)
  {
  <+...
  MarkSubxactTopXidLogged();
  ...
+ AioWalRecordInserted(EndPos);
  if (kind == WALINSERT_SPECIAL_SWITCH) S
  ...+>
  }

@room@
symbol WriteRqst, tli, false, WALWriteLock, OldPageRqstPtr;
@@
  AdvanceXLInsertBuffer(...)
  {
  <+...
+ if (!AioFreeWalBuffers(OldPageRqstPtr, tli))
+ {
  XLogWrite(WriteRqst, tli, false);
  LWLockRelease(WALWriteLock);
+ }
  ...+>
  }

@flush@
symbol record, insertTLI;
statement S;
@@
  XLogFlush(...)
  {
  <+...
+ if (!AioFlushWal(record, insertTLI))
  for (;;) S
  ...+>
  }

@background@
symbol WriteRqst, insertTLI, flexible, Write, Flush;
@@
  XLogBackgroundFlush(...)
  {
  <+...
+ if (!AioWriteWalInBackground(WriteRqst.Write, WriteRqst.Flush, insertTLI))
  XLogWrite(WriteRqst, insertTLI, flexible);
  ...+>
  }

@cycle@
@@
  WalWriterMain(...)
  {
  <+...
- XLogBackgroundFlush
+ AioWalWriterCycle
  ()
  ...+>
  }

@end@
symbol EndOfLog, newTLI, InRecovery;
@@
  StartupXLOG(...)
  {
  <+...
+ if (InRecovery) AioEraseWalBehind(EndOfLog, newTLI);
  PreallocXlogFiles(EndOfLog, newTLI);
  ...+>
  }
