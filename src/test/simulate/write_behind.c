/*-------------------------------------------------------------------------
 *
 * write_behind.c
 *	  Simulates how dirty buffers are written without waiting, on a disk that
 *	  fails and loses power.
 *
 * A seed stands for a few lives of a server with few buffers.  In each,
 * backends read pages, with and without a ring, change them, set hints, flush a
 * relation, and wait to have a page alone; a checkpointer, a background writer
 * and a WAL writer do what they are for; and in some a startup process replays
 * WAL, after a crash, or as a standby, which receives more.  Reads and writes
 * are late and fail.  A life ends in order, or at any step: by a crash of
 * processes or a loss of power.
 *
 * The code that is simulated is the server's: write_behind.c, write.c and
 * bufmgr_internals.c.  Invariants: when a checkpoint is complete, whatever was
 * dirty when it began is durable; redo from there makes each page what the last
 * record of it says, whatever the disk has kept of later writes; at the end
 * nobody waits, and nothing is in use; and those of write_disk.c, write_aio.c,
 * write_buffers.c and wal_world.c.
 *
 * Not simulated: tasks, bulk writes of new relations, torn pages, files that
 * grow, shrink or go away, and the order in which a processor writes memory.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xlogrecovery.h"
#include "aio/quick_io.h"
#include "aio/read.h"
#include "aio/recovery_point.h"
#include "aio/shared_state.h"
#include "aio/stats.h"
#include "aio/wal.h"
#include "miscadmin.h"
#include "utils/guc.h"
#include "write_world.h"

#define RECORDS_MAX		20000	/* in a seed */
#define FAKE_LSN		1000000 /* of pages without WAL, from here on */
#define BUFFERS_MIN		8
#define BATCH_MAX		5		/* reads that are submitted together */
#define RESUMED_MAX		8

typedef enum Kind
{
	BACKEND,
	CHECKPOINTER,
	BACKGROUND_WRITER,
	WAL_WRITER,
	STARTUP,
	IO_WORKER,
} Kind;

/* A process's own. */
typedef struct Locals
{
	Kind		kind;
	ResourceOwner owner;
	sigjmp_buf *exception_stack;
	ErrorContextCallback *context_stack;
	bool		in_recovery;
	bool		inserts;		/* although recovery has not ended */
	bool		awaits_flush;	/* sleeps until WAL is flushed */
	uint64		resumed[RESUMED_MAX];	/* the last steps at which it went on */
	int			nresumed;
} Locals;

/* bounds of what is generated, lower ones for a smaller case */
static int	most_lives = 3;
static int	most_backends = 4;
static int	most_transactions = 10;
static int	most_buffers = BUFFERS_MAX;
static int	most_pages = BLOCKS_MAX;

int			MyProcNumber = -1;
int			sim_disk_time;
SimPage		sim_newest[PAGES_MAX];
int			sim_nfiles;
int			sim_nblocks;
XLogRecPtr	sim_inserted;
XLogRecPtr	sim_flushed;
XLogRecPtr	sim_noted;
bool		sim_notes;
int			io_direct_flags;
AioTask    *aio_current_task;
AioSessionStats aio_session_stats_data;

static Locals locals[PROCESSES_MAX];

/* WAL: which page a record is of, and what it makes of that */
static int	record_page[RECORDS_MAX];
static uint32 record_body[RECORDS_MAX];
static uint32 nbodies;
static XLogRecPtr fake_lsn;
static XLogRecPtr redo_at;		/* of the last complete checkpoint */
static bool unlogged;			/* the second file is */

static bool in_recovery;
static XLogRecPtr consistent_at;	/* a standby has sessions from there on */
static bool standby;
static bool finishing;			/* recovery ends: its checkpoint is asked for */
static XLogRecPtr replay_end;	/* of the record that is being replayed */
static XLogRecPtr replayed;
static XLogRecPtr wal_wanted;	/* to be flushed by the WAL writer */
static bool note_wanted;		/* by the background writer */
static LWLock control_lock;
static ConditionVariable flushed_cv;
static bool writer_notes;		/* the background writer does, if asked */
static bool cleanup_taken;		/* the lock of whoever waits for a page alone */

static int	nworking;			/* processes that the end of a life waits for */
static bool stopping;
static bool quick;
static int	cancels;
static int	chance_to_change;
static int	thinking;			/* of a backend, at most */
static SimProcess *checkpointer_process;
static SimProcess *wal_writer_process;
static SimProcess *background_process;
static bool checkpoint_wanted;

