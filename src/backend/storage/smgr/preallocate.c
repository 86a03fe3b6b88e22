/*-------------------------------------------------------------------------
 *
 * preallocate.c
 *	  Preallocations: which space past the end of files is allocated.
 *
 * For a transaction that extends a file by many blocks, space is preallocated
 * past the end of the file: an asynchronous I/O that nobody waits for
 * allocates it, and leaves the length of the file as it is.  As long as some
 * of it is left, extending the file only moves its end, and nothing else
 * happens under the relation extension lock.
 *
 * The state of a relation's preallocation is in a slot in shared memory, which
 * exists while a session uses it.  This file has the slots, and the I/O that
 * allocates.  The I/O is complete in any process, and may fail: then nothing
 * is raised, and the file grows as usual.  preallocate_extend.c says when a
 * session attaches to a slot, moves the end of the file, and detaches;
 * preallocate_recovery.c says when recovery does; trim.c has what is left given
 * back.
 *
 * Upholds INVARIANT-46 and 116.
 *
 * Tests: src/test/aio/preallocation/t/001_preallocate.pl.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <fcntl.h>

#include "aio/recovery_point.h"
#include "aio/shared_state.h"
#include "aio/stats.h"
#include "aio/temp_room.h"
#include "catalog/pg_am_d.h"
#include "catalog/pg_class.h"
#include "miscadmin.h"
#include "port/pg_iovec.h"
#include "preallocate_internal.h"
#include "storage/aio_subsys.h"
#include "storage/lwlock.h"
#include "storage/md.h"
#include "storage/spin.h"

/* aio.preallocation_size */
int			aio_preallocation_size = 4096;

/* relations with preallocated space at a time */
#define NSLOTS			64

/* at most this part of the relation is preallocated */
#define PREALLOCATION_FRACTION	4

/* tablespaces that are known to be on file systems that cannot preallocate */
#define MAX_UNABLE			16

struct AioPreallocationSlot
{
	/* protected by Preallocations.lock */
	int			nusers;			/* sessions; 0 if the slot is free */

	slock_t		mutex;			/* protects the rest */
	RelFileLocator locator;
	ForkNumber	forknum;
	BlockNumber end;			/* of the fork, as last seen; 0 is unknown */
	BlockNumber allocated;		/* space up to here, if it is more than end */
	BlockNumber requested;		/* space up to here is being allocated, or 0 */
	uint32		request;		/* number of the request; changes if the space
								 * is lost */
	PgAioWaitRef wref;			/* of the last one that has been started, or
								 * invalid */
	uint64		extended;		/* blocks, since the slot is in use */
	bool		refused;		/* request no more */
	bool		leftover;		/* there may be more than is allocated */
};

typedef struct Preallocations
{
	LWLock		lock;
	Oid			unable[MAX_UNABLE]; /* tablespaces; an entry is set once */
	AioPreallocationSlot slots[NSLOTS];
} Preallocations;

static Preallocations *preallocations;

static Size
preallocations_size(void)
{
	return sizeof(Preallocations);
}

static void
init_preallocations(void)
{
	memset(preallocations, 0, sizeof(Preallocations));
	LWLockInitialize(&preallocations->lock, LWLockNewTrancheId());
	LWLockRegisterTranche(preallocations->lock.tranche, "AioPreallocation");
	for (int i = 0; i < NSLOTS; i++)
	{
		SpinLockInit(&preallocations->slots[i].mutex);
		pgaio_wref_clear(&preallocations->slots[i].wref);
	}
}

static const AioSharedState preallocations_state = {
	.name = "aio preallocation",
	.size = preallocations_size,
	.address = (void **) &preallocations,
	.initialize = init_preallocations,
};

/* While libraries are preloaded: ask for shared memory. */
void
AioSharePreallocations(void)
{
	AioShareState(&preallocations_state);
	AioShareTrims();
}

/* ------------------------------------------------------------------------
 * Allocating
 * ------------------------------------------------------------------------
 */

/*
 * Carry out the operation: allocate space and leave the length of the file.
 * Returns -1 and sets errno if that fails.
 */
