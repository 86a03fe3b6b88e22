/*-------------------------------------------------------------------------
 *
 * preallocate_extend.c
 *	  Extend files into preallocated space.
 *
 * A session remembers which forks it has extended.  When a transaction has
 * extended one by many blocks, the session attaches to its preallocation,
 * requests more space before it takes the relation extension lock, and moves
 * the end of the file under the lock.  It detaches when it has been without a
 * transaction for a second, so that a load in many transactions keeps one
 * preallocation, or when it ends; the last session gives back what is left.
 * preallocate_recovery.c does the same for recovery.
 *
 * A session that is idle may be sent a command, a notification or a signal at
 * any time, and none of them may be missed.  So what it does here waits for
 * nothing, and cannot fail.
 *
 * Upholds INVARIANT-47, 48 and 116.
 *
 * Tests: src/test/aio/preallocation/t/001_preallocate.pl.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/parallel.h"
#include "access/xact.h"
#include "aio/read.h"
#include "aio/slots.h"
#include "aio/stats.h"
#include "catalog/catalog.h"
#include "miscadmin.h"
#include "preallocate_internal.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "storage/lmgr.h"
#include "storage/lock.h"
#include "storage/proc.h"
#include "utils/injection_point.h"
#include "utils/timeout.h"
#include "utils/wait_event.h"

/* forks that one session remembers to have extended */
#define NREMEMBERED		16

/* after so many milliseconds without a transaction, a session detaches */
#define IDLE_TIMEOUT	1000

/* a fork that this session has extended */
typedef struct Extended
{
	RelFileLocator locator;
	ForkNumber	forknum;
	LOCKTAG		tag;			/* of its extension lock */
	uint64		nblocks;		/* in this transaction */
	AioPreallocationSlot *slot; /* NULL if we do not preallocate for it */
	PgAioWaitRef wref;			/* of what we have requested last, or invalid */
} Extended;

static Extended remembered[NREMEMBERED];
static int	nremembered = 0;

/* the one whose extension lock is held, or NULL */
static Extended *extending = NULL;

/* this session uses preallocated space */
bool		aio_preallocation_used = false;

/* and may have been idle for a while */
static volatile sig_atomic_t aio_leave_pending = false;
static TimeoutId idle_timeout = MAX_TIMEOUTS;

static void leave_at_exit(int code, Datum arg);
static void at_xact_event(XactEvent event, void *arg);
static void at_timeout(void);

/* While libraries are preloaded: ask for what is shared. */
void
AioPreallocationInitialize(void)
{
	AioSharePreallocations();
	RegisterXactCallback(at_xact_event, NULL);
}

/* ------------------------------------------------------------------------
 * What a session uses, and for how long
 * ------------------------------------------------------------------------
 */

/* Attach to the slot of a fork.  one->slot stays NULL if no slot is free. */
static void
attach(Extended *one)
{
	Assert(one->slot == NULL);
	if (idle_timeout == MAX_TIMEOUTS)
	{
		before_shmem_exit(leave_at_exit, (Datum) 0);
		idle_timeout = RegisterTimeout(AIO_TIMEOUT_IDLE, at_timeout);
	}
	one->slot = AioAttachPreallocation(&one->locator, one->forknum);
	aio_preallocation_used |= one->slot != NULL;
}

/*
 * Detach this session from its slots, and have given back what the last user of
 * one has left.  Without 'wait' it stays attached to those for which something
 * has been requested that is not there yet.
 */
static void
detach_all(bool wait)
{
	int			nkept = 0;

	/* an interrupt in between would leave slots with users that are gone */
	HOLD_INTERRUPTS();
	extending = NULL;
	aio_preallocation_used = false;
	for (int i = 0; i < nremembered; i++)
	{
		Extended   *one = &remembered[i];
		bool		unused;

		if (one->slot == NULL)
			continue;
		if (wait)
			unused = AioDetachPreallocation(one->slot, &one->wref);
		else if (!AioTryToDetach(one->slot, &one->wref, &unused))
		{
			remembered[nkept++] = *one;
			aio_preallocation_used = true;
			continue;
		}
		one->slot = NULL;
		if (unused)
			AioWantTrim(&one->locator, one->forknum);
	}
	nremembered = nkept;
	RESUME_INTERRUPTS();
}

static void
leave_at_exit(int code, Datum arg)
{
	detach_all(true);
}

