# One more I/O method: libaio, which the I/O workers carry out.
#
# What: a value of io_method, at the end of the enum, and its entries in two tables; we tell whether there are I/O
#   workers, and these perform and await I/O through us.
# Without it: on a host that forbids io_uring, workers wait for one I/O at a time.
# Could disappear: if methods could be registered.
#
# target: src/include/storage/aio.h IOMETHOD_LIBAIO+1
# target: src/backend/storage/aio/aio.c IOMETHOD_LIBAIO+2 libaio+1 aio_libaio_ops+1
# target: src/backend/storage/aio/method_worker.c AioUsesWorkers+1 io_method-1 IOMETHOD_WORKER-1 AioWorkerPerform+1 pgaio_io_perform_synchronously-1 AioWorkerWait+1 WaitLatch-1
#   in IoWorkerMain pgaio_workers_enabled

s|^\}(\t+)IoMethod;$|\tIOMETHOD_LIBAIO,\n&|
/^const struct config_enum_entry io_method_options\[\]/,/^\};/ s|^\t\{NULL, 0, false\}$|\t{"libaio", IOMETHOD_LIBAIO, false},\n&|
/^static const IoMethodOps \*const pgaio_method_ops_table\[\]/,/^\};/ s|^\};|\t[IOMETHOD_LIBAIO] = \&aio_libaio_ops,\n&|
/^pgaio_workers_enabled\(/,/^\}/ s|^\treturn .*|\treturn AioUsesWorkers();|
/^IoWorkerMain\(/,/^\}/ s|^(\t+)pgaio_io_perform_synchronously\(ioh\);$|\1AioWorkerPerform(ioh);|
/^IoWorkerMain\(/,/^\}/ s|^(\t+)WaitLatch\(|\1AioWorkerWait(|
