# A scan of postgres_fdw remembers when it began, and what it has read ahead.
#
# What: two more members, the last, of a struct that only postgres_fdw.c knows.
# Without it: what a scan has asked for would have to be found in a table, for each of its rows.
# Could disappear: with postgres-fdw-scan.cocci.
#
# include: aio/async_fdw.h
# target: contrib/postgres_fdw/postgres_fdw.c AioFdwAhead+1 ahead+1 SubTransactionId+1 began+1

s|^} PgFdwScanState;$|\tstruct AioFdwAhead *ahead;\n\tSubTransactionId began;\n&|
