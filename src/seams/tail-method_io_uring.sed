# Our tail of method_io_uring.c: the completion queue of a backend's ring.
#
# What: an #include at the end of the file, whose static names it needs.
# Without it: a scheduler would learn of completions only by blocking for a certain one.
# Could disappear: if upstream exported it.
#
# target: src/backend/storage/aio/method_io_uring.c tails+1

$a\
\
#include "../../aio/tails/method_io_uring.c"
