// Dirty victims are written while others are looked for.
//
// What: GetVictimBuffer() asks us for the next victim while we remember writes, and offers us each dirty one before it
//   writes it; it is told whether the running task may be suspended meanwhile, which BufferAlloc() finds out by saying
//   which page the buffer is for, and ExtendBufferedRelShared() never allows; LockBufferForCleanup() has a write completed
//   that keeps a pin.
// Without it: a backend that needs buffers waits for the disk at each dirty page.
// Could disappear: when upstream writes shared buffers through its AIO.
// Why so many: each line is one argument or call, in four functions of which one passes it on to another.
//
// target: src/backend/storage/buffer/bufmgr.c AioVictim+1 may_suspend+3 false+1 AioVictimBuffer+1 GetVictimBuffer-1 smgr+1 forkNum+1 StrategyGetBuffer-1 AioWriteVictim+1 AioBeforeCleanupWait+1 if+1 LWLockRelease+1 UnpinBuffer+1 goto+1 again+1
//   in BufferAlloc ExtendBufferedRelShared GetVictimBuffer LockBufferForCleanup

@next@
typedef bool;
parameter list arguments;
symbol may_suspend;
@@
- GetVictimBuffer(arguments)
+ GetVictimBuffer(arguments, bool may_suspend)
  {
  <+...
- StrategyGetBuffer
+ AioVictim
  (...
+ , may_suspend
  )
  ...+>
  }

@extend@
symbol false;
@@
  ExtendBufferedRelShared(...)
  {
  <+...
  GetVictimBuffer(...
+ , false
  )
  ...+>
  }

@alloc@
expression list args;
symbol smgr, forkNum;
@@
  BufferAlloc(...)
  {
  <+...
- GetVictimBuffer
+ AioVictimBuffer
  (
+ smgr, forkNum,
  args)
  ...+>
  }

@write@
expression hdr, object;
symbol content_lock, strategy, io_context, from_ring, again;
@@
  GetVictimBuffer(...)
  {
  <+...
+ if (AioWriteVictim(hdr, strategy, io_context, from_ring))
+ {
+ LWLockRelease(content_lock);
+ UnpinBuffer(hdr);
+ goto again;
+ }
  FlushBuffer(hdr, NULL, object, io_context);
  ...+>
  }

@cleanup@
symbol bufHdr, InHotStandby;
statement S1, S2;
@@
  LockBufferForCleanup(...)
  {
  <+...
+ AioBeforeCleanupWait(bufHdr);
  if (InHotStandby) S1 else S2
  ...+>
  }