int
AioPerformFallocate(PgAioHandle *ioh)
{
#ifdef FALLOC_FL_KEEP_SIZE
	int			status;

	Assert(AioFallocateBytes(ioh) > 0);
	do
		status = fallocate(ioh->op_data.write.fd, FALLOC_FL_KEEP_SIZE,
						   ioh->op_data.write.offset,
						   AioFallocateBytes(ioh));
	while (status != 0 && errno == EINTR);
	return status;
#else
	errno = EOPNOTSUPP;
	return -1;
#endif
}

/* complete_shared: there is space, or there is not */
static PgAioResult
preallocation_complete(PgAioHandle *ioh, PgAioResult prior_result, uint8 cb_data)
{
	PgAioTargetData *td = pgaio_io_get_target_data(ioh);
	uint64	   *data;
	uint8		n;
	AioPreallocationSlot *slot;

	Assert(CritSectionCount > 0);
	data = pgaio_io_get_handle_data(ioh, &n);
	Assert(n == 1 && (uint32) data[0] < NSLOTS);
	slot = &preallocations->slots[(uint32) data[0]];
	SpinLockAcquire(&slot->mutex);
	if (slot->request == data[0] >> 32)
	{
		Assert(slot->requested > slot->allocated);
		if (prior_result.result == 0)
			slot->allocated = slot->requested;
		else if (prior_result.result != -EINTR && prior_result.result != -EAGAIN)
			slot->refused = true;
		slot->requested = 0;
	}
	SpinLockRelease(&slot->mutex);

	if (prior_result.result == -EOPNOTSUPP || prior_result.result == -ENOSYS ||
		prior_result.result == -EINVAL)
	{
		for (int i = 0; i < MAX_UNABLE; i++)
		{
			if (preallocations->unable[i] == td->smgr.rlocator.spcOid)
				break;
			if (preallocations->unable[i] == InvalidOid)
			{
				preallocations->unable[i] = td->smgr.rlocator.spcOid;
				errno = -prior_result.result;
				ereport(LOG_SERVER_ONLY,
						errmsg("no space is preallocated for files in tablespace %u: %m",
							   td->smgr.rlocator.spcOid),
						errdetail("The file system cannot allocate space past the end of a file."));
				break;
			}
		}
	}

	/* not an error: if space is needed, the extension will raise it */
	prior_result.status = PGAIO_RS_OK;
	return prior_result;
}

const PgAioHandleCallbacks aio_preallocate_cb = {
	.complete_shared = preallocation_complete,
};

/* Is it known that no space can be preallocated in a tablespace? */
bool
AioCannotPreallocateIn(Oid tablespace)
{
	for (int i = 0; i < MAX_UNABLE; i++)
	{
		if (preallocations->unable[i] == tablespace)
			return true;
	}
	return false;
}

/* Is a request complete, or has there been none? */
static inline bool
is_complete(PgAioWaitRef *wref)
{
	return !pgaio_wref_valid(wref) || pgaio_wref_check_done(wref);
}

/* What was requested for a slot last, by whomever. */
static PgAioWaitRef
last_request(AioPreallocationSlot *slot)
{
	PgAioWaitRef wref;

	SpinLockAcquire(&slot->mutex);
	wref = slot->wref;
	SpinLockRelease(&slot->mutex);
	return wref;
}

/*
 * Start to allocate more space for a slot, unless that is under way or not to
 * be had.  Raises what opening the file raises; then nothing has been started.
 * What has been started is in *started, which stays as it is otherwise.
 */
