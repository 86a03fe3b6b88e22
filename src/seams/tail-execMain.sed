# Our tail of execMain.c: the executor's main loop, in a guard.
#
# What: an #include at the end of the file, whose static names it needs.
# Without it: keys that are enforced could not wait.
# Could disappear: if upstream exported ExecutePlan().
#
# target: src/backend/executor/execMain.c tails+1

$a\
\
#include "../aio/tails/execMain.c"
