/*-------------------------------------------------------------------------
 *
 * preallocate.c
 *	  Space for a relation that grows, allocated before it is needed.
 *
 * A transaction that extends a file by much gets a reserve: space allocated
 * past the end of the file, which leaves its length as it is, by an I/O that
 * nobody waits for.  As long as there is some left, extending the file means to
 * move its end, which is all that happens under the relation extension lock.
 *
 * What is known of a relation's reserve is in a slot in shared memory, which
 * exists while a session uses it.  A session has done with it when it has been
 * without a transaction for a moment, so that a load in many transactions has
 * one reserve; the last one gives back what is left.  What a crash leaves
 * behind does no harm, and goes with the next one, or at a VACUUM.
 *
 * Upholds INVARIANT-46 to 48.
 *
 * Tests: src/test/aio/preallocation/t/001_preallocate.pl.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "access/genam.h"
#include "access/parallel.h"
#include "access/relation.h"
#include "access/xact.h"
#include "aio/preallocate.h"
#include "aio/shared_state.h"
#include "aio/stats.h"
#include "catalog/catalog.h"
#include "catalog/pg_am_d.h"
#include "miscadmin.h"
#include "port/pg_iovec.h"
#include "storage/aio_internal.h"
#include "storage/aio_subsys.h"
#include "storage/bufmgr.h"
#include "storage/fd.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "storage/lmgr.h"
#include "storage/lwlock.h"
#include "storage/md.h"
#include "storage/shmem.h"
#include "storage/spin.h"
#include "utils/memutils.h"
#include "utils/relcache.h"
#include "utils/relfilenumbermap.h"
#include "utils/timeout.h"
#include "utils/wait_event.h"

/* aio.extend_ahead */
int			aio_extend_ahead = 4096;

/* relations that can have a reserve at the same time */
#define NSLOTS			64

/* forks that one session remembers to have extended */
#define NREMEMBERED		16

/* blocks by which a transaction extends a fork before that gets a reserve */
#define BLOCKS_BEFORE_RESERVE	64

/* the least that is worth allocating ahead, in blocks */
#define LEAST_RESERVE	128

/* a reserve is at most this part of the relation */
#define RESERVE_FRACTION	4

/* a session without a transaction for so long has done, in milliseconds */
#define IDLE_TIMEOUT	1000

/* tablespaces on file systems that cannot allocate ahead, that are noticed */
#define NUNABLE			16

typedef struct Slot
{
	/* protected by SpaceReserves.lock */
	int			nusers;			/* sessions; 0 if the slot is free */

	slock_t		mutex;			/* protects the rest */
	RelFileLocator locator;
	ForkNumber	forknum;
	BlockNumber end;			/* of the fork, as last seen; 0 is unknown */
	BlockNumber allocated;		/* space up to here, if it is more than end */
	BlockNumber requested;		/* space up to here is being allocated, or 0 */
	uint32		request;		/* number of that, and of the reserve's loss */
	PgAioWaitRef wref;			/* of it, if it has been started */
	uint32		wref_request;	/* whose that is */
	uint64		extended;		/* blocks, since the slot is in use */
	bool		refused;		/* do not ask again */
	bool		leftover;		/* there may be more than is allocated */
} Slot;

typedef struct SpaceReserves
{
	LWLock		lock;
	Oid			unable[NUNABLE];	/* tablespaces; an entry is set once */
	Slot		slots[NSLOTS];
} SpaceReserves;

static SpaceReserves *reserves;

/* a fork that this session has extended */
typedef struct Extended
{
	RelFileLocator locator;
	ForkNumber	forknum;
	LOCKTAG		tag;			/* of its extension lock */
	uint64		nblocks;		/* in this transaction */
	Slot	   *slot;			/* NULL if it has no reserve, for us */
	PgAioWaitRef wref;			/* of what we have requested last, or invalid */
} Extended;

static Extended remembered[NREMEMBERED];
static int	nremembered = 0;

/* the one whose extension lock is held, or NULL */
static Extended *extending = NULL;

/* this session uses a reserve */
bool		aio_reserves_used = false;

/* and may have been idle for a while */
static volatile sig_atomic_t aio_leave_pending = false;
static TimeoutId idle_timeout = MAX_TIMEOUTS;

