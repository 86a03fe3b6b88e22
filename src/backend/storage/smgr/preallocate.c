/*-------------------------------------------------------------------------
 *
 * preallocate.c
 *	  Preallocation: space for a relation that grows, before it is needed.
 *
 * For a transaction that extends a file by many blocks, space is preallocated
 * past the end of the file: an asynchronous I/O that nobody waits for
 * allocates it, and leaves the length of the file as it is.  As long as some
 * of it is left, extending the file only moves its end, and nothing else
 * happens under the relation extension lock.
 *
 * The state of a relation's preallocation is in a slot in shared memory, which
 * exists while a session uses it.  A session stops using it when it has been
 * without a transaction for a second, so that a load in many transactions
 * keeps one preallocation; the last session frees what is left.  What a crash
 * leaves behind does no harm, and is freed after the next load, or by VACUUM.
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

/* aio.preallocation_size */
int			aio_preallocation_size = 4096;

/* relations with preallocated space at a time */
#define NSLOTS			64

/* forks that one session remembers to have extended */
#define NREMEMBERED		16

/* a transaction extends a fork by so many blocks before any are preallocated */
#define BLOCKS_BEFORE_PREALLOCATION	64

/* fewer blocks than this are not preallocated */
#define MIN_PREALLOCATION	128

/* at most this part of the relation is preallocated */
#define PREALLOCATION_FRACTION	4

/* after so many milliseconds without a transaction, a session detaches */
#define IDLE_TIMEOUT	1000

/* tablespaces that are known to be on file systems that cannot preallocate */
#define MAX_UNABLE			16

typedef struct Slot
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
	PgAioWaitRef wref;			/* of it, if it has been started */
	uint32		wref_request;	/* whose that is */
	uint64		extended;		/* blocks, since the slot is in use */
	bool		refused;		/* request no more */
	bool		leftover;		/* there may be more than is allocated */
} Slot;

typedef struct Preallocations
{
	LWLock		lock;
	Oid			unable[MAX_UNABLE]; /* tablespaces; an entry is set once */
	Slot		slots[NSLOTS];
} Preallocations;

static Preallocations *preallocations;

/* a fork that this session has extended */
typedef struct Extended
{
	RelFileLocator locator;
	ForkNumber	forknum;
	LOCKTAG		tag;			/* of its extension lock */
	uint64		nblocks;		/* in this transaction */
	Slot	   *slot;			/* NULL if we do not preallocate for it */
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
		SpinLockInit(&preallocations->slots[i].mutex);
}

static const AioSharedState preallocations_state = {
	.name = "aio preallocation",
	.size = preallocations_size,
	.address = (void **) &preallocations,
	.initialize = init_preallocations,
};

/* While libraries are preloaded: ask for shared memory. */
void
AioPreallocationInitialize(void)
{
	AioShareState(&preallocations_state);
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
preallocation_complete(PgAioHandle *ioh, PgAioResult prior_result, uint8 cb_data)
{
	PgAioTargetData *td = pgaio_io_get_target_data(ioh);
	uint64	   *data;
	uint8		n;
	Slot	   *slot;

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

static bool
is_unable(Oid tablespace)
{
	for (int i = 0; i < MAX_UNABLE; i++)
	{
		if (preallocations->unable[i] == tablespace)
			return true;
	}
	return false;
}

/*
 * Start to allocate more space for a slot, unless that is under way or not to
 * be had.  Raises what opening the file raises; then nothing has been started.
 */
static void
request_preallocation(Slot *slot, SMgrRelation reln, ForkNumber forknum)
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
	most = Min(aio_preallocation_size, end / PREALLOCATION_FRACTION);
	most = Min(most, Max(slot->extended, MIN_PREALLOCATION));
	wanted = !slot->refused && slot->requested == 0 &&
		most >= MIN_PREALLOCATION && first - end < most / 2;
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
	aio_session_stats_data.preallocation_requests++;
}

/* Wait for space that is being allocated, if it is. */
static void
wait_for_preallocation(Slot *slot)
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
		aio_session_stats_data.preallocation_waits++;
		pgaio_wref_wait(&wref);
	}
}

/* ------------------------------------------------------------------------
 * Who has a preallocation
 * ------------------------------------------------------------------------
 */

