// A session that looks how far WAL has been flushed finds its own commits there.
//
// What: whoever asks for the position up to which WAL has been written or flushed gives us a chance to have our session's
//   commits on disk before.
// Without it: with pipelined commits, a session that reads WAL, as by logical decoding, would not find the transaction that
//   it has committed before.
// Could disappear: if upstream had pipelined commits.
//
// target: src/backend/access/transam/xlog.c AioBeforeFlushPosition+2
//   in GetFlushRecPtr GetXLogWriteRecPtr

@flush@
@@
  GetFlushRecPtr(...)
  {
+ AioBeforeFlushPosition();
  ...
  }

@write@
@@
  GetXLogWriteRecPtr(...)
  {
+ AioBeforeFlushPosition();
  ...
  }
