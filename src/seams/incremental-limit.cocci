// An incremental backup does not bring back what was cut off.
//
// What: where a relation has been cut short, all blocks behind that count as changed.
// Without it: those of which there is no WAL come from the backup before.  If the relation has grown again, it may have
//   pages that nobody has used yet; in their place, whoever combines the backups gets rows that were deleted before.
// Could disappear: when upstream does what its comment says, and keeps the length of the file.
//
// target: src/backend/backup/basebackup_incremental.c BlockRefTableEntryGetBlocks-1 AioGetChangedBlocks+1 limit_block+1
//   in GetFileBackupMethod

@limit@
symbol limit_block;
expression list arguments;
@@
  GetFileBackupMethod(...)
  {
  <+...
- BlockRefTableEntryGetBlocks(arguments)
+ AioGetChangedBlocks(&limit_block, arguments)
  ...+>
  }
