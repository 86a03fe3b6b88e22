# Our tail of xlog.c: the WAL buffers and how far they have been written.
#
# What: an #include at the end of the file, whose static names it needs.
# Without it: nobody but XLogWrite() could write WAL.
# Could disappear: when upstream writes WAL through its AIO.
#
# target: src/backend/access/transam/xlog.c tails+1

$a\
\
#include "../../aio/tails/xlog.c"
