// Say what helps when io_uring finds no memory for its rings.
//
// What: the error about a ring that cannot be set up takes its hint from us where upstream has none.
// Without it: several servers of one account meet "Cannot allocate memory" and are left to guess.
// Could disappear: with a hint of upstream's own.
//
// target: src/backend/storage/aio/method_io_uring.c AioUringSetupHint+1

@@
symbol hint, ret, errno;
@@
  pgaio_uring_shmem_init(...)
  {
  <+...
+ hint = AioUringSetupHint(-ret, hint);
  errno = -ret;
  ...+>
  }
