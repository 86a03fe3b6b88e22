# Our tail of freelist.c: victims that were chosen without it.
#
# What: an #include at the end of the file, whose static names it needs.
# Without it: the background writer would not know of victims that we have written, and a ring would leave its buffers.
# Could disappear: if upstream exported it.
#
# target: src/backend/storage/buffer/freelist.c tails+1

$a\
\
#include "../../aio/tails/freelist.c"
