# Upstream's AIO can allocate space, and sync a file.
#
# What: two more operations, after the others, and cases in each switch over them.
# Without it: space could be allocated ahead only by waiting for it, and a standby could receive nothing while it syncs.
# Could disappear: when upstream's AIO has more operations than reading and writing.
# Why so many: upstream has a switch over operations in seven functions.
#
# target: src/include/storage/aio.h AIO_OP_FALLOCATE+1 AIO_OP_FSYNC+2 PGAIO_OP_WRITEV-1
# target: src/backend/storage/aio/aio_io.c AIO_OP_FALLOCATE+4 AIO_OP_FSYNC+4 AioPerformFallocate+1 AioPerformFsync+1
#   in pgaio_io_get_iovec_length pgaio_io_get_op_name pgaio_io_perform_synchronously pgaio_io_uses_fd
# target: src/backend/storage/aio/aio_funcs.c AIO_OP_FALLOCATE+1 AIO_OP_FSYNC+1
#   in pg_get_aios
# target: src/backend/storage/aio/method_io_uring.c AIO_OP_FALLOCATE+1 AIO_OP_FSYNC+1 AioUringFallocate+1 AioUringFsync+1
#   in pgaio_uring_sq_from_io
# target: src/backend/storage/smgr/smgr.c AIO_OP_FALLOCATE+1 AIO_OP_FSYNC+1
#   in smgr_aio_reopen

s|^\tPGAIO_OP_WRITEV,$|&\n\n\tAIO_OP_FALLOCATE,\n\tAIO_OP_FSYNC,|
s|^(#define PGAIO_OP_COUNT\t).*|\1(AIO_OP_FSYNC + 1)|
/^pgaio_io_uses_fd\(/,/^}/ s|^(\t+)case PGAIO_OP_WRITEV:$|\1case AIO_OP_FALLOCATE:\n\1case AIO_OP_FSYNC:\n&|
/^pgaio_io_get_iovec_length\(/,/^}/ s|^(\t+)case PGAIO_OP_WRITEV:$|\1case AIO_OP_FALLOCATE:\n\1\treturn 0;\n\1case AIO_OP_FSYNC:\n\1\treturn 0;\n&|
/^pgaio_io_get_op_name\(/,/^}/ s|^(\t+)case PGAIO_OP_WRITEV:$|\1case AIO_OP_FALLOCATE:\n\1\treturn "fallocate";\n\1case AIO_OP_FSYNC:\n\1\treturn "fsync";\n&|
/^pgaio_io_perform_synchronously\(/,/^}/ s|^(\t+)case PGAIO_OP_WRITEV:$|\1case AIO_OP_FALLOCATE:\n\1\tresult = AioPerformFallocate(ioh);\n\1\tbreak;\n\1case AIO_OP_FSYNC:\n\1\tresult = AioPerformFsync(ioh);\n\1\tbreak;\n&|
/^pg_get_aios\(/,/^}/ s|^(\t+)case PGAIO_OP_WRITEV:$|\1case AIO_OP_FALLOCATE:\n\1case AIO_OP_FSYNC:\n&|
/^smgr_aio_reopen\(/,/^}/ s|^(\t+)case PGAIO_OP_WRITEV:$|\1case AIO_OP_FALLOCATE:\n\1case AIO_OP_FSYNC:\n&|
/^pgaio_uring_sq_from_io\(/,/^}/ s|^(\t+)case PGAIO_OP_WRITEV:$|\1case AIO_OP_FALLOCATE:\n\1\tAioUringFallocate(ioh, sqe);\n\1\tbreak;\n\1case AIO_OP_FSYNC:\n\1\tAioUringFsync(ioh, sqe);\n\1\tbreak;\n&|
