// An incremental backup takes WAL summaries in the order of the WAL.
//
// What: the list of summaries that are needed is sorted before it is read.
// Without it: they are read in the order of their directory, and the newest timeline comes first.  If one that says that a
//   relation was cut short is read after a later one, the blocks that have been written since are forgotten, are not in the
//   backup, and are lost when it is combined.
// Could disappear: when upstream sorts them.
//
// target: src/backend/backup/basebackup_incremental.c AioSortWalSummaries+1 required_wslist+1
//   in PrepareForIncrementalBackup

@order@
symbol ib, required_wslist;
@@
  PrepareForIncrementalBackup(...)
  {
  <+...
+ AioSortWalSummaries(required_wslist);
  ib->brtab = CreateEmptyBlockRefTable();
  ...+>
  }
