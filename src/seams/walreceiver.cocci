// WAL is received while what was received before is synced.
//
// What: the walreceiver asks us up to where its WAL is on disk, instead of syncing it; in its main loop it tells us of each
//   message, and waits for a sync along with the primary.
// Without it: a standby receives nothing while it syncs.
// Could disappear: when the walreceiver syncs asynchronously.
// Why so many: the sync of upstream and its place in the main loop are three calls, and each has arguments of its own.
//
// target: src/backend/replication/walreceiver.c AioSyncReceivedWal+1 issue_xlog_fsync-1 Write-1 AioFlushReceivedWal+1 AioReceivedWalMessage+1 AioWaitForReceivedWal+1 WaitLatchOrSocket-1 XLogWalRcvFlush-1 false-1 recvFile-1 recvSegNo-1
//   in WalReceiverMain XLogWalRcvFlush

@flush@
symbol LogstreamResult, Flush, Write, recvFile, recvSegNo, dying, tli;
@@
  XLogWalRcvFlush(...)
  {
  <+...
- issue_xlog_fsync(recvFile, recvSegNo, tli);
- LogstreamResult.Flush = LogstreamResult.Write;
+ XLogRecPtr synced = AioSyncReceivedWal(dying, tli);
+ if (synced == LogstreamResult.Flush) return;
+ LogstreamResult.Flush = synced;
  ...+>
  }

@loop@
symbol startpointTLI, endofwal, false;
@@
  WalReceiverMain(...)
  {
  <+...
  XLogWalRcvSendReply(false, false);
- XLogWalRcvFlush(false, startpointTLI);
+ AioFlushReceivedWal(startpointTLI, endofwal);
  ...+>
  }

@message@
symbol startpointTLI;
expression type, message, length;
@@
  WalReceiverMain(...)
  {
  <+...
  XLogWalRcvProcessMsg(type, message, length, startpointTLI);
+ AioReceivedWalMessage(startpointTLI);
  ...+>
  }

@wait@
symbol startpointTLI, WAIT_EVENT_WAL_RECEIVER_MAIN;
expression latch, events, socket, nap;
@@
  WalReceiverMain(...)
  {
  <+...
- WaitLatchOrSocket(latch, events, socket, nap, WAIT_EVENT_WAL_RECEIVER_MAIN)
+ AioWaitForReceivedWal(startpointTLI, latch, events, socket, nap, WAIT_EVENT_WAL_RECEIVER_MAIN)
  ...+>
  }
