# Upstream's AIO can allocate space.
#
# What: one more operation, after the others, and a case in each switch over them.
# Without it: space could be allocated ahead only by waiting for it.
# Could disappear: when upstream's AIO has more operations than reading and writing.
# Why so many: upstream has a switch over operations in seven functions.
#
# target: src/include/storage/aio.h AIO_OP_FALLOCATE+2 PGAIO_OP_WRITEV-1
# target: src/backend/storage/aio/aio_io.c AIO_OP_FALLOCATE+4 AioPerformFallocate+1
#   in pgaio_io_get_iovec_length pgaio_io_get_op_name pgaio_io_perform_synchronously pgaio_io_uses_fd
# target: src/backend/storage/aio/aio_funcs.c AIO_OP_FALLOCATE+1
#   in pg_get_aios
# target: src/backend/storage/aio/method_io_uring.c AIO_OP_FALLOCATE+1 AioUringFallocate+1
#   in pgaio_uring_sq_from_io
# target: src/backend/storage/smgr/smgr.c AIO_OP_FALLOCATE+1
#   in smgr_aio_reopen

s|^\tPGAIO_OP_WRITEV,$|&\n\n\tAIO_OP_FALLOCATE,|
s|^(#define PGAIO_OP_COUNT\t).*|\1(AIO_OP_FALLOCATE + 1)|
/^pgaio_io_uses_fd\(/,/^}/ s|^(\t+)case PGAIO_OP_WRITEV:$|\1case AIO_OP_FALLOCATE:\n&|
/^pgaio_io_get_iovec_length\(/,/^}/ s|^(\t+)case PGAIO_OP_WRITEV:$|\1case AIO_OP_FALLOCATE:\n\1\treturn 0;\n&|
/^pgaio_io_get_op_name\(/,/^}/ s|^(\t+)case PGAIO_OP_WRITEV:$|\1case AIO_OP_FALLOCATE:\n\1\treturn "fallocate";\n&|
/^pgaio_io_perform_synchronously\(/,/^}/ s|^(\t+)case PGAIO_OP_WRITEV:$|\1case AIO_OP_FALLOCATE:\n\1\tresult = AioPerformFallocate(ioh);\n\1\tbreak;\n&|
/^pg_get_aios\(/,/^}/ s|^(\t+)case PGAIO_OP_WRITEV:$|\1case AIO_OP_FALLOCATE:\n&|
/^smgr_aio_reopen\(/,/^}/ s|^(\t+)case PGAIO_OP_WRITEV:$|\1case AIO_OP_FALLOCATE:\n&|
/^pgaio_uring_sq_from_io\(/,/^}/ s|^(\t+)case PGAIO_OP_WRITEV:$|\1case AIO_OP_FALLOCATE:\n\1\tAioUringFallocate(ioh, sqe);\n\1\tbreak;\n&|
