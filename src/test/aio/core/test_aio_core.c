/*-------------------------------------------------------------------------
 *
 * test_aio_core.c
 *	  Drive tasks, scopes and futures from SQL.
 *
 * run(body, task 1, task 2, ...) runs a scope.  The body and each task are
 * small programs: instructions separated by semicolons, of which each is a
 * word and perhaps an argument.  Whoever executes "log x" adds "n:x" to the
 * log, n being the task's number, or 0 for the body.
 *
 *	 log WORD			add to the log
 *	 spawn N			spawn task N; "spawn ordered N", "spawn hooked N"
 *						with these options
 *	 join				wait for all tasks of the scope; "join N" for the N-th
 *						one spawned
 *	 nest N M fF ...	run a scope whose body spawns tasks N, M, ... and awaits
 *						flag F
 *	 set N				complete flag N
 *	 await N			await flag N, which only "set" completes; logs "blocked"
 *						if awaiting is not possible
 *	 socket N			await that socket N can be read; "write N" makes it so
 *	 writable N			await that it can be written
 *	 latch				await something that never comes
 *	 block				wait for it without suspending
 *	 yield				let siblings run
 *	 turn				await one's turn among the ordered tasks
 *	 forbid				do not suspend from here on
 *	 verdict			log whether and why not the program may suspend
 *	 lwlock, unlwlock; holdoff, resume; critical, uncritical; extension,
 *	 unextension; handout, unhandout
 *						take and give back what forbids to suspend
 *	 read N				read page N of the table in use
 *	 pin N, unpin N		the same, but keep it pinned
 *	 lock N, unlock N	lock a page that is pinned, for others to read it only
 *	 context WORD		error context for the rest of the program
 *	 fail CODE			raise an error with this SQLSTATE and all the trimmings
 *	 recurse			call deeper and deeper until the stack depth check fails
 *	 recurse N			use so many kB of stack, checking its depth
 *	 timeout N			let the statement time out after N milliseconds
 *	 forget				forget all caches, as if everything had changed
 *	 amcache N			use what is cached for the table's first index, await
 *						flag N, and see whether it is still there
 *	 starve, feed		have the system refuse memory, and no longer
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef USE_VALGRIND
#include <valgrind/valgrind.h>
#else
#define RUNNING_ON_VALGRIND 0
#endif

#include "access/genam.h"
#include "access/nbtree.h"
#include "access/relscan.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "aio/backlog.h"
#include "aio/commit.h"
#include "aio/future.h"
#include "aio/index_insert.h"
#include "aio/io_internal.h"
#include "aio/read.h"
#include "aio/stats.h"
#include "aio/task.h"
#include "aio/wait.h"
#include "catalog/index.h"
#include "catalog/pg_am_d.h"
#include "commands/trigger.h"
#include "executor/executor.h"
#include "executor/spi.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "storage/aio.h"
#include "storage/bufmgr.h"
#include "storage/latch.h"
#include "storage/lmgr.h"
#include "storage/lwlock.h"
#include "storage/proc.h"
#include "storage/procarray.h"
#include "task/task_internal.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/inval.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/timeout.h"
#include "utils/wait_event.h"

PG_MODULE_MAGIC;

PG_FUNCTION_INFO_V1(run);
PG_FUNCTION_INFO_V1(logged);
PG_FUNCTION_INFO_V1(use_table);
PG_FUNCTION_INFO_V1(held);
PG_FUNCTION_INFO_V1(spawn_empty);
PG_FUNCTION_INFO_V1(overflow_in_child);
PG_FUNCTION_INFO_V1(execute_some);
PG_FUNCTION_INFO_V1(search_index);
PG_FUNCTION_INFO_V1(search_before_row);
PG_FUNCTION_INFO_V1(read_from_pipe);
PG_FUNCTION_INFO_V1(damage_ring);
PG_FUNCTION_INFO_V1(on_valgrind);
PG_FUNCTION_INFO_V1(read_staged);
PG_FUNCTION_INFO_V1(hold_handle);
PG_FUNCTION_INFO_V1(hold_handle_and_replies);

#define FLAGS		10
#define PINS		100
#define SOCKETS		4

/* a future that "set" completes */
typedef struct FlagFuture
{
	AioFuture	future;			/* must be first */
	int			flag;
} FlagFuture;

