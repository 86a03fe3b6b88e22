# The default of io_method is auto, which chooses a method when the server starts.
#
# What: one more value, at the end of the enum, and its entries in two tables; the parameter is stored where we can see to it;
#   the choice is made before shared memory is measured, and told when there is a log.
# Without it: a server that was told to use io_uring does not start on a host that forbids it.
# Could disappear: if methods could be registered.
#
# target: src/include/storage/aio.h IOMETHOD_AUTO+2 IOMETHOD_WORKER-1
# target: src/backend/storage/aio/aio.c IOMETHOD_AUTO+2 auto+1 pgaio_worker_ops+1
# target: src/backend/utils/misc/guc_tables.c aio_io_method+1 AioAssignIoMethod+1 io_method-1 assign_io_method-1
# target: src/backend/utils/misc/postgresql.conf.sample auto+2 libaio+1 worker-1
# target: src/backend/storage/aio/aio_init.c AioChooseIoMethod+1
#   in AioShmemSize
# target: src/backend/postmaster/postmaster.c AioReportIoMethod+1
#   in PostmasterMain

s|^\}(\t+)IoMethod;$|\tIOMETHOD_AUTO,\n&|
s|^(#define DEFAULT_IO_METHOD ).*|\1IOMETHOD_AUTO|
/^const struct config_enum_entry io_method_options\[\]/,/^\};/ s|^\t\{NULL, 0, false\}$|\t{"auto", IOMETHOD_AUTO, false},\n&|
/^static const IoMethodOps \*const pgaio_method_ops_table\[\]/,/^\};/ s|^\};|\t[IOMETHOD_AUTO] = \&pgaio_worker_ops,\n&|
s|^\t\t&io_method,$|\t\t\&aio_io_method,|
s|^(\t\tNULL, )assign_io_method(, NULL)$|\1AioAssignIoMethod\2|
s|^#io_method = worker\t.*|#io_method = auto\t\t\t# auto, io_uring, libaio, worker, sync|
/^AioShmemSize\(/,/^\}/ s|^\tsz = add_size\(sz, AioCtlShmemSize\(\)\);$|\tAioChooseIoMethod();\n&|
s|^\t\t\t\(errmsg\("starting %s", PG_VERSION_STR\)\)\);$|&\n\tAioReportIoMethod();|
