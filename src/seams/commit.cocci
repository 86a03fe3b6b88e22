// A commit need not be on disk before the next transaction begins, only before the client hears of it.
//
// What: RecordTransactionCommit() asks whether the reply can wait; nothing is sent while it has to; replies are kept while
//   there is more to read, and sent before waiting for the client, or when time is up.
// Without it: a connection commits no faster than the disk syncs.
// Could disappear: if upstream had pipelined commits.
//
// target: src/backend/access/transam/xact.c AioHoldCommit+1 XactLastRecEnd+1
//   in RecordTransactionCommit
// target: src/backend/libpq/be-secure.c AioBeforeSend+1 AioBeforeClientWait+1 if+1 return+1
//   in secure_read secure_write
// target: src/backend/tcop/dest.c AioSendOrHoldReplies+1 pq_flush-1
//   in ReadyForQuery
// target: src/backend/tcop/postgres.c AioInterrupts+1 AioForbidReplies+1
//   in ProcessInterrupts quickdie

@commit@
symbol synchronous_commit, SYNCHRONOUS_COMMIT_OFF, XactLastRecEnd;
@@
  RecordTransactionCommit(...)
  {
  <+...
- synchronous_commit > SYNCHRONOUS_COMMIT_OFF
+ synchronous_commit > SYNCHRONOUS_COMMIT_OFF && !AioHoldCommit(XactLastRecEnd)
  ...+>
  }

@send@
symbol false;
@@
  secure_write(...)
  {
  <+...
+ if (!AioBeforeSend())
+ return -1;
  ProcessClientWriteInterrupt(false);
  retry:
  ...+>
  }

@receive@
symbol FeBeWaitSet;
@@
  secure_read(...)
  {
  <+...
+ AioBeforeClientWait();
  ModifyWaitEvent(FeBeWaitSet, ...);
  ...+>
  }

@ready@
@@
  ReadyForQuery(...)
  {
  <+...
- pq_flush();
+ AioSendOrHoldReplies();
  ...+>
  }

@dying@
symbol BlockSig, SIGQUIT;
@@
  quickdie(...)
  {
+ AioForbidReplies();
  sigaddset(&BlockSig, SIGQUIT);
  ...
  }

@interrupts@
symbol ParallelMessagePending;
statement S;
@@
  ProcessInterrupts(...)
  {
  <+...
+ AioInterrupts();
  if (ParallelMessagePending) S
  ...+>
  }