/* argument of a body or task */
typedef struct Program
{
	int			number;
	char	   *text;
} Program;

static bool flag_poll(AioFuture *future);
static bool never(AioFuture *future);
static void latch_wait(AioFuture *future);

static const AioFutureOps flag_ops = {
	.name = "flag",
	.poll = flag_poll,
};

static const AioFutureOps latch_ops = {
	.name = "latch",
	.poll = never,
	.wait = latch_wait,
};

/* the programs that run() was given, its log and other state */
static char **programs;
static int	nprograms;
static StringInfoData log_text;
static bool flags[FLAGS];
static Buffer pins[PINS];
static int	sockets[SOCKETS][2];	/* zero: not made yet */
static Oid	table_oid = InvalidOid;
static Relation table_rel;

static LWLock test_lwlock;
static PgAioReturn handed_out_result;
static PgAioHandle *handed_out;
static struct rlimit memory_limit;
static volatile char sink;

static void execute(AioScope *scope, Program *program);

static bool
flag_poll(AioFuture *future)
{
	return flags[((FlagFuture *) future)->flag];
}

static bool
never(AioFuture *future)
{
	return false;
}

/*
 * Scopes are given this: errors of these classes are raised in the order of
 * tasks, all others at once.
 */
static bool
is_row_error(int sqlerrcode)
{
	int			category = ERRCODE_TO_CATEGORY(sqlerrcode);

	return category == ERRCODE_DATA_EXCEPTION ||
		category == ERRCODE_INTEGRITY_CONSTRAINT_VIOLATION ||
		category == ERRCODE_PROGRAM_LIMIT_EXCEEDED;
}

static void
latch_wait(AioFuture *future)
{
	static uint32 wait_event = 0;

	if (wait_event == 0)
		wait_event = WaitEventExtensionNew("TestAioCoreLatch");
	(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_EXIT_ON_PM_DEATH, 0, wait_event);
	ResetLatch(MyLatch);
	CHECK_FOR_INTERRUPTS();
}

/* Add to the log. */
static void
note(const Program *program, const char *what)
{
	appendStringInfo(&log_text, "%s%d:%s", log_text.len > 0 ? " " : "",
					 program->number, what);
}

static Program
get_program(int number)
{
	Program		program;

	if (number < 1 || number > nprograms)
		elog(ERROR, "there is no program %d", number);
	program.number = number;
	program.text = programs[number - 1];
	return program;
}

/* AioTaskBody */
static void
task_main(void *arg)
{
	execute(NULL, arg);
}

/* AioScopeBody of the outermost scope */
static void
body_main(AioScope *scope, void *arg)
{
	execute(scope, arg);
}

/* AioScopeBody of "nest" */
static void
nested_main(AioScope *scope, void *arg)
{
	char	   *numbers = arg;
	AioTaskOptions options = {0};

	while (*numbers != '\0')
	{
		if (*numbers == 'f')
		{
			FlagFuture	flag = {.future.ops = &flag_ops};

			flag.flag = strtol(numbers + 1, &numbers, 10);
			AioAwait(&flag.future);
		}
		else
		{
			Program		program = get_program(strtol(numbers, &numbers, 10));

			AioSpawn(scope, &options, task_main, &program, sizeof(program));
		}
		while (*numbers == ' ')
			numbers++;
	}
}

/* AioTaskHook */
static void
page_hook(void *event, void *arg)
{
	const AioPageEvent *arrived = event;
	BlockNumber block = BufferGetBlockNumber(arrived->buffer);

	note(arg, psprintf("page%u", block));
	/* reads of its own are allowed, and do not lead back here */
	if (block + 1 < RelationGetNumberOfBlocks(arrived->rel))
		ReleaseBuffer(ReadBuffer(arrived->rel, block + 1));
}