static void leave_at_exit(int code, Datum arg);
static void at_xact_event(XactEvent event, void *arg);
static void at_timeout(void);

static Size
reserves_size(void)
{
	return sizeof(SpaceReserves);
}

static void
init_reserves(void)
{
	memset(reserves, 0, sizeof(SpaceReserves));
	LWLockInitialize(&reserves->lock, LWLockNewTrancheId());
	LWLockRegisterTranche(reserves->lock.tranche, "AioSpaceReserves");
	for (int i = 0; i < NSLOTS; i++)
		SpinLockInit(&reserves->slots[i].mutex);
}

static const AioSharedState reserves_state = {
	.name = "aio space reserves",
	.size = reserves_size,
	.address = (void **) &reserves,
	.initialize = init_reserves,
};

/* While libraries are preloaded: ask for shared memory. */
void
AioExtendInitialize(void)
{
	AioShareState(&reserves_state);
	RegisterXactCallback(at_xact_event, NULL);
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
extend_complete(PgAioHandle *ioh, PgAioResult prior_result, uint8 cb_data)
{
	PgAioTargetData *td = pgaio_io_get_target_data(ioh);
	uint64	   *data;
	uint8		n;
	Slot	   *slot;

	Assert(CritSectionCount > 0);
	data = pgaio_io_get_handle_data(ioh, &n);
	Assert(n == 1 && (uint32) data[0] < NSLOTS);
	slot = &reserves->slots[(uint32) data[0]];
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
		for (int i = 0; i < NUNABLE; i++)
		{
			if (reserves->unable[i] == td->smgr.rlocator.spcOid)
				break;
			if (reserves->unable[i] == InvalidOid)
			{
				reserves->unable[i] = td->smgr.rlocator.spcOid;
				errno = -prior_result.result;
				ereport(LOG_SERVER_ONLY,
						errmsg("files in tablespace %u grow without a reserve of space: %m",
							   td->smgr.rlocator.spcOid),
						errdetail("The file system cannot allocate space past the end of a file."));
				break;
			}
		}
	}

	/* no space ahead is no error: if space is needed that will be found out */
	prior_result.status = PGAIO_RS_OK;
	return prior_result;
}

const PgAioHandleCallbacks aio_extend_cb = {
	.complete_shared = extend_complete,
};

static bool
is_unable(Oid tablespace)
{
	for (int i = 0; i < NUNABLE; i++)
	{
		if (reserves->unable[i] == tablespace)
			return true;
	}
	return false;
}

/*
 * Start to allocate more space for a slot, unless that is under way or not to
 * be had.  Raises what opening the file raises; then nothing has been started.
 */
static void
request_space(Slot *slot, SMgrRelation reln, ForkNumber forknum)
{
	PgAioHandle *ioh;
	struct iovec *iov;
	BlockNumber first;
	BlockNumber end;
	BlockNumber limit;
	PgAioWaitRef wref;
	uint64		most;
	uint64		data;
	uint32		request;
	uint32		offset;
	bool		wanted;
	int			fd;

	Assert(slot->nusers > 0);
	SpinLockAcquire(&slot->mutex);
	end = slot->end;
	request = slot->request;
	first = Max(slot->allocated, end);
	most = Min(aio_extend_ahead, end / RESERVE_FRACTION);
	most = Min(most, Max(slot->extended, LEAST_RESERVE));
	wanted = !slot->refused && slot->requested == 0 &&
		most >= LEAST_RESERVE && first - end < most / 2;
	SpinLockRelease(&slot->mutex);

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

	/* nothing is raised from here on: others would wait for nothing */
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
	data = (uint64) request << 32 | (uint32) (slot - reserves->slots);
	pgaio_io_set_handle_data_64(ioh, &data, 1);
	pgaio_io_set_target_smgr(ioh, reln, forknum, first, limit - first, true);
	pgaio_io_register_callbacks(ioh, AIO_HCB_EXTEND, 0);
	(void) pgaio_io_get_iovec(ioh, &iov);
	iov[0].iov_base = NULL;
	iov[0].iov_len = (size_t) (limit - first) * BLCKSZ;
	ioh->op_data.write.fd = fd;
	ioh->op_data.write.offset = (uint64) (first % RELSEG_SIZE) * BLCKSZ;
	ioh->op_data.write.iov_length = 1;
	pgaio_io_stage(ioh, AIO_OP_FALLOCATE);
	if (pgaio_my_backend->num_staged_ios > 0)
		pgaio_submit_staged();

	for (int i = 0; i < nremembered; i++)
	{
		if (remembered[i].slot == slot)
			remembered[i].wref = wref;
	}

	/* now others may wait for it */
	SpinLockAcquire(&slot->mutex);
	if (slot->request == request)
	{
		slot->wref = wref;
		slot->wref_request = request;
	}
	SpinLockRelease(&slot->mutex);
	RESUME_INTERRUPTS();
	aio_session_stats_data.space_requests++;
}