static char bounce_memory[2][16 * 1024];
static int	nshared;

/* ------------------------------------------------------------------------
 * Processes
 * ------------------------------------------------------------------------
 */

void
SimLocalsInit(void)
{
	memset(&locals[SimMe()], 0, sizeof(Locals));
	SimAioInit();
	SimBuffersInit();
	SimBehindInit();
}

void
SimLocalsSave(void)
{
	Locals	   *mine = &locals[SimMe()];

	mine->owner = CurrentResourceOwner;
	mine->exception_stack = PG_exception_stack;
	mine->context_stack = error_context_stack;
	mine->in_recovery = InRecovery;
	SimBehindSave();
}

void
SimLocalsRestore(void)
{
	Locals	   *mine = &locals[SimMe()];

	mine->resumed[mine->nresumed++ % RESUMED_MAX] = sim_steps;
	MyProcNumber = SimMe();
	CurrentResourceOwner = mine->owner;
	PG_exception_stack = mine->exception_stack;
	error_context_stack = mine->context_stack;
	InRecovery = mine->in_recovery;
	sim_cancels = mine->kind == BACKEND ? cancels : 0;
	SimAioRestore();
	SimBehindRestore();
}

static bool
is_a(Kind kind)
{
	return sim_me != NULL && locals[SimMe()].kind == kind;
}

bool
AmStartupProcess(void)
{
	return is_a(STARTUP);
}

bool
AmCheckpointerProcess(void)
{
	return is_a(CHECKPOINTER);
}

bool
AmBackgroundWriterProcess(void)
{
	return is_a(BACKGROUND_WRITER);
}

/* Has the process gone on often since then, and so had to see it? */
bool
SimHasSeen(uint64 step)
{
	const Locals *mine = &locals[SimMe()];

	return mine->nresumed >= RESUMED_MAX && step < mine->resumed[mine->nresumed % RESUMED_MAX];
}

static SimProcess *
make_process(const char *name, int number, void (*body) (void), Kind kind)
{
	SimProcess *process = SimProcessMake(name, number, body);

	locals[process - sim_processes].kind = kind;
	return process;
}

/* What a process does when an error has been caught. */
static void
clear_up(void)
{
	SimTell("has met an error");
	FlushErrorState();
	SIM_CHECK(sim_me->spinlock == NULL, "an error is raised with a spinlock held");
	HOLD_INTERRUPTS();
	LWLockReleaseAll();
	ConditionVariableCancelSleep();
	locals[SimMe()].awaits_flush = false;
	SimAioError();
	SimBuffersAbort();
	SimOwnerRelease(CurrentResourceOwner, false);
	CurrentResourceOwner = SimOwnerMake();
	RESUME_INTERRUPTS();
}

static void
process_begins(void)
{
	CurrentResourceOwner = SimOwnerMake();
}

static void
process_ends(void)
{
	HOLD_INTERRUPTS();
	SimAioShutdown();
	RESUME_INTERRUPTS();
	SIM_CHECK(!AioPreparedToSleep(), "a process ends that is about to sleep");
	SimOwnerRelease(CurrentResourceOwner, true);
	CurrentResourceOwner = NULL;
}

/* ------------------------------------------------------------------------
 * WAL
 * ------------------------------------------------------------------------
 */

bool
SimIsUnlogged(int page)
{
	return unlogged && page >= BLOCKS_MAX;
}

uint32
SimBodyOf(XLogRecPtr lsn)
{
	return lsn == 0 ? 0 : record_body[lsn];
}

/* May a page with this LSN be written? */
bool
SimMayWrite(XLogRecPtr lsn)
{
	return lsn <= sim_flushed && (!in_recovery || finishing || !sim_notes || lsn <= sim_noted);
}

/* The last record of each page, up to there. */
static void
find_last(XLogRecPtr upto, XLogRecPtr *last)
{
	memset(last, 0, PAGES_MAX * sizeof(XLogRecPtr));
	for (XLogRecPtr lsn = 1; lsn <= upto; lsn++)
	{
		if (record_page[lsn] >= 0)
			last[record_page[lsn]] = lsn;
	}
}

/* A record of a page, or of none. */
static XLogRecPtr
insert(int page)
{
	SimPoint();
	SIM_CHECK(sim_inserted + 1 < RECORDS_MAX, "there is too much WAL");
	record_page[sim_inserted + 1] = page;
	record_body[sim_inserted + 1] = ++nbodies;
	return ++sim_inserted;
}