/* Error context callback of "context" */
static void
add_context(void *arg)
{
	errcontext("in %s", (char *) arg);
}

static void
raise_error(const char *code, const Program *program)
{
	ereport(ERROR,
			(errcode(MAKE_SQLSTATE(code[0], code[1], code[2], code[3], code[4])),
			 errmsg("program %d fails", program->number),
			 errdetail("This is detail %d.", program->number),
			 errhint("This is hint %d.", program->number),
			 err_generic_string(PG_DIAG_SCHEMA_NAME, "some_schema"),
			 err_generic_string(PG_DIAG_TABLE_NAME, "some_table"),
			 err_generic_string(PG_DIAG_COLUMN_NAME, "some_column"),
			 err_generic_string(PG_DIAG_DATATYPE_NAME, "some_type"),
			 err_generic_string(PG_DIAG_CONSTRAINT_NAME, psprintf("constraint_%d", program->number))));
}

/*
 * Use that much stack, or all there is.  Not a tail call, thanks to sink; and
 * not more of the stack than that for ASan's sake.
 */
pg_attribute_no_sanitize_address()
static void
recurse(long left_bytes, bool checked)
{
	volatile char frame[1024];

	if (checked)
		check_stack_depth();
	frame[0] = (char) left_bytes;
	if (left_bytes > 0)
		recurse(left_bytes - (long) sizeof(frame), checked);
	sink = frame[0];
}

static void
await_and_note(AioFuture *future, const Program *program)
{
	if (!AioAwait(future))
		note(program, "blocked");
}

static void
spawn(AioScope *scope, const char *arg)
{
	AioTaskOptions options = {0};
	Program		program;

	if (strncmp(arg, "ordered ", 8) == 0)
	{
		options.ordered = true;
		arg += 8;
	}
	if (strncmp(arg, "hooked ", 7) == 0)
	{
		options.hook = page_hook;
		arg += 7;
	}
	program = get_program(atoi(arg));
	AioSpawn(scope, &options, task_main, &program, sizeof(program));
}

/*
 * Refuse memory to this process.  What has been allocated stays usable.
 */
static void
starve(void)
{
	struct rlimit none;

	getrlimit(RLIMIT_AS, &memory_limit);
	none = memory_limit;
	none.rlim_cur = 1;
	setrlimit(RLIMIT_AS, &none);
}

/*
 * Keep a pointer into rd_amcache across an await, as index access methods do.
 */
static void
use_amcache(const Program *program, int flag_number)
{
	FlagFuture	flag = {.future.ops = &flag_ops,.flag = flag_number};
	Oid			index_oid = linitial_oid(RelationGetIndexList(table_rel));
	Relation	index = index_open(index_oid, AccessShareLock);
	int			height = _bt_getrootheight(index);
	BTMetaPageData before;
	const BTMetaPageData *cache = index->rd_amcache;

	before = *cache;
	await_and_note(&flag.future, program);
	note(program, memcmp(cache, &before, sizeof(before)) == 0 ? "kept" : "lost");
	note(program, _bt_getrootheight(index) == height ? "same" : "different");
	index_close(index, AccessShareLock);
}

static Buffer
read_page(int blkno)
{
	if (table_rel == NULL)
		elog(ERROR, "no table is in use");
	return ReadBuffer(table_rel, blkno);
}

/* Two ends of one, which stay with the session. */
static int *
get_socket(int n)
{
	if (sockets[n][0] == 0 &&
		socketpair(AF_UNIX, SOCK_STREAM, 0, sockets[n]) != 0)
		elog(ERROR, "could not make a pair of sockets: %m");
	return sockets[n];
}

static void
await_socket(int n, const Program *program)
{
	AioSocketFuture future;
	char		byte;

	AioSocketFutureInit(&future, get_socket(n)[0], WL_SOCKET_READABLE);
	await_and_note(&future.future, program);
	if (read(get_socket(n)[0], &byte, 1) != 1)
		elog(ERROR, "could not read from socket: %m");
}

