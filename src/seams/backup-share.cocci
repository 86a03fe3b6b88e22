// Several connections send the files of one base backup.
//
// What: BASE_BACKUP has us take our options out of its own, and carry it out; it offers us each file of a directory before it
//   is sent; and it has us send those that we have kept before it sends pg_control.
// Without it: a backup is no faster than one connection, and one process of the server.
// Could disappear: when BASE_BACKUP can be shared by connections.
//
// target: src/backend/backup/basebackup.c AioBackupOptions+1 AioPerformBaseBackup+1 perform_base_backup-1 AioBackupSendFile+1 sendFile-1 AioBackupShareOut+1 sink+1 manifest+1
//   in SendBaseBackup perform_base_backup sendDir

@options@
expression options, opt;
@@
  SendBaseBackup(...)
  {
  <+...
- parse_basebackup_options(options, opt)
+ parse_basebackup_options(AioBackupOptions(options), opt)
  ...+>
  }

@perform@
expression opt, sink, ib;
@@
  SendBaseBackup(...)
  {
  <+...
- perform_base_backup(opt, sink, ib)
+ AioPerformBaseBackup(opt, sink, ib)
  ...+>
  }

@each@
@@
  sendDir(...)
  {
  <+...
- sendFile
+ AioBackupSendFile
  (...)
  ...+>
  }

@rest@
symbol XLOG_CONTROL_FILE, sink, manifest;
expression status;
statement S;
@@
  perform_base_backup(...)
  {
  <+...
+ AioBackupShareOut(sink, &manifest);
  if (lstat(XLOG_CONTROL_FILE, status) != 0) S
  ...+>
  }