bool
RecoveryInProgress(void)
{
	return in_recovery;
}

bool
XLogInsertAllowed(void)
{
	return !in_recovery || locals[SimMe()].inserts;
}

XLogRecPtr
GetXLogInsertRecPtr(void)
{
	SimPoint();
	return sim_inserted;
}

XLogRecPtr
GetCurrentReplayRecPtr(TimeLineID *tli)
{
	SimPoint();
	return replay_end;
}

bool
XLogNeedsFlush(XLogRecPtr upto)
{
	SimPoint();
	if (!in_recovery)
		return upto > sim_flushed;
	if (!sim_notes)
		return false;
	return upto > sim_noted || control_lock.owner != NULL;
}

/* UpdateMinRecoveryPoint() */
static void
note(XLogRecPtr upto)
{
	if (!sim_notes || upto <= sim_noted)
		return;
	LWLockAcquire(&control_lock, LW_EXCLUSIVE);
	if (upto > sim_noted)
	{
		XLogRecPtr	end = replay_end;

		SIM_CHECK(upto <= end, "it is noted that WAL is needed which nobody has replayed");
		pg_usleep(SimUpTo(&sim_world, sim_disk_time));
		sim_noted = end;
		SimTell("notes %" PRIu64, sim_noted);
	}
	LWLockRelease(&control_lock);
}

/* Those who wait for it, by a condition variable or by their latch. */
static void
tell_of_flush(void)
{
	ConditionVariableBroadcast(&flushed_cv);
	for (int i = 0; i < sim_nprocesses; i++)
	{
		if (locals[i].awaits_flush)
			SetLatch(&sim_processes[i].latch);
	}
}

void
XLogFlush(XLogRecPtr upto)
{
	SimPoint();
	if (!XLogInsertAllowed())
	{
		note(upto);
		return;
	}
	SIM_CHECK(upto <= sim_inserted, "WAL is flushed that is not inserted");
	START_CRIT_SECTION();
	while (sim_flushed < upto)
	{
		XLogRecPtr	end;

		if (!LWLockAcquireOrWait(WALWriteLock, LW_EXCLUSIVE))
			continue;
		end = sim_inserted;
		if (sim_flushed < upto)
			pg_usleep(SimUpTo(&sim_world, 2 * sim_disk_time));
		sim_flushed = Max(sim_flushed, end);
		tell_of_flush();
		SimTell("WAL is flushed up to %" PRIu64, sim_flushed);
		LWLockRelease(WALWriteLock);
	}
	END_CRIT_SECTION();
}

void
AioRequestWalFlush(XLogRecPtr upto)
{
	SimPoint();
	wal_wanted = Max(wal_wanted, upto);
	SetLatch(&wal_writer_process->latch);
}

void
XLogSetAsyncXactLSN(XLogRecPtr upto)
{
	SimPoint();
	wal_wanted = Max(wal_wanted, upto);
	if (SimChance(&sim_world, 500))
		SetLatch(&wal_writer_process->latch);
}

void
AioRequestRecoveryPoint(void)
{
	SimPoint();
	if (note_wanted)
		return;
	note_wanted = true;
	SetLatch(&background_process->latch);
}

/*
 * The WAL writer flushes, and who waits for it sleeps: on his latch, or, as a
 * walsender does, with a condition variable prepared, but on his latch, too.
 */
static void
await_flush(XLogRecPtr upto)
{
	bool		by_cv = SimChance(&sim_world, 500);

	AioRequestWalFlush(upto);
	locals[SimMe()].awaits_flush = !by_cv;
	for (;;)
	{
		MyLatch->is_set = false;
		if (by_cv)
			ConditionVariablePrepareToSleep(&flushed_cv);
		SimPoint();
		if (sim_flushed >= upto)
			break;
		SimSleep(NEVER);
	}
	ConditionVariableCancelSleep();
	locals[SimMe()].awaits_flush = false;
}

static void
wait_for_flush(AioFuture *future)
{
	XLogFlush(((AioWalFlushFuture *) future)->upto);
}

void
AioStartWalFlush(AioWalFlushFuture *flush, XLogRecPtr upto)
{
	static const AioFutureOps ops = {.wait = wait_for_flush};

	flush->future.ops = &ops;
	flush->upto = upto;
}

/* ------------------------------------------------------------------------
 * What else the server's files need
 * ------------------------------------------------------------------------
 */

bool
AioIsQuick(AioFutureKind kind, Oid tablespace)
{
	return quick;
}