void
AioRequestPreallocation(AioPreallocationSlot *slot, SMgrRelation reln,
						ForkNumber forknum, PgAioWaitRef *started)
{
	PgAioHandle *ioh;
	struct iovec *iov;
	BlockNumber first;
	BlockNumber end;
	BlockNumber limit;
	PgAioWaitRef last;
	PgAioWaitRef wref;
	uint64		most;
	uint64		data;
	uint32		request;
	uint32		offset;
	bool		wanted;
	bool		leftover;
	int			fd;

	Assert(slot->nusers > 0);

	/* what is allocated from now on must not be given back */
	leftover = AioTakeBackTrims(&reln->smgr_rlocator.locator, forknum);
	SpinLockAcquire(&slot->mutex);
	slot->leftover |= leftover;
	end = slot->end;
	request = slot->request;
	last = slot->wref;
	first = Max(slot->allocated, end);
	most = Min(aio_preallocation_size, end / PREALLOCATION_FRACTION);
	most = Min(most, Max(slot->extended, MIN_PREALLOCATION));
	wanted = !slot->refused && slot->requested == 0 &&
		most >= MIN_PREALLOCATION && first - end < most / 2;
	SpinLockRelease(&slot->mutex);

	/*
	 * What was requested before the file was cut may still be under way:
	 * whoever drops it, and we when we detach, wait for the last request
	 * only.  (Nobody else asks for the handle of ours, which would stay
	 * ours.)
	 */
	if (wanted && (!is_complete(&last) || !is_complete(started)))
		return;

	/* the next segment has no file yet */
	limit = end - end % RELSEG_SIZE + RELSEG_SIZE;
	if (!wanted || end % RELSEG_SIZE == 0 || first >= limit ||
		pgaio_my_backend->handed_out_io != NULL)
		return;
	limit = Min(limit, end + most);
	if (limit <= first)
		return;

	HOLD_INTERRUPTS();
	fd = mdfd(reln, forknum, end - 1, &offset);

	/* others may need what is left, WAL above all */
	if (!AioFileHasRoom(fd, (uint64) (limit - first) * BLCKSZ))
	{
		RESUME_INTERRUPTS();
		return;
	}

	/*
	 * raise nothing from here on: others would wait for a request that is not
	 * made
	 */
	SpinLockAcquire(&slot->mutex);
	wanted = slot->request == request && slot->requested == 0 && !slot->refused;
	if (wanted)
	{
		slot->requested = limit;
		request = ++slot->request;
	}
	SpinLockRelease(&slot->mutex);

	ioh = wanted ? pgaio_io_acquire_nb(NULL, NULL) : NULL;
	if (ioh == NULL)
	{
		SpinLockAcquire(&slot->mutex);
		if (wanted && slot->request == request)
			slot->requested = 0;
		SpinLockRelease(&slot->mutex);
		RESUME_INTERRUPTS();
		return;
	}
	pgaio_io_get_wref(ioh, &wref);
	data = (uint64) request << 32 | (uint32) (slot - preallocations->slots);
	pgaio_io_set_handle_data_64(ioh, &data, 1);
	pgaio_io_set_target_smgr(ioh, reln, forknum, first, limit - first, true);
	pgaio_io_register_callbacks(ioh, AIO_HCB_PREALLOCATE, 0);
	(void) pgaio_io_get_iovec(ioh, &iov);
	iov[0].iov_base = NULL;
	iov[0].iov_len = (size_t) (limit - first) * BLCKSZ;
	ioh->op_data.write.fd = fd;
	ioh->op_data.write.offset = (uint64) (first % RELSEG_SIZE) * BLCKSZ;
	ioh->op_data.write.iov_length = 1;
	pgaio_io_stage(ioh, AIO_OP_FALLOCATE);
	if (pgaio_my_backend->num_staged_ios > 0)
		pgaio_submit_staged();
	*started = wref;

	/* now others may wait for it */
	SpinLockAcquire(&slot->mutex);
	slot->wref = wref;
	SpinLockRelease(&slot->mutex);
	RESUME_INTERRUPTS();
	aio_session_stats_data.preallocation_requests++;
}

/*
 * Wait for space that is being allocated, if it is, be it of no use any more.
 */
static void
wait_for_preallocation(AioPreallocationSlot *slot)
{
	PgAioWaitRef wref = last_request(slot);

	if (!is_complete(&wref))
	{
		aio_session_stats_data.preallocation_waits++;
		pgaio_wref_wait(&wref);
	}
}

/*
 * Wait for space that is being allocated, if it is, and if there is not enough
 * for so many blocks more.
 */
void
AioWaitForSpace(AioPreallocationSlot *slot, uint32 nblocks)
{
	bool		enough;

	SpinLockAcquire(&slot->mutex);
	enough = slot->requested == 0 || slot->allocated >= slot->end + nblocks;
	SpinLockRelease(&slot->mutex);
	if (!enough)
		wait_for_preallocation(slot);
}

/* ------------------------------------------------------------------------
 * Who has a preallocation
 * ------------------------------------------------------------------------
 */

/*
 * Can a relation have a preallocation?  Whoever extends it has to hold its
 * extension lock.  Access methods have other means, too; hash indexes do.
 */
