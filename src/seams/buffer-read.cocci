// A buffer read can be awaited.
//
// What: ReadBuffer_common() starts and awaits its read by our functions, which are upstream's own outside tasks, and
//   tells of the page it has got; AsyncReadBuffers() awaits somebody else's read of the page before it takes an AIO
//   handle, since a task must not be suspended with one.
// Without it: no index insert ever suspends.
// Could disappear: if ReadBuffer() became a wrapper that a caller can replace.
//
// target: src/backend/storage/buffer/bufmgr.c AioStartReadBuffer+1 StartReadBuffer-1 AioAwaitRead+1 AioReadDone+1 AioAwaitBuffer+1

@start@
expression op, buf, blkno, flags;
symbol rel, forkNum;
@@
  if (
- StartReadBuffer
+ AioStartReadBuffer
  (op, &buf, blkno, flags))
+ {
+ AioAwaitRead(op);
  WaitReadBuffers(op);
+ }
+ AioReadDone(rel, forkNum, buf);

@others@
expression dboid;
symbol operation;
@@
  AsyncReadBuffers(...)
  {
  <+...
+ AioAwaitBuffer(operation);
  pgstat_prepare_report_checksum_failure(dboid);
  ...+>
  }
