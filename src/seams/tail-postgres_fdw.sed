# Our tail of postgres_fdw.c: batches that are sent without waiting, rows that are asked for ahead.
#
# What: #includes at the end of the file, whose static names it needs.
# Without it: nobody could send a batch but execute_foreign_modify(), nor a FETCH but an Append, and the former waits.
# Could disappear: if upstream's postgres_fdw did so.
#
# target: contrib/postgres_fdw/postgres_fdw.c async_insert+1 async_scan+1 async_pending+1

$a\
\
#include "aio/async_insert.c"\
#include "aio/async_scan.c"\
#include "aio/async_pending.c"