/* Sometimes it is noticed later that a write is complete. */
bool
AioRandomDelay(void)
{
	return SimChance(&sim_world, 50);
}

/* there are no tasks */
bool
AioAwait(AioFuture *future)
{
	SimFail(__FILE__, __LINE__, "a task is suspended, and there is none");
}

bool
AioTaskAwaits(const SMgrRelationData *smgr, ForkNumber forknum)
{
	return false;
}

void
AioWriteFutureInit(AioIOFuture *future, const PgAioWaitRef *wref, int io_context)
{
	SIM_CHECK(pgaio_wref_valid(unconstify(PgAioWaitRef *, wref)), "somebody waits for no write");
}

RelPathStr
relpathbackend(RelFileLocator locator, int backend, ForkNumber forknum)
{
	RelPathStr	path;

	snprintf(path.str, sizeof(path.str), "%u", locator.relNumber);
	return path;
}

void
SetConfigOption(const char *name, const char *value, int context, int source)
{
	aio_write_buffers = atoi(value);
}

void
AioShareState(const AioSharedState *part)
{
	char	   *memory = bounce_memory[nshared++ % 2];

	SIM_CHECK(part->size() <= sizeof(bounce_memory[0]), "shared memory is of another size");
	*part->address = memory;
	part->initialize();
}

/* ------------------------------------------------------------------------
 * Backends
 * ------------------------------------------------------------------------
 */

/* Change a locked page; returns the record's LSN. */
static XLogRecPtr
change(Buffer buffer, XLogRecPtr replay)
{
	BufferDesc *buf = GetBufferDescriptor(buffer - 1);
	SimPage    *page = SimBufferPage(buffer);
	bool		dirty_first = SimChance(&sim_world, 500);
	XLogRecPtr	lsn;

	START_CRIT_SECTION();
	buf->changing++;
	if (dirty_first)
		SimMarkDirty(buffer);
	page->body = PG_UINT32_MAX;
	SimPoint();
	if (!dirty_first)
		SimMarkDirty(buffer);
	if (SimIsUnlogged(page->number))
	{
		lsn = ++fake_lsn;
		page->body = lsn;
	}
	else
	{
		lsn = replay != 0 ? replay : insert(page->number);
		SimPoint();
		page->body = record_body[lsn];
	}
	page->lsn = lsn;
	sim_newest[page->number] = *page;
	buf->changing--;
	END_CRIT_SECTION();
	SimTell("changes page %u, %" PRIu64, page->number, lsn);
	return lsn;
}

static int
any_page(void)
{
	int			file = SimUpTo(&sim_world, sim_nfiles - 1);

	return file * BLOCKS_MAX + SimUpTo(&sim_world, sim_nblocks - 1);
}

/* What it does with a page that it has pinned; returns the LSN of a change. */
static XLogRecPtr
use(Buffer buffer)
{
	XLogRecPtr	lsn = 0;

	SimLockBuffer(buffer, LW_SHARED);
	if (SimChance(&sim_world, 150))
		SimSetHint(buffer);
	SimUnlockBuffer(buffer);
	if (!in_recovery && SimChance(&sim_world, chance_to_change))
	{
		SimLockBuffer(buffer, LW_EXCLUSIVE);
		lsn = change(buffer, 0);
		SimUnlockBuffer(buffer);
	}
	return lsn;
}

static XLogRecPtr
use_and_release(Buffer buffer)
{
	XLogRecPtr	lsn = use(buffer);

	SimReleaseBuffer(buffer);
	return lsn;
}

/* A few pages, whose reads are submitted together. */
static void
read_batch(BufferAccessStrategy strategy)
{
	ReadBuffersOperation operations[BATCH_MAX] = {0};
	int			page = any_page();
	int			n = 1 + SimUpTo(&sim_world, Min(BATCH_MAX, NBuffers / 6) - 1);
	bool		wait[BATCH_MAX];

	n = Min(n, sim_nblocks - page % BLOCKS_MAX);
	pgaio_enter_batchmode();
	for (int i = 0; i < n; i++)
		wait[i] = SimStartRead(page + i, strategy, &operations[i]);
	pgaio_exit_batchmode();
	for (int i = 0; i < n; i++)
	{
		if (wait[i])
			SimWaitRead(&operations[i]);
	}
	for (int i = 0; i < n; i++)
		use_and_release(operations[i].buffer);
}

static void
end_cleanup(void)
{
	cleanup_taken = false;
	SimWake(&cleanup_taken);
}

