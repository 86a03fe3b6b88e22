# Functions of ours stand in for five of upstream's, whoever calls them.
#
# What: the definitions get another name; ours have the old one, and call them.  They are in
# src/backend/aio/io/aio_internals.c,
#   src/backend/executor/guard.c, executor_run.c and explain.c beside it, and src/extension/postgres_fdw/async_pending.c.
# Without it: some waits for I/O are not counted; COPY raises the error of a later row; no keys wait and nothing is looked up
#   ahead; and postgres_fdw takes for a request of its own what is pending of ours on a connection.  Hooks of the executor
#   would do in place of two, but there are extensions that refuse to be loaded if one is taken.
# Could disappear: never, but calls could be redirected one by one, as long as all of them are found.
#
# target: src/backend/storage/aio/aio.c pgaio_io_wait-1 upstream_pgaio_io_wait+1
#   in pgaio_io_wait upstream_pgaio_io_wait
# target: src/backend/commands/copyfrom.c CopyFrom-1 upstream_CopyFrom+1
#   in CopyFrom upstream_CopyFrom
# target: src/backend/executor/execMain.c standard_ExecutorRun-1 upstream_standard_ExecutorRun+1 standard_ExecutorFinish-1 upstream_standard_ExecutorFinish+1
#   in standard_ExecutorRun upstream_standard_ExecutorRun standard_ExecutorFinish upstream_standard_ExecutorFinish
# target: contrib/postgres_fdw/postgres_fdw.c process_pending_request-1 upstream_process_pending_request+1
#   in process_pending_request upstream_process_pending_request

s/^(pgaio_io_wait|CopyFrom|standard_ExecutorRun|standard_ExecutorFinish|process_pending_request)\(/upstream_&/
