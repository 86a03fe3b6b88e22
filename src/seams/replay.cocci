// Pages that recovery will need are read ahead.
//
// What: the prefetcher of recovery asks us for each page instead of giving the kernel a hint, which it may leave undone if we
//   read ahead; it shows us records, and which pages they make anew, asks us how much may be on its way and when to decode further if
//   there was no room, and tells us when it is about to read records and to return one, and when what it has decoded is void;
//   recovery tells us before it waits for a command, for the end of a pause or of a delay.  The background writer's cycle is
//   ours, which notes ahead what the startup process would have to wait for.
// Without it: each page that is not in memory is waited for, under direct I/O, and read after a hint by a system call
//   that copies it, otherwise.
// Could disappear: when upstream's prefetcher reads pages by its AIO.
// Why so many: each line is one call or argument, in nine functions.
//
// target: src/backend/access/transam/xlogprefetcher.c AioReplaySeeRecord+1 AioReplaySee+1 AioReplayPrefetch+1 PrefetchSharedBuffer-1 aio_replay_active+1 AioReplayDepth+1 AioReplayBeforeReadAhead+1 AioReplayBeforeRecord+1 lrq_inflight+1 AioReplayForget+2 AioReplayTryAgainAt+1 decode_queue_tail-1
//   in XLogPrefetcherBeginRead XLogPrefetcherFree XLogPrefetcherNextBlock XLogPrefetcherReadRecord
// target: src/backend/access/transam/xlogrecovery.c AioReplayBeforeWait+3
//   in RecoveryRequiresIntParameter recoveryApplyDelay recoveryPausesHere
// target: src/backend/access/transam/xlogarchive.c AioReplayBeforeWait+1
//   in RestoreArchivedFile
// target: src/backend/postmaster/bgwriter.c AioBackgroundWriterCycle+1 BgBufferSync-1
//   in BackgroundWriterMain

@instead@
symbol reader, record, block, io_direct_flags, IO_DIRECT_DATA;
expression smgr, forknum, blkno;
@@
  XLogPrefetcherNextBlock(...)
  {
  <+...
- PrefetchSharedBuffer(smgr, forknum, blkno)
+ AioReplayPrefetch(smgr, forknum, blkno, block, reader, record->lsn)
  ...+>
  }

@decoded@
symbol prefetcher, record;
@@
  XLogPrefetcherNextBlock(...)
  {
  <+...
  prefetcher->record = record;
+ AioReplaySeeRecord(record);
  ...+>
  }

@must@
@@
  XLogPrefetcherNextBlock(...)
  {
  <+...
- (io_direct_flags & IO_DIRECT_DATA) == 0
+ !aio_replay_active && (io_direct_flags & IO_DIRECT_DATA) == 0
  ...+>
  }

@reference@
symbol lsn, record, block;
@@
  XLogPrefetcherNextBlock(...)
  {
  <+...
  *lsn = record->lsn;
+ AioReplaySee(block, record->lsn);
  ...+>
  }

@further@
symbol prefetcher, reader, no_readahead_until, decode_queue_tail, lsn;
@@
  XLogPrefetcherNextBlock(...)
  {
  <+...
  prefetcher->no_readahead_until =
- prefetcher->reader->decode_queue_tail->lsn
+ AioReplayTryAgainAt(prefetcher->reader)
  ;
  ...+>
  }

@limit@
symbol max_inflight, maintenance_io_concurrency;
@@
  XLogPrefetcherReadRecord(...)
  {
  <+...
  max_inflight =
- maintenance_io_concurrency
+ AioReplayDepth(maintenance_io_concurrency)
  ;
  ...+>
  }

@before@
symbol prefetcher, streaming_read, reader;
expression upto;
@@
  XLogPrefetcherReadRecord(...)
  {
  <+...
+ AioReplayBeforeReadAhead(prefetcher->reader);
  lrq_complete_lsn(prefetcher->streaming_read, upto);
  ...+>
  }

@next@
symbol prefetcher, streaming_read, record, reader, errmsg;
@@
  XLogPrefetcherReadRecord(...)
  {
  <+...
+ AioReplayBeforeRecord(prefetcher->reader, lrq_inflight(prefetcher->streaming_read));
  record = XLogNextRecord(prefetcher->reader, errmsg);
  ...+>
  }

@again@
symbol prefetcher;
@@
  XLogPrefetcherBeginRead(...)
  {
+ AioReplayForget();
  prefetcher->reconfigure_count--;
  ...
  }

@end@
symbol prefetcher, streaming_read;
@@
  XLogPrefetcherFree(...)
  {
+ AioReplayForget();
  lrq_free(prefetcher->streaming_read);
  ...
  }

@pause@
@@
+ AioReplayBeforeWait();
  ConfirmRecoveryPaused();

@apply@
symbol WAIT_EVENT_RECOVERY_APPLY_DELAY;
expression latch, events, timeout;
@@
  recoveryApplyDelay(...)
  {
  <+...
+ AioReplayBeforeWait();
  (void) WaitLatch(latch, events, timeout, WAIT_EVENT_RECOVERY_APPLY_DELAY);
  ...+>
  }

@restore@
@@
  RestoreArchivedFile(...)
  {
  <+...
+ AioReplayBeforeWait();
  fflush(NULL);
  ...+>
  }

@background@
symbol wb_context;
@@
  BackgroundWriterMain(...)
  {
  <+...
- BgBufferSync
+ AioBackgroundWriterCycle
  (&wb_context)
  ...+>
  }
