static int n;

#include "../../aio/tails/lwlock.c"
