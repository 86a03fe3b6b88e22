static int n;

#include "aio/async_insert.c"
