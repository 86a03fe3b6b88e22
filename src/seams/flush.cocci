// Those who write many buffers keep several writes in flight.
//
// What: SyncOneBuffer() (checkpointer, background writer) and the functions that flush a relation or a database offer us
//   each buffer; all but the background writer say when they begin, and wait for all of them before they end.
// Without it: a checkpoint writes one page at a time.
// Could disappear: when upstream writes shared buffers through its AIO.
//
// target: src/backend/storage/buffer/bufmgr.c AioFlushBuffer+4 AioBeginBufferFlush+4 AioFinishBufferFlush+4 if+4
//   in BufferSync FlushDatabaseBuffers FlushRelationBuffers FlushRelationsAllBuffers SyncOneBuffer

@flush@
identifier f = {SyncOneBuffer, FlushRelationBuffers, FlushRelationsAllBuffers, FlushDatabaseBuffers};
expression hdr, reln, object, context;
@@
  f(...)
  {
  <+...
+ if (!AioFlushBuffer(hdr))
+ {
  FlushBuffer(hdr, reln, object, context);
+ }
  ...+>
  }

@checkpoint_begin@
expression list a, b;
@@
  BufferSync(...)
  {
  <+...
+ AioBeginBufferFlush();
  WritebackContextInit(a);
  ...
+ AioFinishBufferFlush();
  IssuePendingWritebacks(b);
  ...+>
  }

@relation@
identifier f = {FlushRelationBuffers, FlushRelationsAllBuffers, FlushDatabaseBuffers};
symbol i, NBuffers;
statement S;
@@
  f(...)
  {
  <+...
+ AioBeginBufferFlush();
  for (i = 0; i < NBuffers; i++) S
+ AioFinishBufferFlush();
  ...+>
  }