bool
AioCanHavePreallocation(Relation rel)
{
	if (preallocations == NULL || RelationUsesLocalBuffers(rel))
		return false;
	switch (rel->rd_rel->relkind)
	{
		case RELKIND_RELATION:
		case RELKIND_MATVIEW:
		case RELKIND_TOASTVALUE:
			return rel->rd_rel->relam == HEAP_TABLE_AM_OID;
		case RELKIND_INDEX:
			return rel->rd_rel->relam == BTREE_AM_OID ||
				rel->rd_rel->relam == GIN_AM_OID ||
				rel->rd_rel->relam == GIST_AM_OID ||
				rel->rd_rel->relam == SPGIST_AM_OID;
		default:
			return false;
	}
}

/*
 * Attach to the slot of a fork, and return it, or NULL if none is free.  The
 * caller detaches.
 */
AioPreallocationSlot *
AioAttachPreallocation(const RelFileLocator *locator, ForkNumber forknum)
{
	AioPreallocationSlot *free_slot = NULL;
	AioPreallocationSlot *found = NULL;

	LWLockAcquire(&preallocations->lock, LW_EXCLUSIVE);
	for (int i = 0; i < NSLOTS; i++)
	{
		AioPreallocationSlot *slot = &preallocations->slots[i];

		if (slot->nusers == 0)
		{
			if (free_slot == NULL)
				free_slot = slot;
		}
		else if (RelFileLocatorEquals(slot->locator, *locator) &&
				 slot->forknum == forknum)
		{
			found = slot;
			slot->nusers++;
			break;
		}
	}
	if (found == NULL && free_slot != NULL)
	{
		SpinLockAcquire(&free_slot->mutex);
		free_slot->locator = *locator;
		free_slot->forknum = forknum;
		free_slot->end = 0;
		free_slot->allocated = 0;
		free_slot->requested = 0;
		free_slot->request++;
		free_slot->extended = 0;
		free_slot->refused = AioCannotPreallocateIn(locator->spcOid);
		free_slot->leftover = false;
		SpinLockRelease(&free_slot->mutex);
		free_slot->nusers = 1;
		found = free_slot;
	}
	LWLockRelease(&preallocations->lock);
	return found;
}

/*
 * With the lock held, this session does not use a slot any more.  Was it the
 * last one, and may there be unused space?
 */
static bool
detach(AioPreallocationSlot *slot)
{
	bool		unused;

	Assert(LWLockHeldByMeInMode(&preallocations->lock, LW_EXCLUSIVE));
	Assert(slot->nusers > 0);
	slot->nusers--;
	SpinLockAcquire(&slot->mutex);
	/* what was refused may have been allocated in part */
	unused = slot->refused || slot->leftover || slot->allocated > slot->end;
	SpinLockRelease(&slot->mutex);
	return unused && slot->nusers == 0;
}

/* Is there what this session has requested, and others for the slot? */
bool
AioPreallocationIsDone(AioPreallocationSlot *slot, PgAioWaitRef *requested)
{
	PgAioWaitRef last = last_request(slot);

	return is_complete(&last) && is_complete(requested);
}

/*
 * Detach from a slot, if there is what this session has requested, and, for the
 * last user, what others have.  Otherwise returns false, and the session still
 * uses the slot.  *unused: was it the last user, and may there be unused space?
 * The caller has held off interrupts, and forgets the slot.
 */
bool
AioTryToDetach(AioPreallocationSlot *slot, PgAioWaitRef *requested,
			   bool *unused)
{
	PgAioWaitRef last = last_request(slot);
	bool		done;

	/* this may see to what is complete, which is not done with a lock */
	(void) is_complete(&last);
	if (!is_complete(requested))
		return false;
	LWLockAcquire(&preallocations->lock, LW_EXCLUSIVE);
	last = last_request(slot);
	done = slot->nusers > 1 || is_complete(&last);
	if (done)
		*unused = detach(slot);
	LWLockRelease(&preallocations->lock);
	return done;
}

/*
 * The same, when all that is there.  If space was lost, the slot does not know
 * of our request any more.
 */
bool
AioDetachPreallocation(AioPreallocationSlot *slot, PgAioWaitRef *requested)
{
	bool		unused;

	if (!is_complete(requested))
		pgaio_wref_wait(requested);
	while (!AioTryToDetach(slot, requested, &unused))
		wait_for_preallocation(slot);
	return unused;
}

