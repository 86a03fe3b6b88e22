static int n;

#include "../../aio/tails/method_io_uring.c"