/* A session computes, for long, and does not look at its I/O. */
static void
compute(void)
{
	while (cleanup_taken)
		SimWait(&cleanup_taken, NEVER, false);
}

/* As VACUUM does, which has a lock that keeps others from it. */
static void
clean_up_page(void)
{
	Buffer		buffer;

	if (cleanup_taken)
		return;
	cleanup_taken = true;
	PG_TRY();
	{
		buffer = SimReadBuffer(any_page(), NULL);
		if (SimLockForCleanup(buffer))
		{
			SimTell("has page %d alone", SimPageNumber(&GetBufferDescriptor(buffer - 1)->tag));
			if (!in_recovery && SimChance(&sim_world, 500))
				change(buffer, 0);
			SimUnlockBuffer(buffer);
		}
		SimReleaseBuffer(buffer);
	}
	PG_CATCH();
	{
		end_cleanup();
		PG_RE_THROW();
	}
	PG_END_TRY();
	end_cleanup();
}

/* A change of two pages, which are locked from left to right. */
static void
change_two(BufferAccessStrategy ring)
{
	int			page = any_page();
	Buffer		buffers[2];

	if (in_recovery || page % BLOCKS_MAX + 1 >= sim_nblocks)
		return;
	for (int i = 0; i < 2; i++)
		buffers[i] = SimReadBuffer(page + i, ring);
	for (int i = 0; i < 2; i++)
		SimLockBuffer(buffers[i], LW_EXCLUSIVE);
	for (int i = 0; i < 2; i++)
		change(buffers[i], 0);
	for (int i = 0; i < 2; i++)
	{
		SimUnlockBuffer(buffers[i]);
		SimReleaseBuffer(buffers[i]);
	}
}

static void
transaction(void)
{
	int			kind = SimUpTo(&sim_world, 99);
	BufferAccessStrategy ring = NULL;
	XLogRecPtr	lsn = 0;

	if (SimChance(&sim_world, 300))
		ring = SimMakeRing(1 + SimUpTo(&sim_world, NBuffers / 4), SimChance(&sim_world, 500));
	if (kind < 10)
		clean_up_page();
	else if (kind < 20)
		SimFlushRelation(SimUpTo(&sim_world, sim_nfiles - 1));
	else if (kind < 35)
	{
		for (int i = SimUpTo(&sim_world, 4); i >= 0; i--)
			read_batch(ring);
	}
	else if (kind < 50)
	{
		for (int i = SimUpTo(&sim_world, 9); i >= 0; i--)
			change_two(ring);
	}
	else
	{
		bool		in_order = SimChance(&sim_world, 400);
		int			page = any_page();

		for (int i = SimUpTo(&sim_world, 15); i >= 0; i--)
		{
			if (!in_order || page >= sim_nfiles * BLOCKS_MAX || page % BLOCKS_MAX >= sim_nblocks)
				page = any_page();
			lsn = Max(lsn, use_and_release(SimReadBuffer(page, ring)));
			page++;
		}
	}
	if (SimChance(&sim_world, 150))
		compute();
	if (lsn == 0 || lsn >= FAKE_LSN)
		return;
	if (SimChance(&sim_world, 400))
		XLogFlush(lsn);
	else if (SimChance(&sim_world, 500))
		await_flush(lsn);
}

/* A backend may wait for the end of recovery. */
static void
backend(void)
{
	process_begins();
	while (in_recovery && !(standby && replayed >= consistent_at))
		SimWait(&in_recovery, NEVER, false);
	for (int i = SimUpTo(&sim_world, most_transactions - 1); i >= 0; i--)
	{
		PG_TRY();
		{
			transaction();
			SimOwnerRelease(CurrentResourceOwner, true);
			CurrentResourceOwner = SimOwnerMake();
		}
		PG_CATCH();
		{
			clear_up();
		}
		PG_END_TRY();
		if (SimChance(&sim_world, 400))
		{
			MyLatch->is_set = false;
			SimSleep(SimUpTo(&sim_world, thinking));
		}
	}
	process_ends();
	nworking--;
}

/* ------------------------------------------------------------------------
 * Other processes
 * ------------------------------------------------------------------------
 */

static void
check_checkpoint(XLogRecPtr redo)
{
	XLogRecPtr	last[PAGES_MAX];

	find_last(redo, last);
	for (int page = 0; page < PAGES_MAX; page++)
	{
		if (SimIsUnlogged(page) || SimIsDurable(page, last[page]))
			continue;
		SimTell("page %d, %" PRIu64, page, last[page]);
		SimFail(__FILE__, __LINE__, "a checkpoint is complete, and a page is not durable");
	}
}

