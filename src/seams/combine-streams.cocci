// What pg_combinebackup writes leaves the page cache on its way to the disk, and is synced file by file.
//
// What: the files that it copies or puts together are opened, written and closed by us, and we are told whether to sync
//   them, and how many it may have to read at once.  With copy_file_range(), the kernel writes them, and all is as ever.
// Without it: a backup fills memory with dirty pages, evicts what others have cached, and is synced when all of it has
//   been written.
// Could disappear: when upstream's programs write so.
// include: aio/stream_file.h
// Why so many: each line is one call or argument, in four functions.
//
// target: src/bin/pg_combinebackup/copy_file.c open-1 AioOpenStreamFd+1 write-1 AioWriteStreamFd+1 close-1 AioEndStreamFd+1 dst+1
//   in copy_file_blocks
// target: src/bin/pg_combinebackup/reconstruct.c open-1 AioOpenStreamFd+1 close-1 AioCloseStreamFd+1 write-1 AioWriteStreamFd+1
//   in write_block write_reconstructed_file
// target: src/bin/pg_combinebackup/pg_combinebackup.c AioSyncStreams+1 AioReserveDescriptors+1 argc+1 optind+1 opt+3 sync_method+1 no_sync+1 copy_method+1 DATA_DIR_SYNC_METHOD_FSYNC+1 COPY_METHOD_COPY_FILE_RANGE+1
//   in main

@copy@
identifier src, dst;
symbol dest_fd, pg_file_create_mode;
expression flags;
@@
  copy_file_blocks(const char *src, const char *dst, ...)
  {
  <...
(
- open(dst, flags, pg_file_create_mode)
+ AioOpenStreamFd(dst, flags, pg_file_create_mode, 0)
|
- write
+ AioWriteStreamFd
  (...)
|
- close(dest_fd)
+ AioEndStreamFd(dest_fd, dst)
)
  ...>
  }

@reconstruct@
expression path, flags;
symbol pg_file_create_mode, block_length, wfd;
@@
  write_reconstructed_file(...)
  {
  <...
(
- open(path, flags, pg_file_create_mode)
+ AioOpenStreamFd(path, flags, pg_file_create_mode, (size_t) block_length * BLCKSZ)
|
- close
+ AioCloseStreamFd
  (wfd)
)
  ...>
  }

@block@
@@
  write_block(...)
  {
  <...
- write
+ AioWriteStreamFd
  (...)
  ...>
  }

@sync@
symbol opt, version, argc, optind;
expression directory;
@@
  main(...)
  {
  <...
+ AioSyncStreams(!opt.no_sync && opt.sync_method == DATA_DIR_SYNC_METHOD_FSYNC &&
+                opt.copy_method != COPY_METHOD_COPY_FILE_RANGE);
+ AioReserveDescriptors(argc - optind);
  version = read_pg_version_file(directory);
  ...>
  }