/*
 * Instructions that concern what forbids to suspend.  Returns whether it is
 * one of them.
 */
static bool
execute_forbidding(const char *word, int n)
{
	if (strcmp(word, "forbid") == 0)
		AioTaskForbidSuspend();
	else if (strcmp(word, "lwlock") == 0)
		LWLockAcquire(&test_lwlock, LW_SHARED);
	else if (strcmp(word, "unlwlock") == 0)
		LWLockRelease(&test_lwlock);
	else if (strcmp(word, "lock") == 0)
		LockBuffer(pins[n], BUFFER_LOCK_SHARE);
	else if (strcmp(word, "unlock") == 0)
		LockBuffer(pins[n], BUFFER_LOCK_UNLOCK);
	else if (strcmp(word, "holdoff") == 0)
		HOLD_INTERRUPTS();
	else if (strcmp(word, "resume") == 0)
		RESUME_INTERRUPTS();
	else if (strcmp(word, "critical") == 0)
		START_CRIT_SECTION();
	else if (strcmp(word, "uncritical") == 0)
		END_CRIT_SECTION();
	else if (strcmp(word, "extension") == 0)
		LockRelationForExtension(table_rel, ExclusiveLock);
	else if (strcmp(word, "unextension") == 0)
		UnlockRelationForExtension(table_rel, ExclusiveLock);
	else if (strcmp(word, "handout") == 0)
		handed_out = pgaio_io_acquire(CurrentResourceOwner, &handed_out_result);
	else if (strcmp(word, "unhandout") == 0)
		pgaio_io_release(handed_out);
	else
		return false;
	return true;
}

static void
execute_one(AioScope *scope, Program *program, const char *word, char *arg)
{
	int			n = atoi(arg);

	if (strcmp(word, "log") == 0)
		note(program, arg);
	else if (strcmp(word, "spawn") == 0)
		spawn(scope, arg);
	else if (strcmp(word, "join") == 0 && *arg != '\0')
		AioScopeJoinTask(scope, n);
	else if (strcmp(word, "join") == 0)
		AioScopeJoin(scope);
	else if (strcmp(word, "nest") == 0)
		AioScopeRun(nested_main, arg, is_row_error);
	else if (strcmp(word, "set") == 0)
		flags[n] = true;
	else if (strcmp(word, "await") == 0)
	{
		FlagFuture	flag = {.future.ops = &flag_ops,.flag = n};

		await_and_note(&flag.future, program);
	}
	else if (strcmp(word, "socket") == 0)
		await_socket(n, program);
	else if (strcmp(word, "writable") == 0)
	{
		AioSocketFuture future;

		AioSocketFutureInit(&future, get_socket(n)[0], WL_SOCKET_WRITEABLE);
		await_and_note(&future.future, program);
	}
	else if (strcmp(word, "write") == 0)
	{
		if (write(get_socket(n)[1], "x", 1) != 1)
			elog(ERROR, "could not write to socket: %m");
	}
	else if (strcmp(word, "latch") == 0)
	{
		AioFuture	future = {.ops = &latch_ops};

		await_and_note(&future, program);
	}
	else if (strcmp(word, "block") == 0)
	{
		for (;;)
			latch_wait(NULL);
	}
	else if (strcmp(word, "yield") == 0)
		AioYield();
	else if (strcmp(word, "turn") == 0)
		AioAwaitTurn();
	else if (strcmp(word, "verdict") == 0)
		note(program, AioSuspendVerdictName(AioMaySuspend()));
	else if (strcmp(word, "read") == 0)
		ReleaseBuffer(read_page(n));
	else if (strcmp(word, "pin") == 0)
		pins[n] = read_page(n);
	else if (strcmp(word, "unpin") == 0)
		ReleaseBuffer(pins[n]);
	else if (strcmp(word, "fail") == 0)
		raise_error(arg, program);
	else if (strcmp(word, "recurse") == 0)
		recurse(*arg != '\0' ? n * 1024L : LONG_MAX, true);
	else if (strcmp(word, "timeout") == 0)
		enable_timeout_after(STATEMENT_TIMEOUT, n);
	else if (strcmp(word, "forget") == 0)
		InvalidateSystemCaches();
	else if (strcmp(word, "amcache") == 0)
		use_amcache(program, n);
	else if (strcmp(word, "starve") == 0)
		starve();
	else if (strcmp(word, "feed") == 0)
		setrlimit(RLIMIT_AS, &memory_limit);
	else if (!execute_forbidding(word, n))
		elog(ERROR, "unknown instruction \"%s\"", word);
}

