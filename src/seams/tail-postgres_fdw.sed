# Our tail of postgres_fdw.c: batches of rows that are sent without waiting.
#
# What: an #include at the end of the file, whose static names it needs.
# Without it: nobody could send a batch but execute_foreign_modify(), which waits.
# Could disappear: if upstream's postgres_fdw did so.
#
# target: contrib/postgres_fdw/postgres_fdw.c async_insert+1

$a\
\
#include "aio/async_insert.c"