/* Wait for space that is being allocated, if it is. */
static void
wait_for_space(Slot *slot)
{
	PgAioWaitRef wref;
	bool		requested;

	SpinLockAcquire(&slot->mutex);
	requested = slot->requested != 0 && slot->wref_request == slot->request;
	wref = slot->wref;
	SpinLockRelease(&slot->mutex);
	Assert(!requested || pgaio_wref_valid(&wref));
	if (requested && !pgaio_wref_check_done(&wref))
	{
		aio_session_stats_data.space_waits++;
		pgaio_wref_wait(&wref);
	}
}

/* ------------------------------------------------------------------------
 * Who has a reserve
 * ------------------------------------------------------------------------
 */

/* Begin to use the slot of a fork.  Leaves it NULL if there is none left. */
static void
attach(Extended *one)
{
	Slot	   *free_slot = NULL;

	Assert(one->slot == NULL);
	if (idle_timeout == MAX_TIMEOUTS)
	{
		before_shmem_exit(leave_at_exit, (Datum) 0);
		idle_timeout = RegisterTimeout(USER_TIMEOUT, at_timeout);
	}

	LWLockAcquire(&reserves->lock, LW_EXCLUSIVE);
	for (int i = 0; i < NSLOTS; i++)
	{
		Slot	   *slot = &reserves->slots[i];

		if (slot->nusers == 0)
		{
			if (free_slot == NULL)
				free_slot = slot;
		}
		else if (RelFileLocatorEquals(slot->locator, one->locator) &&
				 slot->forknum == one->forknum)
		{
			one->slot = slot;
			slot->nusers++;
			break;
		}
	}
	if (one->slot == NULL && free_slot != NULL)
	{
		SpinLockAcquire(&free_slot->mutex);
		free_slot->locator = one->locator;
		free_slot->forknum = one->forknum;
		free_slot->end = 0;
		free_slot->allocated = 0;
		free_slot->requested = 0;
		free_slot->request++;
		free_slot->extended = 0;
		free_slot->refused = is_unable(one->locator.spcOid);
		free_slot->leftover = false;
		SpinLockRelease(&free_slot->mutex);
		free_slot->nusers = 1;
		one->slot = free_slot;
	}
	LWLockRelease(&reserves->lock);
	aio_reserves_used |= one->slot != NULL;
}

/*
 * Give back what is allocated past the end of a fork.  The caller has locked
 * the relation such that it is not truncated; its extension lock, under which
 * the end stays where it is, is taken here.
 *
 * Setting a file's length to what it is frees what lies beyond, on all file
 * systems that know of such space.
 */
static void
trim(Relation rel, ForkNumber forknum)
{
	SMgrRelation reln = RelationGetSmgr(rel);
	BlockNumber nblocks;
	uint32		offset;
	int			status;

	Assert(!RelationUsesLocalBuffers(rel));
	Assert(CheckRelationLockedByMe(rel, AccessShareLock, true));
	LockRelationForExtension(rel, ExclusiveLock);
	AioForgetReserve(&rel->rd_locator, forknum);
	reln->smgr_cached_nblocks[forknum] = InvalidBlockNumber;
	nblocks = smgrnblocks(reln, forknum);
	if (nblocks % RELSEG_SIZE != 0)
	{
		HOLD_INTERRUPTS();
		pgstat_report_wait_start(WAIT_EVENT_DATA_FILE_TRUNCATE);
		status = ftruncate(mdfd(reln, forknum, nblocks - 1, &offset),
						   (off_t) (nblocks % RELSEG_SIZE) * BLCKSZ);
		pgstat_report_wait_end();
		RESUME_INTERRUPTS();
		if (status != 0)
			ereport(LOG,
					errcode_for_file_access(),
					errmsg("could not give back unused space of file \"%s\": %m",
						   relpath(reln->smgr_rlocator, forknum).str));
	}
	UnlockRelationForExtension(rel, ExclusiveLock);
}