/*
 * Run a program, on whatever stack this is.
 */
static void
execute(AioScope *scope, Program *program)
{
	ErrorContextCallback *context = error_context_stack;
	ErrorContextCallback callback;
	char	   *rest = pstrdup(program->text);
	char	   *instruction;

	while ((instruction = strsep(&rest, ";")) != NULL)
	{
		char	   *arg;

		instruction += strspn(instruction, " \n");
		if (*instruction == '\0')
			continue;
		arg = instruction + strcspn(instruction, " ");
		if (*arg != '\0')
			*arg++ = '\0';

		if (strcmp(instruction, "context") == 0)
		{
			callback.callback = add_context;
			callback.arg = arg;
			callback.previous = error_context_stack;
			error_context_stack = &callback;
		}
		else
			execute_one(scope, program, instruction, arg);
	}
	error_context_stack = context;
}

static text *
get_log(void)
{
	return cstring_to_text_with_len(log_text.data, log_text.len);
}

Datum
run(PG_FUNCTION_ARGS)
{
	Program		body = {0, text_to_cstring(PG_GETARG_TEXT_PP(0))};
	ErrorContextCallback callback;
	Datum	   *elems;

	if (log_text.data == NULL)
	{
		MemoryContext old = MemoryContextSwitchTo(TopMemoryContext);

		initStringInfo(&log_text);
		/* so that logging does not allocate */
		enlargeStringInfo(&log_text, 64 * 1024);
		MemoryContextSwitchTo(old);
		LWLockInitialize(&test_lwlock, LWLockNewTrancheId());
		LWLockRegisterTranche(test_lwlock.tranche, "TestAioCore");
	}
	resetStringInfo(&log_text);
	memset(flags, 0, sizeof(flags));

	deconstruct_array_builtin(PG_GETARG_ARRAYTYPE_P(1), TEXTOID, &elems, NULL, &nprograms);
	programs = palloc(sizeof(char *) * nprograms);
	for (int i = 0; i < nprograms; i++)
		programs[i] = TextDatumGetCString(elems[i]);

	table_rel = OidIsValid(table_oid) ? table_open(table_oid, AccessShareLock) : NULL;
	callback.callback = add_context;
	callback.arg = "run()";
	callback.previous = error_context_stack;
	error_context_stack = &callback;
	AioScopeRun(body_main, &body, is_row_error);
	error_context_stack = callback.previous;
	if (table_rel != NULL)
		table_close(table_rel, AccessShareLock);

	/* whatever happened, the caller is back on his own stack */
	if (aio_current_task != NULL || aio_current_scope != NULL)
		elog(ERROR, "scope has not ended");
	PG_RETURN_TEXT_P(get_log());
}

Datum
logged(PG_FUNCTION_ARGS)
{
	PG_RETURN_TEXT_P(get_log());
}

Datum
use_table(PG_FUNCTION_ARGS)
{
	table_oid = PG_GETARG_OID(0);
	PG_RETURN_VOID();
}

