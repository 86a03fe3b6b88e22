static int n;

#include "../../aio/tails/bufmgr.c"