/* Does any session use a fork's?  The caller holds the lock. */
static bool
is_used(const RelFileLocator *locator, ForkNumber forknum)
{
	bool		found = false;

	for (int i = 0; i < NSLOTS && !found; i++)
	{
		AioPreallocationSlot *slot = &preallocations->slots[i];

		found = slot->nusers > 0 && slot->forknum == forknum &&
			RelFileLocatorEquals(slot->locator, *locator);
	}
	return found;
}

/* The same; sessions may come and go meanwhile. */
bool
AioHasPreallocation(const RelFileLocator *locator, ForkNumber forknum)
{
	bool		found;

	LWLockAcquire(&preallocations->lock, LW_SHARED);
	found = is_used(locator, forknum);
	LWLockRelease(&preallocations->lock);
	return found;
}

/* ------------------------------------------------------------------------
 * Where the file ends
 * ------------------------------------------------------------------------
 */

/* Is there space up to this block? */
bool
AioHasSpace(AioPreallocationSlot *slot, BlockNumber limit)
{
	bool		enough;

	SpinLockAcquire(&slot->mutex);
	enough = slot->allocated >= limit;
	SpinLockRelease(&slot->mutex);
	return enough;
}

/* Does the file end here, as far as is known? */
bool
AioIsEnd(AioPreallocationSlot *slot, BlockNumber block)
{
	BlockNumber end;

	SpinLockAcquire(&slot->mutex);
	end = slot->end;
	SpinLockRelease(&slot->mutex);
	return end == 0 || end == block;
}

/* The file has grown by so many blocks, and ends here. */
void
AioSetEnd(AioPreallocationSlot *slot, BlockNumber limit, uint32 nblocks)
{
	SpinLockAcquire(&slot->mutex);
	Assert(slot->nusers > 0);
	Assert(limit >= slot->end);
	slot->end = limit;
	slot->extended += nblocks;
	SpinLockRelease(&slot->mutex);
}

/*
 * What was allocated past the end of a file is lost with it, and nobody else
 * may change its length meanwhile.  InvalidForkNumber stands for all forks.
 */
void
AioForgetPreallocation(const RelFileLocator *locator, ForkNumber forknum)
{
	if (preallocations == NULL)
		return;
	(void) AioTakeBackTrims(locator, forknum);
	for (int i = 0; i < NSLOTS; i++)
	{
		AioPreallocationSlot *slot = &preallocations->slots[i];
		bool		found;

		SpinLockAcquire(&slot->mutex);
		found = (slot->forknum == forknum || forknum == InvalidForkNumber) &&
			RelFileLocatorEquals(slot->locator, *locator);
		SpinLockRelease(&slot->mutex);
		if (!found)
			continue;

		/* an I/O worker would not find a file that is gone */
		if (CritSectionCount == 0)
		{
			HOLD_INTERRUPTS();
			wait_for_preallocation(slot);
			RESUME_INTERRUPTS();
		}
		SpinLockAcquire(&slot->mutex);
		if (RelFileLocatorEquals(slot->locator, *locator))
		{
			slot->leftover |= slot->requested != 0;
			slot->end = 0;
			slot->allocated = 0;
			slot->requested = 0;
			/* whoever is about to request space must look again */
			slot->request++;
		}
		SpinLockRelease(&slot->mutex);
	}
}

/* mdtruncate(), mdunlink(): from here to AioEndFileChange() a file is cut. */
void
AioBeginCut(const RelFileLocator *locator, ForkNumber forknum)
{
	AioBeginFileChange(locator, forknum, true);
	AioForgetPreallocation(locator, forknum);
}

/*
 * Have the background writer give back what is allocated past the end of a
 * fork, unless somebody uses a preallocation of it, or too much is asked for
 * already: then it stays.  The file may be gone by now.  May be called while
 * idle, and raises nothing.
 */
void
AioWantTrim(const RelFileLocator *locator, ForkNumber forknum)
{
	bool		asked;

	LWLockAcquire(&preallocations->lock, LW_EXCLUSIVE);
	asked = !is_used(locator, forknum) && AioAskForTrim(locator, forknum);
	LWLockRelease(&preallocations->lock);
	if (asked)
		AioWakeBackgroundWriter();
}
