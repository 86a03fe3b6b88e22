// A session that waits for a slow client keeps no pins of pages that it reads ahead.
//
// What: secure_write() tells us before it waits until the client takes what is sent.
// Without it: VACUUM would wait for a client that does not read the rows of its query.
// Could disappear: if a read in flight had no pin.
//
// target: src/backend/libpq/be-secure.c AioBeforeSendWait+1
//   in secure_write

@@
symbol FeBeWaitSet;
@@
  secure_write(...)
  {
  <+...
+ AioBeforeSendWait();
  ModifyWaitEvent(FeBeWaitSet, ...);
  ...+>
  }
