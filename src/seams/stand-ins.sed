# Functions of ours stand in for three of upstream's, whoever calls them.
#
# What: the definitions get another name; ours have the old one, and call them.  They are in
# src/backend/aio/io/aio_internals.c,
#   src/backend/executor/guard.c and src/extension/postgres_fdw/async_pending.c.
# Without it: some waits for I/O are not counted; COPY raises the error of a later row; and postgres_fdw takes for a request
#   of its own what is pending of ours on a connection.
# Could disappear: never, but calls could be redirected one by one, as long as all of them are found.
#
# target: src/backend/storage/aio/aio.c pgaio_io_wait-1 upstream_pgaio_io_wait+1
#   in pgaio_io_wait upstream_pgaio_io_wait
# target: src/backend/commands/copyfrom.c CopyFrom-1 upstream_CopyFrom+1
#   in CopyFrom upstream_CopyFrom
# target: contrib/postgres_fdw/postgres_fdw.c process_pending_request-1 upstream_process_pending_request+1
#   in process_pending_request upstream_process_pending_request

s/^(pgaio_io_wait|CopyFrom|process_pending_request)\(/upstream_&/
