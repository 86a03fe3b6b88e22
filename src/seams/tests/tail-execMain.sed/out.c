static int n;

#include "../aio/tails/execMain.c"
