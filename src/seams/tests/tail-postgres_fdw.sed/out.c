static int n;

#include "aio/async_insert.c"
#include "aio/async_scan.c"
#include "aio/async_pending.c"
