// Say what helps when io_uring finds no memory for its rings, and see to it that they are closed.
//
// What: the error about a ring that cannot be set up takes its hint from us where upstream has none; before that, we are
//   told that rings are about to be set up.
// Without it: several servers of one account meet "Cannot allocate memory" and are left to guess; and each
//   restart after a crash leaves as many rings behind as the server has, which count as locked memory and open files.
// Could disappear: with a hint of upstream's own.
//
// target: src/backend/storage/aio/method_io_uring.c AioUringSetupHint+1 AioUringBeforeSetup+1
//   in pgaio_uring_shmem_init

@@
symbol hint, ret, errno, shmem;
@@
  pgaio_uring_shmem_init(...)
  {
  <+...
+ hint = AioUringSetupHint(-ret, hint);
  errno = -ret;
  ...+>
  }

@before@
symbol pgaio_uring_contexts, shmem;
typedef PgAioUringContext;
@@
  pgaio_uring_shmem_init(...)
  {
  <+...
+ AioUringBeforeSetup();
  pgaio_uring_contexts = (PgAioUringContext *) shmem;
  ...+>
  }
