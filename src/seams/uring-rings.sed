# The rings of io_uring are ours to hand out and to close.
#
# What: setting one up is our call, twice; the log collector closes those that it has inherited.
# Without it: two servers that start at the same time might both find room for one; a server that starts anew after a crash
#   would not find the memory that it has just given back, and the log collector would keep it.
# Could disappear: if upstream closed its rings.
#
# target: src/backend/storage/aio/method_io_uring.c AioUringQueueInit+1 io_uring_queue_init-1 AioUringQueueInitMem+1 io_uring_queue_init_mem-1 io_max_concurrency-2
#   in pgaio_uring_shmem_init
# target: src/backend/postmaster/syslogger.c AioForgetRings+1
#   in SysLoggerMain

s|io_uring_queue_init\(io_max_concurrency, &context->io_uring_ring, 0\)|AioUringQueueInit(\&context->io_uring_ring)|
s|io_uring_queue_init_mem\(io_max_concurrency, &context->io_uring_ring, |AioUringQueueInitMem(\&context->io_uring_ring, |
/^SysLoggerMain\(/,/^\}/ s|^\tif \(PostmasterContext\)$|\tAioForgetRings();\n\n&|
