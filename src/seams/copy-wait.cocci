// COPY does not keep keys back while it waits for its client, for a program, or for a publisher.
//
// What: COPY tells us before it reads a row, and before it reads a message; where the rest of one has not come, we are asked first; and what is left
//   of a message that nobody wants any more is skipped before the next one.  A file is read by us, as it may be a pipe; and
//   the copying of a table by a subscriber tells us before it waits.
// Without it: others insert the keys of rows that a COPY has received long ago, and it fails; or a duplicate that is found
//   while the client is in the middle of a message ends the connection.
// Could disappear: if pq_getmessage() could do without waiting.
//
// target: src/backend/commands/copyfrom.c AioBeforeCopyRow+1 cstate+1
//   in CopyFrom
// target: src/backend/commands/copyfromparse.c AioBeforeCopyMessage+1 AioCopyReads+1 AioReadCopyFile+1 cstate+2 fread-1 copy_file-1
//   in CopyGetData
// target: src/backend/libpq/pqcomm.c AioReceiveMore+1 len+1 AioStartMessage+1
//   in pq_getbytes pq_startmsgread
// target: src/backend/replication/logical/tablesync.c AioBeforeAwaitingPublisher+1 fd+1
//   in copy_read_data

@next_row@
symbol estate, cstate;
@@
  CopyFrom(...)
  {
  <+...
+ AioBeforeCopyRow(cstate);
  ResetPerTupleExprContext(estate);
  ...+>
  }

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

@copy_file@
expression buffer, size;
@@
  CopyGetData(...)
  {
  <+...
- fread(buffer, 1, size, cstate->copy_file)
+ AioReadCopyFile(buffer, size, cstate)
  ...+>
  }

@publisher@
symbol fd;
@@
  copy_read_data(...)
  {
  <+...
+ AioBeforeAwaitingPublisher(fd);
  (void) WaitLatchOrSocket(...);
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
