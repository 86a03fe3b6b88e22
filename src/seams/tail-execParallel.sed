# Our tail of execParallel.c: a worker's queue to the leader.
#
# What: an #include at the end of the file, whose static names it needs.
# Without it: a worker could not insert the rows it finds.
# Could disappear: if the receiver of a worker's rows could be chosen.
#
# target: src/backend/executor/execParallel.c tails+1

$a\
\
#include "../aio/tails/execParallel.c"
