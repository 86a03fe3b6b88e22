# Our tail of method_worker.c: the method libaio hands its I/O to the same workers.
#
# What: an #include at the end of the file, whose static names it needs.
# Without it: a second queue and a second kind of process would do the same.
# Could disappear: if upstream exported them.
#
# target: src/backend/storage/aio/method_worker.c tails+1

$a\
\
#include "../../aio/tails/method_worker.c"
