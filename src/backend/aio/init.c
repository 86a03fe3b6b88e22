/*-------------------------------------------------------------------------
 *
 * init.c
 *	  Process start: configuration parameters, under the prefix "aio", and an
 *	  option of EXPLAIN.
 *
 * Called while the postmaster (or a single-user server) preloads libraries,
 * hence never during bootstrap; the variables' initial values must be right
 * for that.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "aio/backlog.h"
#include "aio/backup.h"
#include "aio/commit.h"
#include "aio/executor_run.h"
#include "aio/explain.h"
#include "aio/foreign.h"
#include "aio/index_insert.h"
#include "aio/io_internal.h"
#include "aio/io_method.h"
#include "aio/lookup.h"
#include "aio/node_usage.h"
#include "aio/parallel_insert.h"
#include "aio/pgstat_aio.h"
#include "aio/preallocate.h"
#include "aio/recovery_point.h"
#include "aio/quick_io.h"
#include "aio/ri.h"
#include "aio/server.h"
#include "aio/shared_state.h"
#include "aio/table_gate.h"
#include "aio/task_status.h"
#include "aio/wal.h"
#include "aio/write.h"
#include "utils/guc.h"

static const struct config_enum_entry await_foreign_options[] = {
	{"off", AIO_AWAIT_FOREIGN_OFF, false},
	{"async_capable", AIO_AWAIT_FOREIGN_ASYNC_CAPABLE, false},
	{"on", AIO_AWAIT_FOREIGN_ON, false},
	{"false", AIO_AWAIT_FOREIGN_OFF, true},
	{"true", AIO_AWAIT_FOREIGN_ON, true},
	{"no", AIO_AWAIT_FOREIGN_OFF, true},
	{"yes", AIO_AWAIT_FOREIGN_ON, true},
	{"0", AIO_AWAIT_FOREIGN_OFF, true},
	{"1", AIO_AWAIT_FOREIGN_ON, true},
	{NULL, 0, false}
};

static const struct config_enum_entry batch_unique_keys_options[] = {
	{"off", AIO_BATCH_UNIQUE_KEYS_OFF, false},
	{"auto", AIO_BATCH_UNIQUE_KEYS_AUTO, false},
	{"on", AIO_BATCH_UNIQUE_KEYS_ON, false},
	{"false", AIO_BATCH_UNIQUE_KEYS_OFF, true},
	{"true", AIO_BATCH_UNIQUE_KEYS_ON, true},
	{"no", AIO_BATCH_UNIQUE_KEYS_OFF, true},
	{"yes", AIO_BATCH_UNIQUE_KEYS_ON, true},
	{"0", AIO_BATCH_UNIQUE_KEYS_OFF, true},
	{"1", AIO_BATCH_UNIQUE_KEYS_ON, true},
	{NULL, 0, false}
};

/* Define what is ours to configure, and reserve its prefix. */
void
AioInitialize(void)
{
	AioTaskPortInitialize();
	AioRegisterBuiltInAms();
	AioRiInitialize();

	DefineCustomBoolVariable("aio.await_index_inserts",
							 "Inserts into several indexes await their reads together.",
							 "Has no effect if \"io_method\" is \"sync\".",
							 &aio_await_index_inserts,
							 true,
							 PGC_USERSET,
							 0,
							 NULL, NULL, NULL);

	DefineCustomEnumVariable("aio.await_foreign_inserts",
							 "Batches of rows are sent to foreign servers without waiting for the answer.",
							 "With \"async_capable\", to foreign tables with that option.",
							 &aio_await_foreign_inserts,
							 AIO_AWAIT_FOREIGN_ASYNC_CAPABLE,
							 await_foreign_options,
							 PGC_USERSET,
							 0,
							 NULL, NULL, NULL);

	DefineCustomBoolVariable("aio.foreign_read_ahead",
							 "Scans of foreign tables read rows ahead.",
							 "Those of tables with the option \"async_capable\".",
							 &aio_foreign_read_ahead,
							 true,
							 PGC_USERSET,
							 0,
							 NULL, NULL, NULL);

	DefineCustomBoolVariable("aio.direct_foreign_key_checks",
							 "Foreign keys of new rows are checked without executing a query for each.",
							 "Where a permission, a policy or a user's function is involved, a query is executed as ever.",
							 &aio_direct_foreign_key_checks,
							 true,
							 PGC_USERSET,
							 0,
							 NULL, NULL, NULL);

	DefineCustomStringVariable("aio.effective_io_method",
							   "Shows the method that executes asynchronous I/O.",
							   "What \"auto\" has chosen, if \"io_method\" is that.",
							   &aio_effective_io_method,
							   "",
							   PGC_INTERNAL,
							   GUC_NOT_IN_SAMPLE | GUC_DISALLOW_IN_FILE,
							   NULL, NULL, NULL);

	DefineCustomBoolVariable("aio.explain",
							 "EXPLAIN ANALYZE shows asynchronous I/O without being asked.",
							 "This is how auto_explain is made to show it.",
							 &aio_explain,
							 false,
							 PGC_USERSET,
							 0,
							 NULL, NULL, NULL);

	DefineCustomIntVariable("aio.index_batch_memory",
							"Memory in which one statement collects index entries, to insert them in index order.",
							"0 inserts the index entries of each row with the row.",
							&aio_index_batch_memory,
							64 * 1024, 0, MAX_KILOBYTES,
							PGC_USERSET,
							GUC_UNIT_KB,
							NULL, NULL, NULL);

	DefineCustomEnumVariable("aio.batch_unique_keys",
							 "Keys whose uniqueness is enforced are collected and inserted in index order, too.",
							 "With \"auto\", while nobody else writes to the table.  With \"on\", sessions that insert the same keys at the same time may deadlock where they would have waited.",
							 &aio_batch_unique_keys,
							 AIO_BATCH_UNIQUE_KEYS_AUTO,
							 batch_unique_keys_options,
							 PGC_USERSET,
							 0,
							 NULL, NULL, NULL);

	DefineCustomIntVariable("aio.lookup_ahead",
							"Maximum number of lookups in an index that are made ahead of need.",
							"0 reads each page when it is needed.  Twice the number of tasks of one session is a limit, too.",
							&aio_lookup_ahead,
							64, 0, AIO_MAX_TASKS_LIMIT,
							PGC_USERSET,
							0,
							NULL, NULL, NULL);

	DefineCustomIntVariable("aio.max_tasks",
							"Maximum number of tasks of one session that may await I/O at the same time.",
							"Half of \"io_max_concurrency\" and half of the session's share of buffer pins are limits, too.",
							&aio_max_tasks,
							64, 1, AIO_MAX_TASKS_LIMIT,
							PGC_USERSET,
							0,
							NULL, NULL, NULL);

	DefineCustomBoolVariable("aio.parallel_insert",
							 "Workers of a parallel plan insert the rows of CREATE TABLE AS, SELECT INTO and REFRESH MATERIALIZED VIEW.",
							 "Otherwise they send them to the leader, which inserts them.",
							 &aio_parallel_insert,
							 true,
							 PGC_USERSET,
							 GUC_EXPLAIN,
							 NULL, NULL, NULL);

	DefineCustomIntVariable("aio.bulk_flush_after",
							"Number of pages of a new relation that is not logged after which previous ones are flushed to disk.",
							"0 disables forced writeback.",
							&aio_bulk_flush_after,
							Min(128, RELSEG_SIZE), 0, RELSEG_SIZE,
							PGC_USERSET,
							GUC_UNIT_BLOCKS,
							NULL, NULL, NULL);

	DefineCustomIntVariable("aio.preallocation_size",
							"Maximum amount of space that is preallocated past the end of a growing file.",
							"A quarter of the table is a limit, too.  0 allocates space when it is needed.",
							&aio_preallocation_size,
							Min(4096, RELSEG_SIZE), 0, RELSEG_SIZE,
							PGC_SIGHUP,
							GUC_UNIT_BLOCKS,
							NULL, NULL, NULL);

	DefineCustomRealVariable("aio.quick_io_time",
							 "Time of a read or write below which it is not awaited, since that would take longer.",
							 "0 awaits whatever can be.",
							 &aio_quick_io_time,
							 AIO_QUICK_IO_TIME, 0, 1000,
							 PGC_USERSET,
							 GUC_UNIT_MS,
							 NULL, NULL, NULL);

	DefineCustomBoolVariable("aio.pipelined_commits",
							 "A transaction begins while the commit before it is still being flushed, if the client has sent it already.",
							 "Replies to commits are sent when they are on disk, as always.",
							 &aio_pipelined_commits,
							 false,
							 PGC_USERSET,
							 0,
							 NULL, NULL, NULL);

	DefineCustomIntVariable("aio.wal_syncs",
							"Number of syncs of WAL that sessions may have in flight at the same time.",
							"More than one only while they take long.",
							&aio_wal_syncs,
							1, 1, AIO_WAL_SYNCS_LIMIT,
							PGC_SIGHUP,
							0,
							NULL, NULL, NULL);

	DefineCustomIntVariable("aio.wal_write_ahead",
							"Amount of WAL after which it is written without waiting for it.",
							"An eighth of \"wal_buffers\" is a limit, too.  0 writes WAL when it is needed.",
							&aio_wal_write_ahead,
							256, 0, 16 * 1024,
							PGC_SIGHUP,
							GUC_UNIT_KB,
							NULL, AioAssignWalWriteAhead, NULL);

	DefineCustomIntVariable("aio.write_behind",
							"Writes of dirty pages that one process may have in flight.",
							"0 waits for each write.  Three eighths of \"io_max_concurrency\" are a limit, too.  Recovery may have more.",
							&aio_write_behind,
							32, 0, AIO_WRITE_BEHIND_LIMIT,
							PGC_SIGHUP,
							0,
							NULL, NULL, NULL);

	DefineCustomIntVariable("aio.backup_buffers",
							"Shared memory into which base backups read files ahead.",
							"0 reads nothing ahead.",
							&aio_backup_buffers,
							8 * 1024, 0, 1024 * 1024,
							PGC_POSTMASTER,
							GUC_UNIT_KB,
							NULL, NULL, NULL);

	DefineCustomIntVariable("aio.write_buffers",
							"Pages in shared memory from which dirty pages are written.",
							"-1 chooses a sixteenth of \"shared_buffers\", at most 8 MB.",
							&aio_write_buffers,
							-1, -1, INT_MAX / 2,
							PGC_POSTMASTER,
							GUC_UNIT_BLOCKS,
							NULL, NULL, NULL);

#ifdef USE_ASSERT_CHECKING
	DefineCustomIntVariable("aio.debug_rows_before_batch",
							"Rows of a statement whose index entries are inserted with the row, before others are collected.",
							NULL,
							&aio_debug_rows_before_batch,
							AIO_ROWS_BEFORE_BATCH, 0, INT_MAX,
							PGC_USERSET,
							GUC_NOT_IN_SAMPLE,
							NULL, NULL, NULL);

	DefineCustomBoolVariable("aio.debug_spill",
							 "Index entries are spilled whenever their memory is used up, in sorts as small as can be.",
							 NULL,
							 &aio_debug_spill,
							 false,
							 PGC_USERSET,
							 GUC_NOT_IN_SAMPLE,
							 NULL, NULL, NULL);

	DefineCustomBoolVariable("aio.debug_suspend",
							 "Tasks suspend at each read where they may, also if the page is cached, and go on in random order.",
							 NULL,
							 &aio_debug_suspend,
							 false,
							 PGC_USERSET,
							 GUC_NOT_IN_SAMPLE,
							 NULL, NULL, NULL);

	DefineCustomIntVariable("aio.debug_delay_completions",
							"How often a completed operation is taken to be incomplete, on average, before it is noticed.",
							NULL,
							&aio_debug_delay_completions,
							0, 0, 1000,
							PGC_USERSET,
							GUC_NOT_IN_SAMPLE,
							NULL, NULL, NULL);

	DefineCustomIntVariable("aio.debug_lookups",
							"Lookups are made ahead from the first row on, also if everything is cached, a random number up to this.",
							"0 looks ahead when somebody has waited.",
							&aio_debug_lookups,
							0, 0, AIO_MAX_TASKS_LIMIT,
							PGC_USERSET,
							GUC_NOT_IN_SAMPLE,
							NULL, NULL, NULL);

	DefineCustomBoolVariable("aio.debug_queue",
							 "I/O is left to I/O workers, even if they are busy.",
							 NULL,
							 &aio_debug_queue,
							 false,
							 PGC_SIGHUP,
							 GUC_NOT_IN_SAMPLE,
							 NULL, NULL, NULL);

	DefineCustomIntVariable("aio.debug_seed",
							"Seed of what is random with the other parameters for debugging.",
							"0 gives each session an order of its own.",
							&aio_debug_seed,
							0, 0, INT_MAX,
							PGC_USERSET,
							GUC_NOT_IN_SAMPLE,
							NULL, AioAssignDebugSeed, NULL);
#endif

	AioWorkerInitialize();
	AioQuickIoInitialize();
	AioWriteInitialize();
	AioPreallocationInitialize();
	AioTableGateInitialize();
	AioWalInitialize();
	AioWalSyncInitialize();
	AioBackupInitialize();
	AioRecoveryPointInitialize();
	AioUsageInitialize();
	AioTaskStatusInitialize();
	MarkGUCPrefixReserved("aio");
	AioExplainInitialize();
	AioNodeUsageInitialize();
	AioForeignInitialize();
	AioLookupInitialize();
	AioExecutorRunInitialize();
}

/*
 * All libraries are loaded.  An extension may insist that nobody has taken a
 * hook before it, so those that we cannot do without are taken only now.
 */
void
AioInitializeLast(void)
{
	AioShareAll();
	AioPgStatInitialize();
}