Datum
held(PG_FUNCTION_ARGS)
{
	TupleDesc	tupdesc;
	Datum		values[4];
	bool		nulls[4] = {0};

	if (get_call_result_type(fcinfo, NULL, &tupdesc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	values[0] = Int32GetDatum(AioTaskPoolSize());
	values[1] = Int32GetDatum(aio_task_counters.suspended);
	values[2] = Int32GetDatum(aio_session_stats_data.reads_in_flight);
	values[3] = Int64GetDatum(MemoryContextMemAllocated(TopMemoryContext, false));
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(tupdesc, values, nulls)));
}

static void
empty_task(void *arg)
{
}

/* AioScopeBody */
static void
spawn_empty_body(AioScope *scope, void *arg)
{
	AioTaskOptions options = {0};
	int			tasks = *(int *) arg;

	for (int i = 0; i < tasks; i++)
		AioSpawn(scope, &options, empty_task, &i, sizeof(i));
}

Datum
spawn_empty(PG_FUNCTION_ARGS)
{
	int			tasks = PG_GETARG_INT32(0);
	Size		before;
	int			one = 1;

	/* the first one makes a task */
	AioScopeRun(spawn_empty_body, &one, is_row_error);
	before = MemoryContextMemAllocated(TopMemoryContext, true);
	AioScopeRun(spawn_empty_body, &tasks, is_row_error);
	PG_RETURN_INT64((int64) (MemoryContextMemAllocated(TopMemoryContext, true) - before));
}

/*
 * SIGSEGV in the child: on the guard page of the running task it may kill us,
 * elsewhere it is another matter.
 */
static void
segv_handler(int signo, siginfo_t * info, void *context)
{
	const AioStack *stack = &aio_current_task->stack;
	char	   *address = info->si_addr;

	if (address < stack->mapping || address >= stack->low)
		_exit(1);
	signal(SIGSEGV, SIG_DFL);
}

/* AioTaskBody */
static void
overflow_task(void *arg)
{
	recurse(LONG_MAX, false);
}

/* AioScopeBody */
static void
overflow_body(AioScope *scope, void *arg)
{
	AioTaskOptions options = {0};

	AioSpawn(scope, &options, overflow_task, &options, sizeof(options));
}

Datum
overflow_in_child(PG_FUNCTION_ARGS)
{
	pid_t		pid;
	int			status;

	fflush(NULL);
	pid = fork();
	if (pid < 0)
		elog(ERROR, "could not fork: %m");
	if (pid == 0)
	{
		static char handler_stack[64 * 1024];
		stack_t		alternative = {.ss_sp = handler_stack,.ss_size = sizeof(handler_stack)};
		struct sigaction action = {.sa_sigaction = segv_handler,.sa_flags = SA_SIGINFO | SA_ONSTACK};
		struct rlimit no_core = {0, 0};

		setrlimit(RLIMIT_CORE, &no_core);
		sigaltstack(&alternative, NULL);
		sigaction(SIGSEGV, &action, NULL);
		AioScopeRun(overflow_body, NULL, is_row_error);
		_exit(2);
	}
	while (waitpid(pid, &status, 0) < 0)
	{
		if (errno != EINTR)
			elog(ERROR, "could not wait for the child: %m");
	}
	if (WIFSIGNALED(status))
		PG_RETURN_TEXT_P(cstring_to_text(psprintf("killed by signal %s", WTERMSIG(status) == SIGSEGV ? "SEGV" : "other")));
	PG_RETURN_TEXT_P(cstring_to_text(psprintf("exited with %d", WEXITSTATUS(status))));
}

/*
 * Execute a statement until it has returned so many rows, and no further.
 */
Datum
execute_some(PG_FUNCTION_ARGS)
{
	char	   *command = text_to_cstring(PG_GETARG_TEXT_PP(0));
	int64		rows = PG_GETARG_INT64(1);

	SPI_connect();
	SPI_execute(command, false, rows);
	rows = SPI_processed;
	SPI_finish();
	PG_RETURN_INT64(rows);
}

