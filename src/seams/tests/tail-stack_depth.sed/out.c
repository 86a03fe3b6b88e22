static int n;

#include "../../aio/tails/stack_depth.c"
