// I/O of ours does not queue for an I/O worker.
//
// What: pgaio_worker_submit() hands I/Os to workers through us, and workers take them through us.
// Without it: WAL, new pages and the pages that an insert needs would wait for reads of other sessions, of slow disks.
// Could disappear: if upstream's queue knew which I/O somebody would rather do himself.
//
// target: src/backend/storage/aio/method_worker.c AioWorkerSubmit+2 pgaio_worker_submit_internal-1 AioWorkerConsume+2 pgaio_worker_submission_queue_consume-1
//   in pgaio_worker_submit IoWorkerMain

@declare@
identifier staged, n;
type T, U, R;
@@
+ static void AioWorkerSubmit(int n, PgAioHandle **ios);
+ static int AioWorkerConsume(void);
+
  R
  pgaio_worker_submit(T n, U staged)
  {
  ...
  }

@submit@
expression n, staged;
@@
  pgaio_worker_submit(...)
  {
  <+...
- pgaio_worker_submit_internal
+ AioWorkerSubmit
  (n, staged);
  ...+>
  }

@consume@
expression index;
@@
  IoWorkerMain(...)
  {
  <+...
- index = pgaio_worker_submission_queue_consume()
+ index = AioWorkerConsume()
  ...+>
  }
