static int n;

#include "../../aio/tails/xlog.c"
