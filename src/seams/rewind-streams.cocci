// What pg_rewind copies is on its way to the disk at once, and synced file by file.
//
// What: the file that is being written is opened, written and closed by us, and we are told whether to sync it.
// Without it: all that is copied is dirty in memory, and synced when all of it has been copied.
// Could disappear: when upstream's programs write so.
// include: aio/stream_file.h
//
// target: src/bin/pg_rewind/file_ops.c open-1 AioOpenStreamFd+1 close-1 AioCloseStreamFd+1 lseek-1 AioSeekStreamFd+1 write-1 AioWriteStreamFd+1
//   in close_target_file open_target_file write_target_range
// target: src/bin/pg_rewind/pg_rewind.c AioSyncStreams+1 AioKeepStreams+1
//   in main

@open@
expression path, mode, access;
@@
  open_target_file(...)
  {
  <...
- open(path, mode, access)
+ AioOpenStreamFd(path, mode, access, 0)
  ...>
  }

@close@
@@
  close_target_file(...)
  {
  <...
- close
+ AioCloseStreamFd
  (...)
  ...>
  }

@write@
@@
  write_target_range(...)
  {
  <...
(
- lseek
+ AioSeekStreamFd
  (...)
|
- write
+ AioWriteStreamFd
  (...)
)
  ...>
  }

@sync@
expression list arguments;
symbol do_sync, sync_method;
@@
  main(...)
  {
  <...
+ AioKeepStreams();
+ AioSyncStreams(do_sync && sync_method == DATA_DIR_SYNC_METHOD_FSYNC);
  perform_rewind(arguments);
  ...>
  }