static void
checkpoint(bool all)
{
	bool		restartpoint = !XLogInsertAllowed();
	XLogRecPtr	redo;

	SimPoint();
	redo = restartpoint ? replayed : sim_inserted;
	SimTell("begins a checkpoint at %" PRIu64, redo);
	SimBufferSync(all);
	SimProcessSyncRequests();
	if (!restartpoint)
		XLogFlush(insert(-1));
	check_checkpoint(redo);
	SimPoint();
	redo_at = Max(redo_at, redo);
	SimTell("has completed the checkpoint at %" PRIu64, redo);
}

/* Does any other but I/O workers run? */
static bool
others_run(void)
{
	for (int i = 0; i < sim_nprocesses; i++)
	{
		if (&sim_processes[i] != sim_me && !sim_processes[i].ended && locals[i].kind != IO_WORKER)
			return true;
	}
	return false;
}

/* Checkpoints, until the server is to end and the others have. */
static void
make_checkpoints(void)
{
	for (;;)
	{
		MyLatch->is_set = false;
		if (stopping && !others_run())
			break;
		if (checkpoint_wanted)
		{
			locals[SimMe()].inserts = finishing;
			checkpoint(finishing);
			locals[SimMe()].inserts = false;
			checkpoint_wanted = false;
			SimWake(&checkpoint_wanted);
		}
		else if (!finishing && !stopping && SimChance(&sim_world, 500))
			checkpoint(false);
		SimAbsorbSyncRequests();
		if (!checkpoint_wanted)
			SimSleep(stopping ? sim_disk_time : SimUpTo(&sim_world, 20 * sim_disk_time));
	}
	checkpoint(true);
}

/* One that fails is tried again. */
static void
checkpointer(void)
{
	volatile bool ended = false;

	process_begins();
	while (!ended)
	{
		PG_TRY();
		{
			make_checkpoints();
			ended = true;
		}
		PG_CATCH();
		{
			clear_up();
			locals[SimMe()].inserts = false;
			pg_usleep(sim_disk_time);
		}
		PG_END_TRY();
	}
	process_ends();
}

static void
background_writer(void)
{
	process_begins();
	while (!stopping)
	{
		PG_TRY();
		{
			while (!stopping)
			{
				MyLatch->is_set = false;
				if (note_wanted)
				{
					if (in_recovery && writer_notes)
						XLogFlush(replayed);
					note_wanted = false;
				}
				SimBackgroundPass();
				SimSleep(SimUpTo(&sim_world, 10 * sim_disk_time));
			}
		}
		PG_CATCH();
		{
			clear_up();
			pg_usleep(sim_disk_time);
		}
		PG_END_TRY();
	}
	process_ends();
}

static void
wal_writer(void)
{
	process_begins();
	while (!stopping)
	{
		MyLatch->is_set = false;
		if (!in_recovery && Min(wal_wanted, sim_inserted) > sim_flushed)
			XLogFlush(Min(wal_wanted, sim_inserted));
		SimSleep(SimUpTo(&sim_world, 20 * sim_disk_time));
	}
	process_ends();
}

/* Replay a record. */
static void
replay(XLogRecPtr lsn)
{
	int			page = record_page[lsn];

	replay_end = lsn;
	SimPoint();
	if (page >= 0)
	{
		Buffer		buffer = SimReadBuffer(page, NULL);

		SimLockBuffer(buffer, LW_EXCLUSIVE);
		if (SimBufferPage(buffer)->lsn < lsn)
			change(buffer, lsn);
		SimUnlockBuffer(buffer);
		SimReleaseBuffer(buffer);
	}
	SimPoint();
	replayed = lsn;
	if (replayed == consistent_at)
		SimWake(&in_recovery);
}

