// What pg_basebackup writes leaves the page cache on its way to the disk, and is synced file by file.
//
// What: the files of a backup are opened by us, with the size that is known; pg_basebackup tells us whether to sync them, and
//   when all have come; and who syncs everything below a directory asks us which files need it.
// Without it: a backup fills memory with dirty pages, evicts what others have cached, and is synced when all of it has
//   come.
// Could disappear: when upstream's programs write so.
// Why so many: each line is one call or argument, in six functions.
// include: aio/stream_file.h
//
// target: src/fe_utils/astreamer_file.c fopen-2 wb-2 AioOpenStream+2 pgoff_t+2 size+4 member+1
//   in astreamer_plain_writer_new astreamer_extractor_content create_file_for_extract
// target: src/bin/pg_basebackup/pg_basebackup.c AioSyncStreams+1 AioFinishStreams+1 do_sync+1 sync_method+1 DATA_DIR_SYNC_METHOD_FSYNC+1
//   in BaseBackup CreateBackupStreamer
// target: src/common/file_utils.c AioSyncFile+1 false-1
//   in walkdir

@writer@
expression path;
@@
  astreamer_plain_writer_new(...)
  {
    <...
-   fopen(path, "wb")
+   AioOpenStream(path, 0)
    ...>
  }

@extractor@
identifier path, mode;
@@
  create_file_for_extract(const char *path, mode_t mode
+   , pgoff_t size
    )
  {
    <...
-   fopen(path, "wb")
+   AioOpenStream(path, size)
    ...>
  }

@call@
expression path, member;
@@
  create_file_for_extract(path, member->mode
+   , member->size
    )

@sync@
expression inject;
symbol inject_manifest, do_sync, sync_method, DATA_DIR_SYNC_METHOD_FSYNC;
@@
  CreateBackupStreamer(...)
  {
    ...
+   AioSyncStreams(do_sync && sync_method == DATA_DIR_SYNC_METHOD_FSYNC);
    inject_manifest = inject;
    ... when any
  }

@finish@
symbol do_sync, backup_target;
statement S;
@@
  BaseBackup(...)
  {
    <...
+   AioFinishStreams();
    if (do_sync && backup_target == NULL) S
    ...>
  }

@walk@
identifier action, path;
@@
  walkdir(...)
  {
    <...
-   (*action) (path, false)
+   AioSyncFile(action, path)
    ...>
  }
