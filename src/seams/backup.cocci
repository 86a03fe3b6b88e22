// BASE_BACKUP reads files ahead.
//
// What: it tells us when a backup begins and ends, takes names of a directory from us, says which file is sent next and which
//   blocks of it are wanted, and asks us for bytes before it reads them.  A read can have flags.
// Without it: a backup waits for 32 kB at a time, and fills the kernel's page cache.
// Could disappear: when BASE_BACKUP reads by upstream's AIO.
// Why so many: each line is one call, in six functions.
//
// target: src/backend/backup/basebackup.c AioBackupBegin+1 AioBackupEnd+1 AioBackupReadDir+1 ReadDir-1 AioBackupFile+1 fd+1 AioBackupRead+2 basebackup_read_file-2 true-2 ib+1 readfilename+1 incremental_blocks+1 num_incremental_blocks+1 sizeonly+1
//   in SendBaseBackup perform_base_backup read_file_data_into_buffer sendDir sendFile
// target: src/backend/storage/aio/aio_io.c AioPerformReadV+1 pg_preadv-1 fd-1 ioh-2 iov-1 iov_length-1 offset-1 op_data-3 read-3
//   in pgaio_io_perform_synchronously
// target: src/backend/storage/aio/method_io_uring.c AioUringSetFlags+1
//   in pgaio_uring_sq_from_io

@begin@
symbol ib;
expression sink;
@@
  SendBaseBackup(...)
  {
  <+...
  sink = bbsink_progress_new(...);
+ AioBackupBegin(ib != NULL);
  ...+>
  }

@end@
expression sink;
@@
  SendBaseBackup(...)
  {
  <+...
+ AioBackupEnd();
  bbsink_cleanup(sink);
  ...+>
  }

@names@
symbol sizeonly;
expression dir, path;
@@
  sendDir(...)
  {
  <+...
- ReadDir(dir, path)
+ AioBackupReadDir(dir, path, sizeonly)
  ...+>
  }

@turn@
symbol fd, readfilename, incremental_blocks, num_incremental_blocks;
expression sink, name, status;
@@
  sendFile(...)
  {
  <+...
+ AioBackupFile(fd, readfilename, incremental_blocks, num_incremental_blocks);
  _tarWriteHeader(sink, name, NULL, status, false);
  ...+>
  }

@data@
expression fd, buf, nbytes, offset, path;
@@
  read_file_data_into_buffer(...)
  {
  <+...
- basebackup_read_file(fd, buf, nbytes, offset, path, true)
+ AioBackupRead(fd, buf, nbytes, offset, path)
  ...+>
  }

@wal@
expression fd, buf, nbytes, offset, path;
@@
  perform_base_backup(...)
  {
  <+...
- basebackup_read_file(fd, buf, nbytes, offset, path, true)
+ AioBackupRead(fd, buf, nbytes, offset, path)
  ...+>
  }

@perform@
identifier ioh;
type T;
@@
  pgaio_io_perform_synchronously(T ioh)
  {
  <...
- pg_preadv(...)
+ AioPerformReadV(ioh)
  ...>
  }

@uring@
identifier ioh, sqe;
type T, S;
@@
  pgaio_uring_sq_from_io(T ioh, S sqe)
  {
  <...
+ AioUringSetFlags(ioh, sqe);
  io_uring_sqe_set_data(sqe, ioh);
  ...>
  }
