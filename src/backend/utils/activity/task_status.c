/*-------------------------------------------------------------------------
 *
 * task_status.c
 *	  The status of suspended tasks in shared memory: what they await.
 *
 * Each process has a row of slots in shared memory, one for each of its first
 * tasks.  Only it writes there, without a lock: a change count is odd while it
 * does, as upstream does it for pg_stat_activity.  Tasks that have no slot are
 * not shown.
 *
 * Tests: src/test/aio/stats/t/001_statistics.pl.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "aio/shared_state.h"
#include "aio/task_status.h"
#include "miscadmin.h"
#include "storage/aio_internal.h"
#include "storage/aio_subsys.h"
#include "storage/barrier.h"
#include "storage/proc.h"

typedef struct StatusSlot
{
	uint32		changes;		/* odd while the status is being changed */
	AioTaskStatus status;		/* its pid is 0 if there is none */
} StatusSlot;

static StatusSlot *slots;

/* slots of each process */
static int	nslots = 0;

/* which of them this process has given to a task */
static bool taken[AIO_MAX_TASKS_LIMIT];

static int
processes(void)
{
	return MaxBackends + NUM_AUXILIARY_PROCS;
}

/* As many tasks as AIO handles wait for I/O at most. */
static Size
slots_size(void)
{
	nslots = io_max_concurrency > 0 ? io_max_concurrency : 64;
	nslots = Max(nslots, 16);
	nslots = Min(nslots, AIO_MAX_TASKS_LIMIT);
	return mul_size(mul_size(sizeof(StatusSlot), nslots), processes());
}

static void
init_slots(void)
{
	for (int i = 0; i < AioTaskStatusSlots(); i++)
	{
		slots[i].changes = 0;
		slots[i].status.pid = 0;
	}
}

static const AioSharedState slots_state = {
	.name = "aio tasks",
	.size = slots_size,
	.address = (void **) &slots,
	.initialize = init_slots,
};

/* While libraries are preloaded: ask for shared memory. */
void
AioTaskStatusInitialize(void)
{
	AioShareState(&slots_state);
}

static StatusSlot *
my_slot(int slot)
{
	Assert(slot >= 0 && slot < nslots && taken[slot]);
	return &slots[(Size) MyProcNumber * nslots + slot];
}

/* A slot for a task of this process, or -1 if there is none. */
int
AioTaskStatusAcquire(void)
{
	if (slots == NULL)
		return -1;
	for (int i = 0; i < nslots; i++)
	{
		if (!taken[i])
		{
			taken[i] = true;
			return i;
		}
	}
	return -1;
}

/* The task does not exist any more. */
void
AioTaskStatusRelease(int slot)
{
	Assert(slot < 0 || taken[slot]);
	if (slot >= 0)
		taken[slot] = false;
}

/* A task is about to be suspended. */
void
AioTaskStatusSet(int slot, const AioTaskStatus *status)
{
	StatusSlot *mine = my_slot(slot);

	/* or others would not see that it changes */
	Assert(mine->changes % 2 == 0);

	mine->changes++;
	pg_write_barrier();
	mine->status = *status;
	pg_write_barrier();
	mine->changes++;
}

/* It goes on, or never will. */
void
AioTaskStatusClear(int slot)
{
	StatusSlot *mine = my_slot(slot);

	Assert(mine->status.pid == MyProcPid);
	mine->changes++;
	pg_write_barrier();
	mine->status.pid = 0;
	pg_write_barrier();
	mine->changes++;
}

/* Number of slots of all processes. */
int
AioTaskStatusSlots(void)
{
	return slots == NULL ? 0 : processes() * nslots;
}

/*
 * Read the n-th slot of all.  Returns false if it is empty, or if it changes
 * all the time.
 */
bool
AioTaskStatusRead(int n, AioTaskStatus *status)
{
	volatile StatusSlot *slot = &slots[n];

	Assert(n >= 0 && n < AioTaskStatusSlots());
	for (int attempt = 0; attempt < 100; attempt++)
	{
		uint32		before = slot->changes;

		pg_read_barrier();
		if (slot->status.pid == 0)
			return false;
		memcpy(status, unvolatize(AioTaskStatus *, &slot->status), sizeof(AioTaskStatus));
		pg_read_barrier();
		if (slot->changes == before && before % 2 == 0)
			return status->pid != 0;
	}
	return false;
}

/*
 * Which blocks an I/O is about that is pending, perhaps of another process.
 * Returns false if it is not pending any more, or not about blocks.
 */
bool
AioBlocksOf(const PgAioWaitRef *io, AioBlocks *blocks)
{
	PgAioHandle *ioh;
	PgAioHandleState state;
	PgAioTargetData target;
	uint64		generation = ((uint64) io->generation_upper << 32) |
		io->generation_lower;
	uint8		target_id;

	if (!pgaio_wref_valid(unconstify(PgAioWaitRef *, io)) ||
		io->aio_index >= pgaio_ctl->io_handle_count)
		return false;
	ioh = &pgaio_ctl->io_handles[io->aio_index];
	target_id = ioh->target;
	target = ioh->target_data;
	pg_read_barrier();
	if (pgaio_io_was_recycled(ioh, generation, &state) ||
		target_id != PGAIO_TID_SMGR)
		return false;
	blocks->locator = target.smgr.rlocator;
	blocks->forknum = target.smgr.forkNum;
	blocks->first = target.smgr.blockNum;
	blocks->nblocks = target.smgr.nblocks;
	return true;
}
