# Our tail of lwlock.c: the number of LWLocks held.
#
# What: an #include at the end of the file, whose static names it needs.
# Without it: a task could suspend while it holds an LWLock.
# Could disappear: if upstream exported it.
#
# target: src/backend/storage/lmgr/lwlock.c tails+1

$a\
\
#include "../../aio/tails/lwlock.c"