/* Recovery; as a standby, of what a primary sends, too. */
static void
startup(void)
{
	process_begins();
	InRecovery = true;
	PG_TRY();
	{
		int			more = standby ? SimUpTo(&sim_world, 10 * most_transactions) : 0;

		while (replayed < sim_inserted || more > 0)
		{
			if (replayed == sim_inserted)
			{
				int			page = any_page();

				more--;
				sim_flushed = insert(SimIsUnlogged(page) ? -1 : page);
			}
			replay(replayed + 1);
			if (SimChance(&sim_world, 50))
				SimSleep(SimUpTo(&sim_world, 5 * sim_disk_time));
		}
	}
	PG_CATCH();
	{
		/* it is tried again in the next life */
		SimTell("recovery has failed");
		FlushErrorState();
		SimCrash();
	}
	PG_END_TRY();
	InRecovery = false;
	finishing = true;
	checkpoint_wanted = true;
	SetLatch(&checkpointer_process->latch);
	AioFinishWritesToSleep();
	while (checkpoint_wanted)
		SimWait(&checkpoint_wanted, NEVER, false);
	in_recovery = false;
	finishing = false;
	SimWake(&in_recovery);
	SimTell("recovery has ended");
	process_ends();
	nworking--;
}

/* ------------------------------------------------------------------------
 * Lives
 * ------------------------------------------------------------------------
 */

static bool
work_is_done(void)
{
	return nworking == 0;
}

static bool
checkpointer_has_ended(void)
{
	return checkpointer_process->ended;
}

static void
choose_parameters(void)
{
	static const int depths[] = {0, 1, 2, 4, 8, 16, 32};

	io_method = SimUpTo(&sim_world, 9) == 0 ? IOMETHOD_SYNC :
		SimChance(&sim_world, 500) ? IOMETHOD_WORKER : IOMETHOD_IO_URING;
	io_direct_flags = SimChance(&sim_world, 850) ? IO_DIRECT_DATA : 0;
	io_combine_limit = 1 + SimUpTo(&sim_world, 5);
	aio_write_behind = depths[SimUpTo(&sim_world, lengthof(depths) - 1)];
	aio_write_buffers = SimChance(&sim_world, 300) ? SimUpTo(&sim_world, 3) : SimUpTo(&sim_world, BUFFERS_MAX);
	quick = SimChance(&sim_world, 150);
	sim_warns = SimChance(&sim_world, 300);
	sim_switches = SimChance(&sim_world, 500) ? 30 + SimUpTo(&sim_world, 300) : 5 + SimUpTo(&sim_world, 30);
	sim_by_priority = SimChance(&sim_world, 400);
	sim_disk_time = SimChance(&sim_world, 500) ? 3000 : 1 + SimUpTo(&sim_world, 300);
	sim_data_faults = SimChance(&sim_world, 300) ? SimUpTo(&sim_world, 150) : 0;
	sim_sync_room = SimChance(&sim_world, 300) ? SimUpTo(&sim_world, 2) : FILES_MAX * SEGMENTS_MAX;
	cancels = SimChance(&sim_world, 200) ? SimUpTo(&sim_world, 30) : 0;
	chance_to_change = SimChance(&sim_world, 500) ? 600 : SimUpTo(&sim_world, 999);
	thinking = SimUpTo(&sim_world, 20 * sim_disk_time);
}

static void
make_processes(void)
{
	int			nbackends = 1 + SimUpTo(&sim_world, most_backends - 1);

	checkpointer_process = make_process("checkpointer", 0, checkpointer, CHECKPOINTER);
	background_process = make_process("bg writer", 0, background_writer, BACKGROUND_WRITER);
	wal_writer_process = make_process("WAL writer", 0, wal_writer, WAL_WRITER);
	for (int i = 1; i <= nbackends; i++)
		make_process("backend", i, backend, BACKEND);
	nworking = nbackends;
	if (in_recovery)
	{
		make_process("startup", 0, startup, STARTUP);
		nworking++;
	}
	for (int i = 1; io_method == IOMETHOD_WORKER && i <= 2; i++)
		make_process("worker", i, SimIOWorker, IO_WORKER);
}

/* Those of a life that has been interrupted. */
static void
free_owners(void)
{
	for (int i = 0; i < sim_nprocesses; i++)
	{
		free(locals[i].owner);
		locals[i].owner = NULL;
	}
	CurrentResourceOwner = NULL;
}