/*
 * This session has done with its slots.  Those of which it was the last user,
 * and which have left something, are at the beginning of remembered[] then, and
 * their number is returned.
 */
static int
leave_all(void)
{
	int			nleft = 0;

	/* an interrupt in between would leave slots with users that are gone */
	HOLD_INTERRUPTS();
	for (int i = 0; i < nremembered; i++)
	{
		Extended	one = remembered[i];
		Slot	   *slot = one.slot;
		bool		slack;

		if (slot == NULL)
			continue;
		remembered[i].slot = NULL;
		wait_for_space(slot);

		/* if the reserve was lost, that does not know of ours any more */
		if (pgaio_wref_valid(&one.wref) && !pgaio_wref_check_done(&one.wref))
			pgaio_wref_wait(&one.wref);
		LWLockAcquire(&reserves->lock, LW_EXCLUSIVE);
		Assert(slot->nusers > 0);
		slot->nusers--;
		SpinLockAcquire(&slot->mutex);
		/* what was refused may have been allocated in part */
		slack = slot->refused || slot->leftover || slot->allocated > slot->end;
		SpinLockRelease(&slot->mutex);
		if (slot->nusers == 0 && slack)
			remembered[nleft++] = one;
		LWLockRelease(&reserves->lock);
	}
	RESUME_INTERRUPTS();
	nremembered = 0;
	aio_reserves_used = false;
	extending = NULL;
	return nleft;
}

/*
 * Give back what leave_all() has found, in a transaction of its own.  By now a
 * relation may have another file, or be gone, or locked.
 */
static void
give_back(int nleft)
{
	Assert(!IsTransactionOrTransactionBlock());
	StartTransactionCommand();
	for (int i = 0; i < nleft; i++)
	{
		Oid			relid = RelidByRelfilenumber(remembered[i].locator.spcOid,
												 remembered[i].locator.relNumber);
		Relation	rel;

		if (!OidIsValid(relid) ||
			!ConditionalLockRelationOid(relid, AccessShareLock))
			continue;
		rel = try_relation_open(relid, NoLock);
		if (rel == NULL)
			continue;
		if (RelFileLocatorEquals(rel->rd_locator, remembered[i].locator))
			trim(rel, remembered[i].forknum);
		relation_close(rel, NoLock);
	}
	CommitTransactionCommand();
}

/* Only a session that ends in order gives back; VACUUM does, too. */
static void
leave_at_exit(int code, Datum arg)
{
	int			nleft = leave_all();

	if (code == 0 && AmRegularBackendProcess() && nleft > 0)
	{
		AbortOutOfAnyTransaction();
		give_back(nleft);
	}
}