/* Search for an integer in the first column of an index. */
static int64
count_found(Relation table, Relation index, int32 key, Snapshot snapshot)
{
	IndexScanDesc scan = index_beginscan(table, index, snapshot, NULL, 1, 0);
	TupleTableSlot *slot = table_slot_create(table, NULL);
	ScanKeyData scankey;
	int64		n = 0;

	ScanKeyInit(&scankey, 1,
				index->rd_rel->relam == HASH_AM_OID ? HTEqualStrategyNumber : BTEqualStrategyNumber,
				F_INT4EQ, Int32GetDatum(key));
	index_rescan(scan, &scankey, 1, NULL, 0);
	while (index_getnext_slot(scan, ForwardScanDirection, slot))
		n++;
	index_endscan(scan);
	ExecDropSingleTupleTableSlot(slot);
	return n;
}

/*
 * Search in an index without a query.
 */
Datum
search_index(PG_FUNCTION_ARGS)
{
	Oid			indexid = PG_GETARG_OID(0);
	char	   *which = text_to_cstring(PG_GETARG_TEXT_PP(2));
	Relation	table = table_open(IndexGetRelation(indexid, false), AccessShareLock);
	Relation	index = PG_GETARG_BOOL(3) ?
		AioOpenQuietly(index_open, indexid, AccessShareLock) :
		index_open(indexid, AccessShareLock);
	SnapshotData dirty;
	Snapshot	snapshot = SnapshotSelf;
	int64		n;

	InitDirtySnapshot(dirty);
	if (strcmp(which, "dirty") == 0)
		snapshot = &dirty;
	else if (strcmp(which, "any") == 0)
		snapshot = SnapshotAny;
	else if (strcmp(which, "active") == 0)
		snapshot = GetActiveSnapshot();
	else if (strcmp(which, "later") == 0)
	{
		CommandCounterIncrement();
		snapshot = GetLatestSnapshot();
	}
	PushActiveSnapshot(IsMVCCSnapshot(snapshot) ? snapshot : GetTransactionSnapshot());
	n = count_found(table, index, PG_GETARG_INT32(1),
					IsMVCCSnapshot(snapshot) ? GetActiveSnapshot() : snapshot);
	PopActiveSnapshot();
	index_close(index, AccessShareLock);
	table_close(table, AccessShareLock);
	PG_RETURN_INT64(n);
}

/*
 * Trigger: search for all rows before this one.
 */
Datum
search_before_row(PG_FUNCTION_ARGS)
{
	TriggerData *data = (TriggerData *) fcinfo->context;
	Relation	table = data->tg_relation;
	int			every = pg_strtoint32(data->tg_trigger->tgargs[0]);
	bool		isnull;
	int			id = DatumGetInt32(heap_getattr(data->tg_trigtuple, 1,
												RelationGetDescr(table), &isnull));
	List	   *indexes = RelationGetIndexList(table);
	Relation	index;

	if (id % every == 0)
	{
		index = index_open(linitial_oid(indexes), AccessShareLock);
		for (int i = 1; i < id; i++)
		{
			if (count_found(table, index, i, SnapshotSelf) != 1)
				elog(ERROR, "row %d does not find row %d", id, i);
		}
		index_close(index, AccessShareLock);
	}
	return PointerGetDatum(data->tg_trigtuple);
}

/*
 * Submit a read of one byte from a pipe to this process's ring.  It is in
 * flight until somebody writes into the pipe, whatever becomes of this process.
 */
Datum
read_from_pipe(PG_FUNCTION_ARGS)
{
#if defined(IOMETHOD_IO_URING_ENABLED) && defined(USE_ASSERT_CHECKING)
	char	   *path = text_to_cstring(PG_GETARG_TEXT_PP(0));
	int			pipe = open(path, O_RDWR | O_CLOEXEC);

	if (pipe < 0)
		elog(ERROR, "could not open \"%s\": %m", path);
	PG_RETURN_INT32(AioUringTestRead(pipe));
#else
	elog(ERROR, "this needs io_uring, and assertions");
#endif
}