/* Returns whether it ended in order. */
static bool
live(bool after_crash)
{
	SimEnd		end;

	choose_parameters();
	SimWorldReset();
	SimBuffersReset(BUFFERS_MIN + SimUpTo(&sim_world, most_buffers - BUFFERS_MIN));
	SimAioReset(2 + SimUpTo(&sim_world, HANDLES_MAX - 2));
	AioWriteInitialize();
	WALWriteLock->owner = NULL;
	memset(&control_lock, 0, sizeof(control_lock));
	memset(&flushed_cv, 0, sizeof(flushed_cv));
	standby = SimChance(&sim_world, 200);
	in_recovery = after_crash || standby;
	sim_notes = standby;

	/* upstream's does not if it began before the end of the standby's WAL */
	writer_notes = SimChance(&sim_world, 700);
	finishing = stopping = checkpoint_wanted = note_wanted = cleanup_taken = false;
	replayed = replay_end = redo_at;
	consistent_at = sim_inserted;
	sim_noted = Max(sim_noted, redo_at);
	wal_wanted = 0;
	make_processes();
	sim_crash_at = SimChance(&sim_world, 500) ? sim_steps + SimUpTo(&sim_world, 12000) : NEVER;
	SimTell("a life begins: %d buffers, %d handles, method %d, direct %d, depth %d%s%s", NBuffers, io_max_concurrency,
			io_method, io_direct_flags, aio_write_behind, in_recovery ? ", in recovery" : "", standby ? ", standby" : "");
	end = SimRun(work_is_done);
	if (end == SIM_FINISHED)
	{
		stopping = true;
		for (int i = 0; i < sim_nprocesses; i++)
			SetLatch(&sim_processes[i].latch);
		end = SimRun(checkpointer_has_ended);
	}
	free_owners();
	if (end == SIM_CRASHED)
		return false;
	SimBuffersCheckIdle(true);
	SimAioCheckIdle();
	return true;
}

/* What redo makes of what is on disk, if all WAL up to there is left. */
static void
check_redo(XLogRecPtr end)
{
	XLogRecPtr	last[PAGES_MAX];

	find_last(end, last);
	for (int page = 0; page < PAGES_MAX; page++)
	{
		const SimPage *disk = SimOnDisk(page);

		if (SimIsUnlogged(page))
			continue;
		SIM_CHECK(disk->lsn <= end, "a page is on disk whose WAL is lost");
		SIM_CHECK(disk->body == SimBodyOf(disk->lsn), "a page is on disk that nobody has written");
		if (last[page] > redo_at || disk->lsn == last[page])
			continue;
		SimTell("page %d is %" PRIu64 ", and not %" PRIu64, page, disk->lsn, last[page]);
		SimFail(__FILE__, __LINE__, "redo does not make a page what has been committed");
	}
}

/* After a life: what is left, of WAL and pages. */
static void
begin_again(bool in_order)
{
	bool		power_lost = SimChance(&sim_world, 600);

	SimWorldReset();
	SimTell("%s", power_lost ? "power is lost" : "processes are gone");
	SimDataCrash(power_lost);
	SimDataSettle();
	sim_inserted = in_order ? sim_inserted : sim_flushed + SimUpTo(&sim_world, sim_inserted - sim_flushed);
	sim_flushed = sim_inserted;
	check_redo(sim_inserted);
	SimSyncAll();
	for (int page = 0; page < PAGES_MAX; page++)
	{
		SimPage		empty = {.number = page};

		empty.checksum = SimChecksum(&empty);
		if (SimIsUnlogged(page) && !in_order)
			SimMakeDurable(page, &empty);
		sim_newest[page] = *SimOnDisk(page);
	}
}

/* All of one seed. */
static void
simulate(uint64 seed)
{
	bool		in_order = true;
	int			nlives;

	pg_prng_seed(&sim_world, seed);
	pg_prng_uint64(&sim_world);
	sim_now = 1;
	sim_steps = 0;
	sim_inserted = sim_flushed = sim_noted = redo_at = 0;
	fake_lsn = FAKE_LSN;
	nbodies = 0;
	nshared = 0;
	sim_nfiles = 1 + SimUpTo(&sim_world, FILES_MAX - 1);
	sim_nblocks = Min(most_pages, BLOCKS_MAX / 2 + SimUpTo(&sim_world, BLOCKS_MAX / 2));
	unlogged = SimChance(&sim_world, 300);
	SimDataReset();
	for (int page = 0; page < PAGES_MAX; page++)
		sim_newest[page] = *SimOnDisk(page);
	nlives = 1 + SimUpTo(&sim_world, most_lives - 1);
	for (int i = 0; i < nlives; i++)
	{
		in_order = live(!in_order);
		begin_again(in_order);
	}
}

int
main(int argc, char **argv)
{
	static const SimBound bounds[] = {
		{"lives", &most_lives},
		{"backends", &most_backends},
		{"transactions", &most_transactions},
		{"buffers", &most_buffers},
		{"pages", &most_pages},
	};

	return SimMain(argc, argv, bounds, lengthof(bounds), simulate);
}
