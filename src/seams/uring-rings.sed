# The rings of io_uring are ours to hand out and to close.
#
# What: we are told that rings are about to be set up; setting one up is our call, twice, and the error about one that cannot
#   be set up takes its hint from us where upstream has none; the log collector closes those that it has inherited.
# Without it: two servers that start at the same time might both find room for one; a server that starts anew after a crash
#   would leave as many rings behind as it has, which count as locked memory and open files, and the log collector would
#   keep them; and whoever meets "Cannot allocate memory" is left to guess.
# Could disappear: if upstream closed its rings, and with a hint of its own.
#
# target: src/backend/storage/aio/method_io_uring.c AioUringBeforeSetup+1 AioUringQueueInit+1 io_uring_queue_init-1 AioUringQueueInitMem+1 io_uring_queue_init_mem-1 io_max_concurrency-2 AioUringSetupHint+1
#   in pgaio_uring_shmem_init
# target: src/backend/postmaster/syslogger.c AioForgetRings+1
#   in SysLoggerMain

/^pgaio_uring_shmem_init\(/,/^\}/ s|^(\t+)pgaio_uring_contexts = \(PgAioUringContext \*\) shmem;$|\1AioUringBeforeSetup();\n&|
/^pgaio_uring_shmem_init\(/,/^\}/ s|^(\t+)errno = -ret;$|\1hint = AioUringSetupHint(-ret, hint);\n&|
s|io_uring_queue_init\(io_max_concurrency, &context->io_uring_ring, 0\)|AioUringQueueInit(\&context->io_uring_ring)|
s|io_uring_queue_init_mem\(io_max_concurrency, &context->io_uring_ring, |AioUringQueueInitMem(\&context->io_uring_ring, |
/^SysLoggerMain\(/,/^\}/ s|^\tif \(PostmasterContext\)$|\tAioForgetRings();\n\n&|