/* Write into the counters of this process's ring. */
Datum
damage_ring(PG_FUNCTION_ARGS)
{
#if defined(IOMETHOD_IO_URING_ENABLED) && defined(USE_ASSERT_CHECKING)
	AioUringTestDamage();
	PG_RETURN_VOID();
#else
	elog(ERROR, "this needs io_uring, and assertions");
#endif
}

/*
 * Is this process run by valgrind, which would report what is wrong on purpose,
 * and which needs memory, too?
 */
Datum
on_valgrind(PG_FUNCTION_ARGS)
{
	PG_RETURN_BOOL(RUNNING_ON_VALGRIND != 0);
}

/*
 * Stage a read of a page, and submit it when another process waits for it; then
 * wait for that process, which has the advisory lock 1, and only after that for
 * the page.
 */
Datum
read_staged(PG_FUNCTION_ARGS)
{
	Relation	rel = table_open(PG_GETARG_OID(0), AccessShareLock);
	PGPROC	   *waiter = BackendPidGetProc(PG_GETARG_INT32(2));
	ReadBuffersOperation operation = {
		.rel = rel,
		.smgr = RelationGetSmgr(rel),
		.persistence = rel->rd_rel->relpersistence,
		.forknum = MAIN_FORKNUM,
	};
	Buffer		buffer = InvalidBuffer;
	int			n = 1;

	if (waiter == NULL)
		elog(ERROR, "there is no such process");
	pgaio_enter_batchmode();
	if (!StartReadBuffers(&operation, &buffer, PG_GETARG_INT64(1), &n, 0))
		elog(ERROR, "the page is in memory");
	/* it must not wait for anybody meanwhile, so it looks again and again */
	while (*(volatile uint32 *) &waiter->wait_event_info != WAIT_EVENT_AIO_IO_COMPLETION)
	{
		CHECK_FOR_INTERRUPTS();
		pg_usleep(1000);
	}
	pgaio_exit_batchmode();
	DirectFunctionCall1(pg_advisory_xact_lock_int8, Int64GetDatum(1));
	WaitReadBuffers(&operation);
	ReleaseBuffer(buffer);
	table_close(rel, AccessShareLock);
	PG_RETURN_VOID();
}

/* Hold an AIO handle until the end of the process. */
Datum
hold_handle(PG_FUNCTION_ARGS)
{
	PgAioReturn result;

	(void) pgaio_io_acquire(CurrentResourceOwner, &result);
	for (;;)
	{
		/* sleeping is not allowed now */
		pg_usleep(1000);
		CHECK_FOR_INTERRUPTS();
	}
}

/*
 * Process interrupts when the replies that this session holds are due.  Returns
 * whether it still holds them.
 */
static bool
replies_wait(void)
{
	while (aio_replies_held && !aio_replies_due)
		pg_usleep(1000);
	CHECK_FOR_INTERRUPTS();
	return aio_replies_held;
}

/* AioTaskBody */
static void
replies_wait_in_task(void *arg)
{
	**(bool **) arg = replies_wait();
}

/* AioScopeBody */
static void
spawn_replies_wait(AioScope *scope, void *arg)
{
	AioTaskOptions options = {0};

	AioSpawn(scope, &options, replies_wait_in_task, &arg, sizeof(arg));
}

/*
 * Replies, which this session holds, become due in a task, and while it holds
 * an AIO handle; then without either wait until they have been sent.  Returns
 * where they had to wait.
 */
Datum
hold_handle_and_replies(PG_FUNCTION_ARGS)
{
	PgAioReturn result;
	PgAioHandle *handle;
	bool		in_task = false;
	bool		in_read;

	if (!aio_replies_held)
		elog(ERROR, "no reply is held");
	AioScopeRun(spawn_replies_wait, &in_task, is_row_error);
	handle = pgaio_io_acquire(CurrentResourceOwner, &result);
	in_read = replies_wait();
	pgaio_io_release(handle);
	while (aio_replies_held)
		latch_wait(NULL);
	PG_RETURN_TEXT_P(cstring_to_text(psprintf("%s%s", in_task ? "task " : "", in_read ? "read" : "")));
}