/* The transaction has ended: see in a second whether there is another one. */
static void
at_xact_event(XactEvent event, void *arg)
{
	switch (event)
	{
		case XACT_EVENT_COMMIT:
		case XACT_EVENT_PARALLEL_COMMIT:
		case XACT_EVENT_PREPARE:
		case XACT_EVENT_ABORT:
		case XACT_EVENT_PARALLEL_ABORT:
			break;
		default:
			return;
	}
	/* an error may have ended one */
	AioEndFileChange();
	if (nremembered == 0)
		return;
	for (int i = 0; i < nremembered; i++)
		remembered[i].nblocks = 0;
	extending = NULL;
	if (aio_preallocation_used)
	{
		Assert(idle_timeout != MAX_TIMEOUTS);
		aio_leave_pending = false;
		enable_timeout_after(idle_timeout, IDLE_TIMEOUT);
	}
	else
		nremembered = 0;
}

/* in a signal handler */
static void
at_timeout(void)
{
	aio_leave_pending = true;
	SetLatch(MyLatch);
}

/*
 * ProcessClientReadInterrupt(): this session uses preallocated space, and
 * waits for a command.  Detach if it has waited for a while.
 */
void
AioEndPreallocation(void)
{
	Assert(idle_timeout != MAX_TIMEOUTS);
	if (aio_leave_pending && !IsTransactionOrTransactionBlock())
	{
		/* nobody else may look for what has been completed */
		AioReadReap();
		detach_all(false);
	}
	/* nobody tells when a failed transaction block ends */
	if (aio_preallocation_used && !get_timeout_active(idle_timeout))
		enable_timeout_after(idle_timeout, IDLE_TIMEOUT);
	aio_leave_pending = false;
}

/* May space be preallocated for this session's extensions of a relation? */
static bool
may_preallocate(Relation rel)
{
	/* other processes would not detach from the slot */
	if (!AmRegularBackendProcess() && !IsParallelWorker())
		return false;
	return aio_preallocation_size > 0 && io_method != IOMETHOD_SYNC &&
		file_extend_method == FILE_EXTEND_METHOD_POSIX_FALLOCATE &&
		AioCanHavePreallocation(rel) && !IsCatalogRelation(rel) &&
		IsTransactionState();
}

/* What we know of a fork, after some blocks more. */
static Extended *
remember(Relation rel, ForkNumber forknum, uint32 nblocks)
{
	static int	next = 0;
	Extended   *one;

	for (int i = 0; i < nremembered; i++)
	{
		one = &remembered[i];
		if (RelFileLocatorEquals(one->locator, rel->rd_locator) &&
			one->forknum == forknum)
		{
			/* a table that is rewritten has been extended as another one */
			SET_LOCKTAG_RELATION_EXTEND(one->tag, rel->rd_lockInfo.lockRelId.dbId,
										rel->rd_lockInfo.lockRelId.relId);
			one->nblocks += nblocks;
			return one;
		}
	}
	if (nremembered < NREMEMBERED)
		one = &remembered[nremembered++];
	else
	{
		/* forget one that has no slot */
		for (int i = 0; remembered[next].slot != NULL; i++)
		{
			if (i == NREMEMBERED)
				return NULL;
			next = (next + 1) % NREMEMBERED;
		}
		one = &remembered[next];
		next = (next + 1) % NREMEMBERED;
	}
	one->locator = rel->rd_locator;
	one->forknum = forknum;
	SET_LOCKTAG_RELATION_EXTEND(one->tag, rel->rd_lockInfo.lockRelId.dbId,
								rel->rd_lockInfo.lockRelId.relId);
	one->nblocks = nblocks;
	one->slot = NULL;
	pgaio_wref_clear(&one->wref);
	return one;
}

/* ------------------------------------------------------------------------
 * Extending
 * ------------------------------------------------------------------------
 */

/*
 * Attach this session to the preallocation of a table, if it is to have one,
 * before it has extended it: its workers will extend it, and it is to be the
 * last to detach.
 */
void
AioJoinPreallocation(Relation rel)
{
	Extended   *one;

	if (!may_preallocate(rel))
		return;
	one = remember(rel, MAIN_FORKNUM, 0);
	if (one != NULL && one->slot == NULL &&
		!AioCannotPreallocateIn(one->locator.spcOid))
		attach(one);
}

/*
 * A fork is about to be extended: take the relation extension lock, and see to
 * it before that there is space.
 */
