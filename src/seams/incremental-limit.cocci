// An incremental backup does not bring back what was cut off.
//
// What: blocks that are not in the backup come from the one before only up to where the relation was cut short meanwhile.
// Without it: they do so up to the end of the file.  If it has grown again, it may have pages at its end that nobody has
//   used yet; in their place, whoever combines the backups gets rows that were deleted before.
// Could disappear: when upstream does what its comment says.
//
// target: src/backend/backup/basebackup_incremental.c Min+1 if-1 relative_limit-1
//   in GetFileBackupMethod

@limit@
symbol truncation_block_length, relative_limit;
@@
  GetFileBackupMethod(...)
  {
  <+...
- if (*truncation_block_length < relative_limit)
-	*truncation_block_length = relative_limit;
+ *truncation_block_length = Min(*truncation_block_length, relative_limit);
  ...+>
  }
