# Our tail of bufmgr.c: write a buffer without waiting.
#
# What: an #include at the end of the file, whose static functions it needs.
# Without it: nothing could begin or end a buffer's I/O.
# Could disappear: when upstream writes shared buffers through its AIO.
#
# target: src/backend/storage/buffer/bufmgr.c tails+1

$a\
\
#include "../../aio/tails/bufmgr.c"
