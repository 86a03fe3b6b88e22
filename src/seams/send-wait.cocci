// A session that waits for a slow client keeps no pins of pages that it reads ahead, and one that panics does not wait.
//
// What: secure_write() asks us before it waits until the client takes what is sent.
// Without it: VACUUM would wait for a client that does not read the rows of its query; and a server that has to crash would
//   wait for a client that does not read the message about it.
// Could disappear: if a read in flight had no pin, and upstream did not wait in a PANIC.
//
// target: src/backend/libpq/be-secure.c AioMayWaitToSend+1 if+1 return+1
//   in secure_write

@@
symbol FeBeWaitSet;
@@
  secure_write(...)
  {
  <+...
+ if (!AioMayWaitToSend())
+ return -1;
  ModifyWaitEvent(FeBeWaitSet, ...);
  ...+>
  }
