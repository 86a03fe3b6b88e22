static int n;

#include "../../aio/tails/freelist.c"
