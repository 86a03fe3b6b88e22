/*-------------------------------------------------------------------------
 *
 * preallocate_recovery.c
 *	  Recovery extends files into preallocated space.
 *
 * Upstream's redo extends a file by one block of zeros at a time, and waits for
 * each.  On a busy disk that takes as long as to read a page, and meanwhile
 * redo makes no progress and begins no reads.  So a fork that has been extended
 * by many blocks gets a preallocation, as for sessions (preallocate_extend.c).
 * Nobody else extends files until recovery ends, so there is no lock.
 *
 * What is left is to be given back (trim.c) when the fork has not
 * been extended for a second and recovery has replayed all WAL that there was,
 * or waits; when too many others are extended; and when recovery ends.  Before
 * a database is dropped, nobody uses any, as nobody tells of its files.
 * Whatever the slot says, space is used only if the file ends where redo has
 * seen to it that it does.
 *
 * Upholds INVARIANT-46 and 47.
 *
 * Tests: src/test/aio/replay/t/008_extensions.pl.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xlogutils.h"
#include "aio/stats.h"
#include "miscadmin.h"
#include "preallocate_internal.h"
#include "storage/ipc.h"
#include "utils/timestamp.h"

/* forks that are remembered to have been extended */
#define NREMEMBERED		16

/* after so many milliseconds without an extension, space may be given back */
#define IDLE_TIME	1000

typedef struct ExtendedFork
{
	RelFileLocator locator;
	ForkNumber	forknum;
	uint64		nblocks;		/* 0 if this entry is unused */
	uint64		last;			/* when it was extended, in extensions */
	TimestampTz time;			/* the same, if it has a slot or leftover */
	AioPreallocationSlot *slot; /* NULL if it has no preallocation */
	bool		leftover;		/* an earlier one has left something */
	PgAioWaitRef wref;			/* of what was requested last, or invalid */
} ExtendedFork;

static ExtendedFork extended[NREMEMBERED];
static uint64 nextensions = 0;

/* some of them have a preallocation */
bool		aio_preallocated_in_recovery = false;

/* Has nobody to wait for what was requested? */
static bool
is_done(ExtendedFork *one)
{
	return one->slot == NULL || AioPreallocationIsDone(one->slot, &one->wref);
}

/*
 * Detach from the preallocation of a fork, and have what is left of it given
 * back, or what an earlier one has left when this server crashed.
 */
static void
give_back(ExtendedFork *one)
{
	AioPreallocationSlot *slot = one->slot;

	one->slot = NULL;
	one->leftover = false;
	one->nblocks = 0;
	one->last = 0;
	if (slot != NULL)
	{
		HOLD_INTERRUPTS();
		(void) AioDetachPreallocation(slot, &one->wref);
		RESUME_INTERRUPTS();
	}
	elog(DEBUG2, "recovery has extended files into preallocated space " UINT64_FORMAT " times",
		 aio_session_stats_data.preallocation_hits);
	AioWantTrim(&one->locator, one->forknum);
}

/*
 * Give back the space of forks that have not been extended for a while, or that
 * of all.
 */
void
AioGiveBackInRecovery(bool all)
{
	TimestampTz now = all ? 0 : GetCurrentTimestamp();
	bool		left = false;

	if (!aio_preallocated_in_recovery)
		return;
	for (int i = 0; i < NREMEMBERED; i++)
	{
		ExtendedFork *one = &extended[i];

		if (one->slot == NULL && !one->leftover)
			continue;
		if (all || (TimestampDifferenceExceeds(one->time, now, IDLE_TIME) &&
					is_done(one)))
			give_back(one);
		else
			left = true;
	}
	aio_preallocated_in_recovery = left;
}

/* The server is being stopped. */
static void
give_back_at_exit(int code, Datum arg)
{
	AioGiveBackInRecovery(true);
}

/*
 * What is known of a fork: if it is not remembered, in place of the one that
 * was extended first.  NULL if there is none that nobody has to wait for.
 */
static ExtendedFork *
remember(const RelFileLocator *locator, ForkNumber forknum)
{
	ExtendedFork *oldest = NULL;

	for (int i = 0; i < NREMEMBERED; i++)
	{
		ExtendedFork *one = &extended[i];

		if (one->nblocks > 0 && one->forknum == forknum &&
			RelFileLocatorEquals(one->locator, *locator))
			return one;
		if ((oldest == NULL || one->last < oldest->last) && is_done(one))
			oldest = one;
	}
	if (oldest == NULL)
		return NULL;
	if (oldest->slot != NULL || oldest->leftover)
		give_back(oldest);
	oldest->locator = *locator;
	oldest->forknum = forknum;
	oldest->nblocks = 0;
	pgaio_wref_clear(&oldest->wref);
	return oldest;
}

/*
 * Redo extends a fork, which ends at 'block', by so many blocks: the slot of
 * its preallocation, or NULL if it has none.  Requests more space if there is
 * little left.  Raises what opening a file raises.
 */
AioPreallocationSlot *
AioSlotInRecovery(SMgrRelation reln, ForkNumber forknum, BlockNumber block,
				  uint32 nblocks)
{
	static bool registered = false;
	ExtendedFork *one;

	if (!InRecovery || aio_preallocation_size == 0 || io_method == IOMETHOD_SYNC ||
		file_extend_method != FILE_EXTEND_METHOD_POSIX_FALLOCATE)
		return NULL;
	one = remember(&reln->smgr_rlocator.locator, forknum);
	if (one == NULL)
		return NULL;
	one->nblocks += nblocks;
	one->last = ++nextensions;
	if (AioTakeBackTrims(&one->locator, forknum))
	{
		/* it is to be asked for again */
		one->leftover = true;
		one->time = GetCurrentTimestamp();
		aio_preallocated_in_recovery = true;
	}
	if (one->slot == NULL)
	{
		if (one->nblocks < BLOCKS_BEFORE_PREALLOCATION ||
			AioCannotPreallocateIn(one->locator.spcOid))
			return NULL;
		if (!registered)
			before_shmem_exit(give_back_at_exit, (Datum) 0);
		registered = true;
		one->slot = AioAttachPreallocation(&one->locator, forknum);
		if (one->slot == NULL)
			return NULL;
		aio_preallocated_in_recovery = true;
	}
	one->time = GetCurrentTimestamp();
	if (!AioIsEnd(one->slot, block))
		AioForgetPreallocation(&one->locator, forknum);
	AioRequestPreallocation(one->slot, reln, forknum, &one->wref);
	return one->slot;
}
