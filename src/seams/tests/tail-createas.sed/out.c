static int n;

#include "../aio/tails/createas.c"
