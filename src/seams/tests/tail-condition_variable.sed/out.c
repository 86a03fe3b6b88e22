static int n;

#include "../../aio/tails/condition_variable.c"
