static int n;

#include "../aio/tails/execParallel.c"
