// No message is sent to the client while somebody may be waiting for this process.
//
// What: elog.c tells us of each message that it is going to send, and leaves it to us to have it read at once; where
//   messages are put into what is sent, we may keep them for a moment.
// Without it: a session sends messages about I/O, of levels DEBUG2 and below, with WALWriteLock and others held, or with a
//   table's gate closed.  If its client does not read them, nobody commits any more.
// Could disappear: if upstream sent no message under an LWLock or in a critical section.
//
// target: src/backend/utils/error/elog.c AioBeforeTelling+1 AioFlushMessage+1 pq_flush-1
//   in EmitErrorReport send_message_to_frontend
// target: src/backend/libpq/pqcomm.c AioKeepMessage+1 if+1 return+1
//   in socket_putmessage
// target: src/backend/libpq/pqmq.c AioKeepMessage+1 if+1 return+1
//   in mq_putmessage

@tell@
symbol edata;
@@
  EmitErrorReport(...)
  {
  <+...
  send_message_to_frontend(
- edata
+ AioBeforeTelling(edata)
  );
  ...+>
  }

@flush@
@@
  send_message_to_frontend(...)
  {
  <+...
- pq_flush();
+ AioFlushMessage();
  ...+>
  }

@socket@
symbol PqCommBusy;
identifier msgtype, s, len;
type C, P, L;
@@
  socket_putmessage(C msgtype, P s, L len)
  {
  <+...
+ if (AioKeepMessage(msgtype, s, len))
+ return 0;
  if (PqCommBusy) return 0;
  ...+>
  }

@queue@
symbol pq_mq_busy;
identifier msgtype, s, len;
type C, P, L;
statement S;
@@
  mq_putmessage(C msgtype, P s, L len)
  {
  <+...
+ if (AioKeepMessage(msgtype, s, len))
+ return 0;
  if (pq_mq_busy) S
  ...+>
  }