void
AioLockForExtension(Relation rel, ForkNumber forknum, uint32 nblocks)
{
	Extended   *one = NULL;

	if (may_preallocate(rel))
		one = remember(rel, forknum, nblocks);
	if (one != NULL)
	{
		Assert(!LockHeldByMe(&one->tag, ExclusiveLock, false));
		if (one->slot == NULL && one->nblocks >= BLOCKS_BEFORE_PREALLOCATION &&
			!AioCannotPreallocateIn(one->locator.spcOid))
			attach(one);
		if (one->slot != NULL)
		{
			AioRequestPreallocation(one->slot, RelationGetSmgr(rel), forknum,
									&one->wref);
			AioWaitForSpace(one->slot, nblocks);
		}
	}
	LockRelationForExtension(rel, ExclusiveLock);
	extending = one;
}

/* The fork has been extended, or not: that lock is about to be released. */
void
AioBeforeExtensionUnlock(void)
{
	extending = NULL;
}

/* The slot of a fork that is being extended, by 'nblocks', or NULL. */
static AioPreallocationSlot *
find_slot(SMgrRelation reln, ForkNumber forknum, BlockNumber block,
		  uint32 nblocks)
{
	Extended   *one = extending;

	if (AmStartupProcess())
		return AioSlotInRecovery(reln, forknum, block, nblocks);

	/* an error may have taken the lock from us */
	if (one == NULL || one->slot == NULL || one->forknum != forknum ||
		!RelFileLocatorEquals(one->locator, reln->smgr_rlocator.locator) ||
		!LockHeldByMe(&one->tag, ExclusiveLock, false))
		return NULL;
	return one->slot;
}

/*
 * A file is about to grow, from the end that it is said to have: if there is
 * preallocated space, move its end and return true.
 */
static bool
move_end(AioPreallocationSlot *slot, BlockNumber limit, File file,
		 off_t offset, off_t amount)
{
	if (slot == NULL)
		return false;

	/* both are where the file is to end */
	Assert((offset + amount) % BLCKSZ == 0);
	Assert((limit - (offset + amount) / BLCKSZ) % RELSEG_SIZE == 0);

	/* nothing is ever cut off, whatever the kernel has said of the length */
	if (!AioHasSpace(slot, limit) || FileSize(file) != offset ||
		FileTruncate(file, offset + amount, WAIT_EVENT_DATA_FILE_EXTEND) != 0)
		return false;
	aio_session_stats_data.preallocation_hits++;
	return true;
}

/* mdzeroextend(): FileFallocate(), of the blocks from this one on */
int
AioFallocate(SMgrRelation reln, ForkNumber forknum, BlockNumber block,
			 File file, off_t offset, off_t amount, uint32 wait_event_info)
{
	uint32		nblocks = amount / BLCKSZ;
	AioPreallocationSlot *slot = find_slot(reln, forknum, block, nblocks);
	int			status = 0;

	AioBeginFileChange(&reln->smgr_rlocator.locator, forknum, false);
	INJECTION_POINT("aio-file-change", NULL);
	if (!move_end(slot, block + nblocks, file, offset, amount))
		status = FileFallocate(file, offset, amount, wait_event_info);
	AioEndFileChange();
	if (status == 0 && slot != NULL)
		AioSetEnd(slot, block + nblocks, nblocks);
	return status;
}

/* mdzeroextend(): FileZero(), likewise */
int
AioFileZero(SMgrRelation reln, ForkNumber forknum, BlockNumber block,
			File file, off_t offset, off_t amount, uint32 wait_event_info)
{
	uint32		nblocks = amount / BLCKSZ;
	AioPreallocationSlot *slot = find_slot(reln, forknum, block, nblocks);
	int			status = 0;

	AioBeginFileChange(&reln->smgr_rlocator.locator, forknum, false);
	INJECTION_POINT("aio-file-change", NULL);
	if (!move_end(slot, block + nblocks, file, offset, amount))
		status = FileZero(file, offset, amount, wait_event_info);
	AioEndFileChange();
	if (status >= 0 && slot != NULL)
		AioSetEnd(slot, block + nblocks, nblocks);
	return status;
}

/* mdextend(): FileWrite(), of a block at the end */
int
AioFileExtend(SMgrRelation reln, ForkNumber forknum, File file,
			  const void *buffer, size_t amount, off_t offset,
			  uint32 wait_event_info)
{
	int			result;

	AioBeginFileChange(&reln->smgr_rlocator.locator, forknum, false);
	result = FileWrite(file, buffer, amount, offset, wait_event_info);
	AioEndFileChange();
	return result;
}