/* Attach to the slot of a fork.  one->slot stays NULL if no slot is free. */
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

	LWLockAcquire(&preallocations->lock, LW_EXCLUSIVE);
	for (int i = 0; i < NSLOTS; i++)
	{
		Slot	   *slot = &preallocations->slots[i];

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
	LWLockRelease(&preallocations->lock);
	aio_preallocation_used |= one->slot != NULL;
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
	AioForgetPreallocation(&rel->rd_locator, forknum);
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
 * Detach this session from its slots.  Those of which it was the last user,
 * and that may have unused space, are at the beginning of remembered[] then,
 * and their number is returned.
 */
static int
detach_all(void)
{
	int			nleft = 0;

	/* an interrupt in between would leave slots with users that are gone */
	HOLD_INTERRUPTS();
	for (int i = 0; i < nremembered; i++)
	{
		Extended	one = remembered[i];
		Slot	   *slot = one.slot;
		bool		unused;

		if (slot == NULL)
			continue;
		remembered[i].slot = NULL;
		wait_for_preallocation(slot);

		/*
		 * if the space was lost, the slot does not know of our request any
		 * more
		 */
		if (pgaio_wref_valid(&one.wref) && !pgaio_wref_check_done(&one.wref))
			pgaio_wref_wait(&one.wref);
		LWLockAcquire(&preallocations->lock, LW_EXCLUSIVE);
		Assert(slot->nusers > 0);
		slot->nusers--;
		SpinLockAcquire(&slot->mutex);
		/* what was refused may have been allocated in part */
		unused = slot->refused || slot->leftover || slot->allocated > slot->end;
		SpinLockRelease(&slot->mutex);
		if (slot->nusers == 0 && unused)
			remembered[nleft++] = one;
		LWLockRelease(&preallocations->lock);
	}
	RESUME_INTERRUPTS();
	nremembered = 0;
	aio_preallocation_used = false;
	extending = NULL;
	return nleft;
}

/*
 * Give back what detach_all() has found, in a transaction of its own.  By now
 * a relation may have another file, or be gone, or locked.
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
	int			nleft = detach_all();

	if (code == 0 && AmRegularBackendProcess() && nleft > 0)
	{
		AbortOutOfAnyTransaction();
		give_back(nleft);
	}
}

/* The transaction has ended: see in a second whether there is another one. */
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
	nleft = detach_all();
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

/* May space be preallocated for this session's extensions of a relation? */
static bool
may_preallocate(Relation rel)
{
	/* other processes would not detach from the slot */
	if (!AmRegularBackendProcess() && !IsParallelWorker())
		return false;
	return aio_preallocation_size > 0 && preallocations != NULL &&
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

	if (may_preallocate(rel))
		one = remember(rel, forknum, nblocks);
	if (one != NULL)
	{
		Assert(!LockHeldByMe(&one->tag, ExclusiveLock, false));
		if (one->slot == NULL && one->nblocks >= BLOCKS_BEFORE_PREALLOCATION &&
			!is_unable(one->locator.spcOid))
			attach(one);
		if (one->slot != NULL)
		{
			Slot	   *slot = one->slot;
			bool		enough;

			request_preallocation(slot, RelationGetSmgr(rel), forknum);
			SpinLockAcquire(&slot->mutex);
			enough = slot->allocated >= slot->end + nblocks;
			SpinLockRelease(&slot->mutex);
			if (!enough)
				wait_for_preallocation(slot);
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

/* The fork that is being extended, if it is this one and has a slot. */
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
 * preallocated space, move its end and return true.
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
	aio_session_stats_data.preallocation_hits++;
	return true;
}

/* The file has grown so far. */
static void
set_end(Extended *one, BlockNumber limit, uint32 nblocks)
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
		set_end(one, block + nblocks, nblocks);
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
		set_end(one, block + nblocks, nblocks);
	return status;
}

/*
 * mdtruncate(), mdunlink(): what was allocated past the end is lost with it.
 * InvalidForkNumber stands for all forks.
 */
void
AioForgetPreallocation(const RelFileLocator *locator, ForkNumber forknum)
{
	if (preallocations == NULL)
		return;
	for (int i = 0; i < NSLOTS; i++)
	{
		Slot	   *slot = &preallocations->slots[i];
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

/* ------------------------------------------------------------------------
 * What has been left behind
 * ------------------------------------------------------------------------
 */

/*
 * Does any session use preallocated space of a relation's main fork?  It may
 * come or go meanwhile.
 */
static bool
has_users(Relation rel)
{
	bool		found = false;

	LWLockAcquire(&preallocations->lock, LW_SHARED);
	for (int i = 0; i < NSLOTS && !found; i++)
	{
		Slot	   *slot = &preallocations->slots[i];

		found = slot->nusers > 0 && slot->forknum == MAIN_FORKNUM &&
			RelFileLocatorEquals(slot->locator, rel->rd_locator);
	}
	LWLockRelease(&preallocations->lock);
	return found;
}

/* Give back what is allocated past the end of a relation, if it is much. */
static void
trim_unused(Relation rel)
{
	BlockNumber nblocks = RelationGetNumberOfBlocks(rel);
	struct stat file;
	uint32		offset;
	int			status;

	Assert(CheckRelationLockedByMe(rel, AccessShareLock, true));
	if (!is_extended_under_lock(rel) || nblocks % RELSEG_SIZE == 0 ||
		preallocations == NULL || has_users(rel))
		return;
	HOLD_INTERRUPTS();
	status = fstat(mdfd(RelationGetSmgr(rel), MAIN_FORKNUM, nblocks - 1, &offset),
				   &file);
	RESUME_INTERRUPTS();

	/* the file system's own data about the file count, too */
	if (status == 0 && (uint64) file.st_blocks * 512 >
		(uint64) file.st_size + file.st_size / 64 + MIN_PREALLOCATION * BLCKSZ)
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

	trim_unused(rel);
	foreach_oid(id, indexes)
	{
		Relation	index = index_open(id, AccessShareLock);

		trim_unused(index);
		index_close(index, AccessShareLock);
	}
	list_free(indexes);
}