/* The transaction has ended: see in a moment whether there is another one. */
static void
at_xact_event(XactEvent event, void *arg)
{
	if (nremembered == 0)
		return;
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
	for (int i = 0; i < nremembered; i++)
		remembered[i].nblocks = 0;
	extending = NULL;
	if (aio_reserves_used)
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
 * ProcessClientReadInterrupt(): this session uses reserves, and waits for a
 * command.  Leave if it has done so for a while.
 */
void
AioLeaveReserves(void)
{
	MemoryContext context = CurrentMemoryContext;
	int			nleft;

	Assert(idle_timeout != MAX_TIMEOUTS);
	if (!aio_leave_pending || IsTransactionOrTransactionBlock())
	{
		/* nobody tells when a failed transaction block ends */
		if (!get_timeout_active(idle_timeout))
			enable_timeout_after(idle_timeout, IDLE_TIMEOUT);
		aio_leave_pending = false;
		return;
	}
	aio_leave_pending = false;
	nleft = leave_all();
	if (nleft == 0)
		return;

	/* the client has not asked for anything that could fail */
	PG_TRY();
	{
		give_back(nleft);
	}
	PG_CATCH();
	{
		ErrorData  *error;

		MemoryContextSwitchTo(context);
		error = CopyErrorData();
		FlushErrorState();
		AbortCurrentTransaction();
		ereport(LOG,
				errmsg("could not give back unused space: %s", error->message));
		FreeErrorData(error);
	}
	PG_END_TRY();
	MemoryContextSwitchTo(context);
}

/*
 * Does whoever extends this relation hold its extension lock?  Access methods
 * have other means, too; hash indexes do.
 */
static bool
is_extended_under_lock(Relation rel)
{
	if (RelationUsesLocalBuffers(rel))
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

/* Could this session's extensions of a relation use a reserve? */
static bool
may_have_reserve(Relation rel)
{
	/* others would not notice that they have done with it */
	if (!AmRegularBackendProcess() && !IsParallelWorker())
		return false;
	return aio_extend_ahead > 0 && reserves != NULL &&
		io_method != IOMETHOD_SYNC &&
		file_extend_method == FILE_EXTEND_METHOD_POSIX_FALLOCATE &&
		is_extended_under_lock(rel) && !IsCatalogRelation(rel) &&
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
			one->nblocks += nblocks;
			return one;
		}
	}
	if (nremembered < NREMEMBERED)
		one = &remembered[nremembered++];
	else
	{
		/* forget one that has no reserve */
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
 * Have this session use the reserve of a table, if it is to have one, before it
 * has extended it: its workers will, and it is to be the last to leave.
 */
void
AioJoinReserve(Relation rel)
{
	Extended   *one;

	if (!may_have_reserve(rel))
		return;
	one = remember(rel, MAIN_FORKNUM, 0);
	if (one != NULL && one->slot == NULL && !is_unable(one->locator.spcOid))
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

	if (may_have_reserve(rel))
		one = remember(rel, forknum, nblocks);
	if (one != NULL)
	{
		Assert(!LockHeldByMe(&one->tag, ExclusiveLock, false));
		if (one->slot == NULL && one->nblocks >= BLOCKS_BEFORE_RESERVE &&
			!is_unable(one->locator.spcOid))
			attach(one);
		if (one->slot != NULL)
		{
			Slot	   *slot = one->slot;
			bool		enough;

			request_space(slot, RelationGetSmgr(rel), forknum);
			SpinLockAcquire(&slot->mutex);
			enough = slot->allocated >= slot->end + nblocks;
			SpinLockRelease(&slot->mutex);
			if (!enough)
				wait_for_space(slot);
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

/* The fork that is being extended, if it has a reserve and is this one. */
static Extended *
find_extending(SMgrRelation reln, ForkNumber forknum)
{
	Extended   *one = extending;

	/* an error may have taken the lock from us */
	if (one == NULL || one->slot == NULL || one->forknum != forknum ||
		!RelFileLocatorEquals(one->locator, reln->smgr_rlocator.locator) ||
		!LockHeldByMe(&one->tag, ExclusiveLock, false))
		return NULL;
	return one;
}

/*
 * A file is about to grow, from the end that it is said to have: if there is
 * space in the reserve, move its end and return true.
 */
static bool
move_end(Extended *one, BlockNumber limit, File file, off_t offset,
		 off_t amount)
{
	bool		enough;

	if (one == NULL)
		return false;

	/* both are where the file is to end */
	Assert((offset + amount) % BLCKSZ == 0);
	Assert((limit - (offset + amount) / BLCKSZ) % RELSEG_SIZE == 0);

	SpinLockAcquire(&one->slot->mutex);
	enough = one->slot->allocated >= limit;
	SpinLockRelease(&one->slot->mutex);

	/* nothing is ever cut off, whatever the kernel has said of the length */
	if (!enough || FileSize(file) != offset ||
		FileTruncate(file, offset + amount, WAIT_EVENT_DATA_FILE_EXTEND) != 0)
		return false;
	aio_session_stats_data.space_hits++;
	return true;
}

/* The file has grown so far. */
static void
note_end(Extended *one, BlockNumber limit, uint32 nblocks)
{
	if (one == NULL)
		return;
	SpinLockAcquire(&one->slot->mutex);
	Assert(one->slot->nusers > 0);
	Assert(limit >= one->slot->end);
	one->slot->end = limit;
	one->slot->extended += nblocks;
	SpinLockRelease(&one->slot->mutex);
}

/* mdzeroextend(): FileFallocate(), of the blocks from this one on */
int
AioFallocate(SMgrRelation reln, ForkNumber forknum, BlockNumber block,
			 File file, off_t offset, off_t amount, uint32 wait_event_info)
{
	Extended   *one = find_extending(reln, forknum);
	uint32		nblocks = amount / BLCKSZ;
	int			status = 0;

	if (!move_end(one, block + nblocks, file, offset, amount))
		status = FileFallocate(file, offset, amount, wait_event_info);
	if (status == 0)
		note_end(one, block + nblocks, nblocks);
	return status;
}

/* mdzeroextend(): FileZero(), likewise */
int
AioFileZero(SMgrRelation reln, ForkNumber forknum, BlockNumber block,
			File file, off_t offset, off_t amount, uint32 wait_event_info)
{
	Extended   *one = find_extending(reln, forknum);
	uint32		nblocks = amount / BLCKSZ;
	int			status = 0;

	if (!move_end(one, block + nblocks, file, offset, amount))
		status = FileZero(file, offset, amount, wait_event_info);
	if (status >= 0)
		note_end(one, block + nblocks, nblocks);
	return status;
}

/*
 * mdtruncate(), mdunlink(): what was allocated past the end is lost with it.
 * InvalidForkNumber stands for all forks.
 */
void
AioForgetReserve(const RelFileLocator *locator, ForkNumber forknum)
{
	if (reserves == NULL)
		return;
	for (int i = 0; i < NSLOTS; i++)
	{
		Slot	   *slot = &reserves->slots[i];
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
			wait_for_space(slot);
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

/* ------------------------------------------------------------------------
 * What has been left behind
 * ------------------------------------------------------------------------
 */

/*
 * Does any session use the reserve of a relation's main fork?  It may come or
 * go meanwhile.
 */
static bool
has_users(Relation rel)
{
	bool		found = false;

	LWLockAcquire(&reserves->lock, LW_SHARED);
	for (int i = 0; i < NSLOTS && !found; i++)
	{
		Slot	   *slot = &reserves->slots[i];

		found = slot->nusers > 0 && slot->forknum == MAIN_FORKNUM &&
			RelFileLocatorEquals(slot->locator, rel->rd_locator);
	}
	LWLockRelease(&reserves->lock);
	return found;
}

/* Give back what is allocated past the end of a relation, if it is much. */
static void
trim_slack(Relation rel)
{
	BlockNumber nblocks = RelationGetNumberOfBlocks(rel);
	struct stat file;
	uint32		offset;
	int			status;

	Assert(CheckRelationLockedByMe(rel, AccessShareLock, true));
	if (!is_extended_under_lock(rel) || nblocks % RELSEG_SIZE == 0 ||
		reserves == NULL || has_users(rel))
		return;
	HOLD_INTERRUPTS();
	status = fstat(mdfd(RelationGetSmgr(rel), MAIN_FORKNUM, nblocks - 1, &offset),
				   &file);
	RESUME_INTERRUPTS();

	/* the file system's own data about the file count, too */
	if (status == 0 && (uint64) file.st_blocks * 512 >
		(uint64) file.st_size + file.st_size / 64 + LEAST_RESERVE * BLCKSZ)
		trim(rel, MAIN_FORKNUM);
}

/*
 * A table that is open and locked has been vacuumed: give back what is
 * allocated past its end and those of its indexes.
 */
void
AioTableVacuumed(Relation rel)
{
	List	   *indexes = RelationGetIndexList(rel);

	trim_slack(rel);
	foreach_oid(id, indexes)
	{
		Relation	index = index_open(id, AccessShareLock);

		trim_slack(index);
		index_close(index, AccessShareLock);
	}
	list_free(indexes);
}
