// A buffer read can be awaited.
//
// What: AsyncReadBuffers(), which reads what is not in memory, asks whether to read it in a way that can be awaited; it
//   does so before it takes an AIO handle, since a task must not be suspended with one.  ReadBuffer_common() awaits the
//   read before it waits for it, and tells of the page it has got.
// Without it: no index insert ever suspends.
// Could disappear: if ReadBuffer() became a wrapper that a caller can replace.
//
// target: src/backend/storage/buffer/bufmgr.c AioReadFlags+1 flags-1 AioAwaitRead+1 AioReadDone+1
//   in AsyncReadBuffers ReadBuffer_common

@decide@
identifier flags, op;
@@
  AsyncReadBuffers(...)
  {
  ...
- int flags = op->flags;
+ int flags = AioReadFlags(op);
  ...
  }

@wait@
expression op, buf, blkno, flags;
symbol rel, forkNum;
@@
  if (StartReadBuffer(op, &buf, blkno, flags))
+ {
+ AioAwaitRead(op);
  WaitReadBuffers(op);
+ }
+ AioReadDone(rel, forkNum, buf);
