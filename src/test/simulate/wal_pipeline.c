/*-------------------------------------------------------------------------
 *
 * wal_pipeline.c
 *	  Simulates the pipeline of WAL: processes that insert and commit, on a disk
 *	  that fails and loses power.
 *
 * A seed stands for a few lives of a server.  In each, backends insert records
 * and commit them, wait for that or not, and switch segments; the WAL writer
 * writes and syncs; the checkpointer uses old segments again; parameters
 * change; writes and syncs are late, cut short, and fail.  A life ends in
 * order, or at any step: by a crash of processes, a PANIC, the end of the
 * postmaster, or a loss of power.  The next one waits for what the kernel has
 * not done yet, finds out where WAL ends, and erases what is behind.
 *
 * The code that is simulated is the server's: wal.c, wal_file.c and wal_end.c.
 * Invariants: a commit that was acknowledged is there after each crash, and
 * nothing that was lost in an earlier one; at the end nobody waits, and all is
 * flushed and told of; and those of wal_server.c and wal_world.c.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "aio/wal.h"
#include "miscadmin.h"
#include "postmaster/walwriter.h"
#include "replication/walsender.h"
#include "wal_port.h"
#include "wal_world.h"

/* bounds of what is generated, lower ones for a smaller case */
static int	most_lives = 3;
static int	most_backends = 6;
static int	most_transactions = 6;
static int	most_records = 4;

static int	record_size;
static uint64 writer_delay;
static int	nworking;			/* processes that the end of a life waits for */
static bool stopping;
static XLogRecPtr acknowledged;

/* ------------------------------------------------------------------------
 * Processes
 * ------------------------------------------------------------------------
 */

/* A client hears that its transaction is on disk. */
static void
acknowledge(XLogRecPtr upto)
{
	SIM_CHECK(sim_flush_result >= upto, "a commit is acknowledged that is not flushed");
	acknowledged = Max(acknowledged, upto);
}

static XLogRecPtr
insert_records(void)
{
	XLogRecPtr	end = 0;

	for (int i = SimUpTo(&sim_world, most_records - 1); i >= 0; i--)
		end = SimInsert(8 + SimUpTo(&sim_world, record_size));
	return end;
}

static void
commit(XLogRecPtr end)
{
	XLogFlush(end);
	acknowledge(end);
}

/* The WAL writer is asked, and nobody else helps. */
static void
await_flush(XLogRecPtr end)
{
	AioRequestWalFlush(end);
	while (sim_flush_result < end)
	{
		MyLatch->is_set = false;
		SimLatchWait(sim_disk_time);
	}
	acknowledge(end);
}

/* What there is is flushed, if more is asked for. */
static void
flush_too_much(void)
{
	XLogRecPtr	end = SimInsertEnd();

	START_CRIT_SECTION();
	AioFlushWal(end + SimUpTo(&sim_world, 500), 1);
	END_CRIT_SECTION();
	WalSndWakeupProcessRequests(true, true);
	acknowledge(end);
}

static void
transaction(void)
{
	XLogRecPtr	end = insert_records();
	int			kind = SimUpTo(&sim_world, 99);

	if (kind < 50)
		commit(end);
	else if (kind < 65)
		XLogSetAsyncXactLSN(end);
	else if (kind < 75)
		await_flush(end);
	else if (kind < 85)
	{
		/* a pipelined commit: the next one has begun before its reply */
		XLogSetAsyncXactLSN(end);
		insert_records();
		commit(end);
	}
	else if (kind < 92)
		commit(SimSwitchSegment());
	else if (kind < 94)
		flush_too_much();
}

static void
backend(void)
{
	for (int i = SimUpTo(&sim_world, most_transactions - 1); i >= 0; i--)
	{
		if (SimChance(&sim_world, 300))
		{
			MyLatch->is_set = false;
			SimLatchWait(SimUpTo(&sim_world, 3 * sim_disk_time));
		}
		SimReloadConfiguration();
		transaction();
	}
	nworking--;
}

static void
wal_writer(void)
{
	bool		last;

	do
	{
		MyLatch->is_set = false;
		last = stopping;
		SimReloadConfiguration();
		AioWalWriterCycle();
		if (!last)
			SimLatchWait(writer_delay);
	} while (!last);
}

static int
any_method(void)
{
	return SimUpTo(&sim_world, 1) == 0 ? WAL_SYNC_METHOD_FDATASYNC :
		SimUpTo(&sim_world, WAL_SYNC_METHOD_OPEN_DSYNC);
}

static void
checkpointer(void)
{
	for (int i = SimUpTo(&sim_world, 3); i > 0; i--)
	{
		SimLatchWait(SimUpTo(&sim_world, 10 * sim_disk_time));
		if (SimChance(&sim_world, 300))
			sim_method = any_method();
		if (SimChance(&sim_world, 100))
			sim_write_ahead = SimUpTo(&sim_world, 1);
		SimReloadConfiguration();
		SimCheckpoint();
	}
	nworking--;
}

/* The last one: when it has ended, the WAL writer does, too. */
static void
shutdown_process(void)
{
	commit(SimInsertEnd());
	stopping = true;
	AioWalWakeWriter();
}

static void
postmaster_killer(void)
{
	pg_usleep(SimUpTo(&sim_world, 40 * sim_disk_time));
	sim_postmaster_dead = true;
	SimTell("the postmaster dies");
}

/* ------------------------------------------------------------------------
 * Lives
 * ------------------------------------------------------------------------
 */

static bool
none_is_left(void)
{
	for (int i = 0; i < sim_nprocesses; i++)
	{
		if (!sim_processes[i].ended)
			return false;
	}
	return true;
}

