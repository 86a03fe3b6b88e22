static int n;

#include "../../aio/tails/pgstat.c"
