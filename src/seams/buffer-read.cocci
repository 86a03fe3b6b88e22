// A buffer read can be awaited.
//
// What: AsyncReadBuffers(), which reads what is not in memory, asks whether to read it in a way that can be awaited; it
//   does so before it takes an AIO handle, since a task must not be suspended with one.  ReadBuffer_common() awaits the
//   read before it waits for it, and tells of the page it has got.  Where a read is staged, those who wait for the page
//   already come to know that it can be waited for.
// Without it: no index insert ever suspends.  And who has come to wait for a page between the start of its read and its
//   staging waits until the session that reads it looks at its I/O, which may be waiting for a lock of his.
// Could disappear: if ReadBuffer() became a wrapper that a caller can replace, and upstream told those who wait.
//
// target: src/backend/storage/buffer/bufmgr.c AioReadFlags+1 flags-1 AioAwaitRead+1 AioReadDone+1 AioUnlockStagedBuffer+1 UnlockBufHdr-1
//   in AsyncReadBuffers ReadBuffer_common buffer_stage_common

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

@staged@
symbol buf_hdr, buf_state;
@@
  buffer_stage_common(...)
  {
  <+...
- UnlockBufHdr
+ AioUnlockStagedBuffer
  (buf_hdr, buf_state);
  ...+>
  }
