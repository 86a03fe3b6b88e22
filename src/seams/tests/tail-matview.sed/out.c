static int n;

#include "../aio/tails/matview.c"
