// COPY does not keep keys back while it waits for its client.
//
// What: COPY tells us before it reads a message; where the rest of one has not come, we are asked first; and what is left
//   of a message that nobody wants any more is skipped before the next one.
// Without it: others insert the keys of rows that a COPY has received long ago, and it fails; or a duplicate that is found
//   while the client is in the middle of a message ends the connection.
// Could disappear: if pq_getmessage() could do without waiting.
//
// target: src/backend/commands/copyfromparse.c AioBeforeCopyMessage+1 AioCopyReads+1 cstate+2
//   in CopyGetData
// target: src/backend/libpq/pqcomm.c AioReceiveMore+1 len+1 AioStartMessage+1
//   in pq_getbytes pq_startmsgread

@copy@
symbol cstate;
@@
  CopyGetData(...)
  {
  <+...
+ AioBeforeCopyMessage(cstate);
  HOLD_CANCEL_INTERRUPTS();
  pq_startmsgread();
+ AioCopyReads(cstate);
  ...+>
  }

@bytes@
symbol len;
@@
  pq_getbytes(...)
  {
  <+...
- pq_recvbuf()
+ !AioReceiveMore(len) && pq_recvbuf()
  ...+>
  }

@start@
symbol PqCommReadingMsg, true;
@@
  pq_startmsgread(...)
  {
  <+...
  PqCommReadingMsg = true;
+ AioStartMessage();
  ...+>
  }