static bool
work_is_done(void)
{
	return nworking == 0 || none_is_left();
}

/* I/O workers stay. */
static bool
writer_has_ended(void)
{
	return sim_processes[0].ended;
}

static void
choose_parameters(void)
{
	sim_method = any_method();
	sim_syncs = 1 + SimUpTo(&sim_world, SimChance(&sim_world, 500) ? 0 : AIO_WAL_SYNCS_LIMIT - 1);
	sim_write_ahead = SimChance(&sim_world, 900);
	sim_with_workers = SimChance(&sim_world, 400);
	sim_switches = SimChance(&sim_world, 500) ? 30 + SimUpTo(&sim_world, 300) : 5 + SimUpTo(&sim_world, 30);
	sim_by_priority = SimChance(&sim_world, 400);
	sim_disk_time = SimChance(&sim_world, 500) ? 3000 : 1 + SimUpTo(&sim_world, 300);
	sim_faults = SimChance(&sim_world, 200) ? SimUpTo(&sim_world, 60) : 0;
	sim_sync_faults = SimChance(&sim_world, 100) ? SimUpTo(&sim_world, 300) : sim_faults;
	sim_shorts = SimChance(&sim_world, 300) ? SimUpTo(&sim_world, 200) : 0;
	CommitDelay = SimChance(&sim_world, 100) ? 20 : 0;
	WalWriterFlushAfter = SimUpTo(&sim_world, 20);
	max_wal_senders = SimUpTo(&sim_world, 1);
	record_size = SimChance(&sim_world, 300) ? wal_segment_size : 100;
	writer_delay = SimChance(&sim_world, 400) ? NEVER : 1 + SimUpTo(&sim_world, 4 * sim_disk_time);
}

static void
make_processes(void)
{
	int			nbackends = 1 + SimUpTo(&sim_world, most_backends - 1);

	SimProcessMake("WAL writer", 0, wal_writer);
	SimProcessMake("checkpointer", 0, checkpointer);
	for (int i = 1; i <= nbackends; i++)
		SimProcessMake("backend", i, backend);
	nworking = 1 + nbackends;
	for (int i = 1; sim_with_workers && i <= 2; i++)
		SimProcessMake("worker", i, SimWorker);
	if (SimChance(&sim_world, 30))
		SimProcessMake("killer", 0, postmaster_killer);
}

/* Recovery ends; returns whether that comes to its end. */
static bool
erase(void)
{
	MemoryContext context;
	bool		done;

	SimProcessMake("startup", 0, SimEraseWal);
	sim_crash_at = SimChance(&sim_world, 100) ? sim_steps + SimUpTo(&sim_world, 100) : NEVER;
	done = SimRun(none_is_left) == SIM_FINISHED && !sim_panicked;
	context = CurrentMemoryContext;
	CurrentMemoryContext = NULL;
	if (context != NULL)
		SimContextDelete(context);
	SimWorldReset();
	return done;
}

/* Returns whether it ended in order. */
static bool
live(XLogRecPtr end, bool after_crash)
{
	choose_parameters();
	SimWorldReset();
	SimServerStart(end);
	if (after_crash && !erase())
		return false;
	make_processes();
	stopping = false;
	sim_crash_at = SimChance(&sim_world, 500) ? sim_steps + SimUpTo(&sim_world, 8000) : NEVER;
	SimTell("a life begins at %" PRIu64, end);
	if (SimRun(work_is_done) == SIM_CRASHED || sim_postmaster_dead || sim_panicked)
		return false;
	SimProcessMake("shutdown", 0, shutdown_process);
	if (SimRun(writer_has_ended) == SIM_CRASHED || sim_postmaster_dead || sim_panicked)
		return false;
	SimCheckFinished();
	return true;
}

/* All of one seed. */
static void
simulate(uint64 seed)
{
	static const int sizes[] = {0, 0, 56, 28, 112};
	XLogRecPtr	end;
	bool		in_order = true;
	int			nlives;

	pg_prng_seed(&sim_world, seed);
	pg_prng_uint64(&sim_world);
	sim_now = 1;
	sim_steps = 0;
	acknowledged = 0;
	SimDiskReset();
	wal_segment_size = 256 << SimUpTo(&sim_world, 2);
	end = (2 + SimUpTo(&sim_world, 3)) * wal_segment_size + SimUpTo(&sim_world, wal_segment_size);

	/* records of one size, which begin where others did */
	sim_one_size = sizes[SimUpTo(&sim_world, lengthof(sizes) - 1)];
	if (sim_one_size > 0 || end % XLOG_BLCKSZ < 8)
		end -= end % XLOG_BLCKSZ;
	SimServerReset(end);
	nlives = 1 + SimUpTo(&sim_world, most_lives - 1);
	for (int i = 0; i < nlives; i++)
	{
		in_order = live(end, !in_order);
		SimWorldReset();
		SimDiskCrash(SimChance(&sim_world, 700));
		SimDiskSettle();
		SimDiskRecover();
		SimCheckKept(true);
		end = SimRecover();
		SIM_CHECK(end >= acknowledged, "a commit that was acknowledged is lost");
		SimTell("WAL ends at %" PRIu64 ", acknowledged is %" PRIu64, end, acknowledged);
	}
}

int
main(int argc, char **argv)
{
	static const SimBound bounds[] = {
		{"lives", &most_lives},
		{"backends", &most_backends},
		{"transactions", &most_transactions},
		{"records", &most_records},
	};

	return SimMain(argc, argv, bounds, lengthof(bounds), simulate);
}
