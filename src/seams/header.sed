# Upstream's files that call us know what they call.
#
# What: one #include after postgres.h in each file that a .cocci rule changes.
# Without it: nothing compiles.
# Could disappear: with the last of these rules.
#
# target: src/backend/storage/buffer/bufmgr.c seams+1
# target: src/backend/storage/lmgr/lwlock.c seams+1
# target: src/backend/storage/lmgr/lock.c seams+1
# target: src/backend/storage/lmgr/lmgr.c seams+1
# target: src/backend/storage/lmgr/condition_variable.c seams+1
# target: src/backend/storage/ipc/waiteventset.c seams+1
# target: src/backend/storage/aio/aio.c seams+1
# target: src/backend/storage/aio/aio_callback.c seams+1
# target: src/backend/storage/aio/aio_io.c seams+1
# target: src/backend/storage/smgr/md.c seams+1
# target: src/backend/commands/vacuum.c seams+1
# target: src/backend/commands/createas.c seams+1
# target: src/backend/commands/explain.c seams+1
# target: src/backend/commands/matview.c seams+1
# target: src/backend/executor/execParallel.c seams+1
# target: src/backend/access/heap/heapam.c seams+1
# target: src/backend/access/common/toast_internals.c seams+1
# target: src/backend/tcop/postgres.c seams+1
# target: src/backend/tcop/dest.c seams+1
# target: src/backend/libpq/be-secure.c seams+1
# target: src/backend/storage/aio/aio_init.c seams+1
# target: src/backend/storage/aio/method_io_uring.c seams+1
# target: src/backend/storage/aio/method_worker.c seams+1
# target: src/backend/utils/misc/guc_tables.c seams+1
# target: src/backend/postmaster/postmaster.c seams+1
# target: src/backend/postmaster/syslogger.c seams+1
# target: src/backend/utils/activity/pgstat.c seams+1
# target: src/backend/utils/activity/pgstat_io.c seams+1
# target: src/backend/utils/activity/pgstat_relation.c seams+1
# target: src/backend/utils/activity/pgstat_xact.c seams+1
# target: src/backend/executor/instrument.c seams+1
# target: contrib/postgres_fdw/postgres_fdw.c seams+1
# target: contrib/postgres_fdw/connection.c seams+1
# target: src/backend/access/nbtree/nbtinsert.c seams+1
# target: src/backend/executor/execIndexing.c seams+1
# target: src/backend/executor/execMain.c seams+1
# target: src/backend/executor/nodeModifyTable.c seams+1
# target: src/backend/executor/nodeAppend.c seams+1
# target: src/backend/executor/nodeMergeAppend.c seams+1
# target: src/backend/executor/execReplication.c seams+1
# target: src/backend/access/transam/xact.c seams+1
# target: src/backend/access/transam/xlog.c seams+1
# target: src/backend/postmaster/walwriter.c seams+1
# target: src/backend/storage/aio/aio_target.c seams+1
# target: src/backend/commands/tablecmds.c seams+1
# target: src/backend/commands/copy.c seams+1
# target: src/backend/commands/copyfrom.c seams+1
# target: src/backend/replication/logical/tablesync.c seams+1
# target: src/backend/replication/logical/worker.c seams+1
# target: src/backend/utils/cache/relcache.c seams+1
# target: src/backend/utils/init/miscinit.c seams+1

s|^#include "postgres.h"$|&\n\n#include "aio/seams.h"|
