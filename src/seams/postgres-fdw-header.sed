# postgres_fdw's files know what they call.
#
# What: one #include after postgres_fdw.h.
# Without it: nothing compiles.
# Could disappear: with postgres-fdw.cocci.
#
# target: contrib/postgres_fdw/postgres_fdw.c async_fdw+1
# target: contrib/postgres_fdw/connection.c async_fdw+1
# target: contrib/postgres_fdw/option.c async_fdw+1

s|^#include "postgres_fdw.h"$|&\n#include "aio/async_fdw.h"|
