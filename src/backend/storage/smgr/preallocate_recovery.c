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
 * What is left is given back when the fork has not been extended for a second
 * and recovery has replayed all WAL that there was, or waits; when too many
 * others are extended; before a database is dropped, as nobody tells of its
 * files; and when recovery ends.  Whatever the slot says, space is used only if
 * the file ends where redo has seen to it that it does.
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
	TimestampTz time;			/* the same, if it has a slot */
	AioPreallocationSlot *slot; /* NULL if it has no preallocation */
	PgAioWaitRef wref;			/* of what was requested last, or invalid */
} ExtendedFork;

static ExtendedFork extended[NREMEMBERED];
static uint64 nextensions = 0;

/* some of them have a preallocation */
bool		aio_preallocated_in_recovery = false;

/*
 * Detach from the preallocation of a fork, and give back what is left of it, or
 * what an earlier one has left when this server crashed.
 */
static void
give_back(ExtendedFork *one)
{
	AioPreallocationSlot *slot = one->slot;
	SMgrRelation reln;

	one->slot = NULL;
	one->nblocks = 0;
	one->last = 0;
	HOLD_INTERRUPTS();
	(void) AioDetachPreallocation(slot, &one->wref);
	RESUME_INTERRUPTS();
	elog(DEBUG2, "recovery has extended files into preallocated space " UINT64_FORMAT " times",
		 aio_session_stats_data.preallocation_hits);
	reln = smgropen(one->locator, INVALID_PROC_NUMBER);
	if (smgrexists(reln, one->forknum))
		AioTrim(reln, one->forknum);
}

/*
 * Give back the space of forks that have not been extended for a while, or that
 * of all.  Raises what opening a file raises.
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

		if (one->slot == NULL)
			continue;
		if (all || TimestampDifferenceExceeds(one->time, now, IDLE_TIME))
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

/* What is known of a fork, if it is remembered, or else that extended last. */
static ExtendedFork *
remember(const RelFileLocator *locator, ForkNumber forknum)
{
	ExtendedFork *oldest = &extended[0];

	for (int i = 0; i < NREMEMBERED; i++)
	{
		ExtendedFork *one = &extended[i];

		if (one->nblocks > 0 && one->forknum == forknum &&
			RelFileLocatorEquals(one->locator, *locator))
			return one;
		if (one->last < oldest->last)
			oldest = one;
	}
	if (oldest->slot != NULL)
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
	one->nblocks += nblocks;
	one->last = ++nextensions;
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
