# Our tail of condition_variable.c: tell whether a sleep on one is prepared.
#
# What: an #include at the end of the file, whose static names it needs.
# Without it: a process that completes its writes when it is about to sleep on a condition variable would never wake up.
# Could disappear: if waiting for an AIO left the caller's condition variable alone.
#
# target: src/backend/storage/lmgr/condition_variable.c tails+1

$a\
\
#include "../../aio/tails/condition_variable.c"
