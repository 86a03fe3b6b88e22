static int n;

#include "../../aio/tails/method_worker.c"
