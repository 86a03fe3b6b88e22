/*-------------------------------------------------------------------------
 *
 * task_status.c
 *	  Where processes say what their suspended tasks await.
 *
 * Each process has a row of places in shared memory, one for each of its first
 * tasks.  Only it writes there, without a lock: a change count is odd while it
 * does, as upstream does it for pg_stat_activity.  Tasks that have no place are
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

typedef struct Place
{
	uint32		changes;		/* odd while the status is being changed */
	AioTaskStatus status;		/* its pid is 0 if there is none */
} Place;

static Place *board;

/* places of each process */
static int	nplaces = 0;

/* which of them this process has given to a task */
static bool taken[AIO_MAX_TASKS_LIMIT];

static int
processes(void)
{
	return MaxBackends + NUM_AUXILIARY_PROCS;
}

/* As many tasks as AIO handles wait for I/O at most. */
static Size
board_size(void)
{
	nplaces = io_max_concurrency > 0 ? io_max_concurrency : 64;
	nplaces = Max(nplaces, 16);
	nplaces = Min(nplaces, AIO_MAX_TASKS_LIMIT);
	return mul_size(mul_size(sizeof(Place), nplaces), processes());
}

static void
init_board(void)
{
	for (int i = 0; i < AioTaskBoardSize(); i++)
	{
		board[i].changes = 0;
		board[i].status.pid = 0;
	}
}

static const AioSharedState board_state = {
	.name = "aio tasks",
	.size = board_size,
	.address = (void **) &board,
	.initialize = init_board,
};

/* While libraries are preloaded: ask for shared memory. */
void
AioTaskBoardInitialize(void)
{
	AioShareState(&board_state);
}

static Place *
my_place(int place)
{
	Assert(place >= 0 && place < nplaces && taken[place]);
	return &board[(Size) MyProcNumber * nplaces + place];
}

/* A place for a task of this process, or -1 if there is none. */
int
AioTaskBoardPlace(void)
{
	if (board == NULL)
		return -1;
	for (int i = 0; i < nplaces; i++)
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
AioTaskBoardGiveBack(int place)
{
	Assert(place < 0 || taken[place]);
	if (place >= 0)
		taken[place] = false;
}

/* A task is about to be suspended. */
void
AioTaskBoardPost(int place, const AioTaskStatus *status)
{
	Place	   *mine = my_place(place);

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
AioTaskBoardRemove(int place)
{
	Place	   *mine = my_place(place);

	Assert(mine->status.pid == MyProcPid);
	mine->changes++;
	pg_write_barrier();
	mine->status.pid = 0;
	pg_write_barrier();
	mine->changes++;
}

/* Number of places of all processes. */
int
AioTaskBoardSize(void)
{
	return board == NULL ? 0 : processes() * nplaces;
}

/*
 * What is posted at the n-th place of all.  Returns false if nothing is, or if
 * it changes all the time.
 */
bool
AioTaskBoardRead(int n, AioTaskStatus *status)
{
	volatile Place *place = &board[n];

	Assert(n >= 0 && n < AioTaskBoardSize());
	for (int attempt = 0; attempt < 100; attempt++)
	{
		uint32		before = place->changes;

		pg_read_barrier();
		if (place->status.pid == 0)
			return false;
		memcpy(status, unvolatize(AioTaskStatus *, &place->status), sizeof(AioTaskStatus));
		pg_read_barrier();
		if (place->changes == before && before % 2 == 0)
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
