/*-------------------------------------------------------------------------
 *
 * extend.c
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
 * one reserve; the last one gives back what is left.  What a crash leaves behind
 * does no harm, and goes with the next one, or at a VACUUM.
 *
 * Upholds INVARIANT-46 to 48.
 *
 * Tests: src/test/aio/t/016_extend.pl.
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
#include "access/xact.h"
#include "catalog/catalog.h"
#include "catalog/pg_am_d.h"
#include "aio/extend.h"
#include "aio/stats.h"
#include "miscadmin.h"
#include "port/pg_iovec.h"
#include "storage/aio_internal.h"
#include "storage/aio_subsys.h"
#include "storage/fd.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "storage/lmgr.h"
#include "storage/lwlock.h"
#include "storage/md.h"
#include "storage/shmem.h"
#include "storage/spin.h"
#include "utils/relcache.h"
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
	PgAioWaitRef wref;			/* of it */
	uint64		extended;		/* blocks, since the slot is in use */
	bool		refused;		/* do not ask again */
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
} Extended;

static Extended remembered[NREMEMBERED];
static int	nremembered = 0;

/* the one whose extension lock is held, or NULL */
static Extended *extending = NULL;

static shmem_request_hook_type prev_shmem_request_hook;
static shmem_startup_hook_type prev_shmem_startup_hook;
static bool shmem_requested = false;

/* set when this session has been idle */
volatile sig_atomic_t aio_leave_pending = false;
static TimeoutId idle_timeout = MAX_TIMEOUTS;

static void leave_at_exit(int code, Datum arg);
static void at_xact_event(XactEvent event, void *arg);
static void at_timeout(void);

static void
request_shmem(void)
{
	if (prev_shmem_request_hook)
		prev_shmem_request_hook();
	shmem_requested = true;
	RequestAddinShmemSpace(sizeof(SpaceReserves));
}

static void
init_shmem(void)
{
	bool		found;

	if (prev_shmem_startup_hook)
		prev_shmem_startup_hook();
	if (!shmem_requested)
		return;					/* initdb's bootstrap */
	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	reserves = ShmemInitStruct("aio space reserves", sizeof(SpaceReserves), &found);
	if (!found)
	{
		memset(reserves, 0, sizeof(SpaceReserves));
		LWLockInitialize(&reserves->lock, LWLockNewTrancheId());
		for (int i = 0; i < NSLOTS; i++)
			SpinLockInit(&reserves->slots[i].mutex);
	}
	LWLockRegisterTranche(reserves->lock.tranche, "AioSpaceReserves");
	LWLockRelease(AddinShmemInitLock);
}

/* While libraries are preloaded: ask for shared memory. */
void
AioExtendInitialize(void)
{
	prev_shmem_request_hook = shmem_request_hook;
	shmem_request_hook = request_shmem;
	prev_shmem_startup_hook = shmem_startup_hook;
	shmem_startup_hook = init_shmem;
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
	const struct iovec *range = &pgaio_ctl->iovecs[ioh->iovec_off];

	return fallocate(ioh->op_data.write.fd, FALLOC_FL_KEEP_SIZE,
					 ioh->op_data.write.offset, range->iov_len);
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

	data = pgaio_io_get_handle_data(ioh, &n);
	slot = &reserves->slots[(uint32) data[0]];
	SpinLockAcquire(&slot->mutex);
	if (slot->request == data[0] >> 32)
	{
		if (prior_result.result == 0)
			slot->allocated = slot->requested;
		else
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
	uint64		most;
	uint64		data;
	uint32		offset;
	bool		wanted;
	int			fd;

	SpinLockAcquire(&slot->mutex);
	end = slot->end;
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
	wanted = slot->requested == 0 && !slot->refused;
	if (wanted)
	{
		slot->requested = limit;
		slot->request++;
	}
	data = (uint64) slot->request << 32 | (uint32) (slot - reserves->slots);
	SpinLockRelease(&slot->mutex);
	ioh = wanted ? pgaio_io_acquire_nb(NULL, NULL) : NULL;
	if (ioh == NULL)
	{
		SpinLockAcquire(&slot->mutex);
		if (wanted && slot->request == data >> 32)
			slot->requested = 0;
		SpinLockRelease(&slot->mutex);
		RESUME_INTERRUPTS();
		return;
	}
	SpinLockAcquire(&slot->mutex);
	pgaio_io_get_wref(ioh, &slot->wref);
	SpinLockRelease(&slot->mutex);

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
	requested = slot->requested != 0;
	wref = slot->wref;
	SpinLockRelease(&slot->mutex);
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
		SpinLockRelease(&free_slot->mutex);
		free_slot->nusers = 1;
		one->slot = free_slot;
	}
	LWLockRelease(&reserves->lock);
}

/*
 * Give back what is allocated past the end of the segment in which a fork ends.
 * May be called with or without a transaction, and raises nothing.
 *
 * Setting a file's length to what it is frees what lies beyond, on all file
 * systems that know of such space.  The lock keeps the end where it is; if it is
 * not to be had, somebody extends the fork, and will see to it.
 */
static void
trim(const LOCKTAG *tag, const RelFileLocator *locator, ForkNumber forknum,
	 BlockNumber end, Slot *slot)
{
	RelPathStr	path = relpathperm(*locator, forknum);
	uint32		segment = (end - 1) / RELSEG_SIZE;
	char		name[REL_PATH_STR_MAXLEN + 12];
	struct stat file;
	int			fd;

	if (LockAcquire(tag, ExclusiveLock, true, true) == LOCKACQUIRE_NOT_AVAIL)
		return;
	if (slot != NULL)
	{
		SpinLockAcquire(&slot->mutex);
		slot->allocated = 0;
		SpinLockRelease(&slot->mutex);
	}
	if (segment == 0)
		strlcpy(name, path.str, sizeof(name));
	else
		snprintf(name, sizeof(name), "%s.%u", path.str, segment);

	/* it may have been dropped */
	fd = BasicOpenFile(name, O_RDWR | PG_BINARY);
	if (fd >= 0)
	{
		pgstat_report_wait_start(WAIT_EVENT_DATA_FILE_TRUNCATE);
		if (fstat(fd, &file) != 0 || ftruncate(fd, file.st_size) != 0)
			ereport(LOG,
					errcode_for_file_access(),
					errmsg("could not give back unused space of file \"%s\": %m",
						   name));
		pgstat_report_wait_end();
		close(fd);
	}
	LockRelease(tag, ExclusiveLock, true);
}

/* This session has done with its slots.  Raises nothing. */
static void
leave_all(void)
{
	for (int i = 0; i < nremembered; i++)
	{
		Extended   *one = &remembered[i];
		Slot	   *slot = one->slot;
		BlockNumber end;
		bool		slack;
		bool		last;

		if (slot == NULL)
			continue;
		LWLockAcquire(&reserves->lock, LW_EXCLUSIVE);
		last = slot->nusers == 1;
		if (!last)
			slot->nusers--;
		LWLockRelease(&reserves->lock);
		one->slot = NULL;
		if (!last)
			continue;

		wait_for_space(slot);
		SpinLockAcquire(&slot->mutex);
		end = slot->end;
		/* what was refused may have been allocated in part */
		slack = end > 0 && (slot->refused || slot->allocated > end);
		SpinLockRelease(&slot->mutex);
		if (slack)
			trim(&one->tag, &one->locator, one->forknum, end, slot);
		LWLockAcquire(&reserves->lock, LW_EXCLUSIVE);
		slot->nusers--;
		LWLockRelease(&reserves->lock);
	}
	nremembered = 0;
	extending = NULL;
}

static void
leave_at_exit(int code, Datum arg)
{
	leave_all();
}

/* The transaction has ended: see in a moment whether there is another one. */
static void
at_xact_event(XactEvent event, void *arg)
{
	bool		attached = false;

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
	{
		remembered[i].nblocks = 0;
		attached |= remembered[i].slot != NULL;
	}
	extending = NULL;
	if (!attached)
		nremembered = 0;
	else if (idle_timeout != MAX_TIMEOUTS)
		enable_timeout_after(idle_timeout, IDLE_TIMEOUT);
}

/* in a signal handler */
static void
at_timeout(void)
{
	aio_leave_pending = true;
	InterruptPending = true;
	SetLatch(MyLatch);
}

/* ProcessInterrupts(): if there is no transaction, leave. */
void
AioLeaveReserves(void)
{
	aio_leave_pending = false;

	/* if there is one, its end starts the time again */
	if (!IsTransactionOrTransactionBlock())
		leave_all();
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
	return one;
}

/* ------------------------------------------------------------------------
 * Extending
 * ------------------------------------------------------------------------
 */

/*
 * A fork is about to be extended: take the relation extension lock, and see to
 * it before that there is space.
 */
void
AioLockForExtension(Relation rel, ForkNumber forknum, uint32 nblocks)
{
	Extended   *one = NULL;

	if (aio_extend_ahead > 0 && reserves != NULL && io_method != IOMETHOD_SYNC &&
		file_extend_method == FILE_EXTEND_METHOD_POSIX_FALLOCATE &&
		is_extended_under_lock(rel) && !IsCatalogRelation(rel) &&
		IsTransactionState())
		one = remember(rel, forknum, nblocks);
	if (one != NULL)
	{
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

void
AioUnlockForExtension(Relation rel)
{
	extending = NULL;
	UnlockRelationForExtension(rel, ExclusiveLock);
}

/*
 * A file is about to grow from this block on: if that space is in the reserve,
 * move the end of the file, and return true.
 */
static bool
move_end(SMgrRelation reln, ForkNumber forknum, BlockNumber block, File file,
		 off_t offset, off_t amount)
{
	Extended   *one = extending;
	uint32		nblocks = amount / BLCKSZ;
	bool		enough;

	/* an error may have taken the lock from us, or it is about another fork */
	if (one == NULL || one->slot == NULL || one->forknum != forknum ||
		!RelFileLocatorEquals(one->locator, reln->smgr_rlocator.locator) ||
		!LockHeldByMe(&one->tag, ExclusiveLock, false))
		return false;

	SpinLockAcquire(&one->slot->mutex);
	enough = one->slot->allocated >= block + nblocks;
	one->slot->end = block + nblocks;
	one->slot->extended += nblocks;
	SpinLockRelease(&one->slot->mutex);
	if (!enough ||
		FileTruncate(file, offset + amount, WAIT_EVENT_DATA_FILE_EXTEND) != 0)
		return false;
	aio_session_stats_data.space_hits++;
	return true;
}

/* mdzeroextend(): FileFallocate(), of the blocks from this one on */
int
AioFallocate(SMgrRelation reln, ForkNumber forknum, BlockNumber block,
			 File file, off_t offset, off_t amount, uint32 wait_event_info)
{
	if (move_end(reln, forknum, block, file, offset, amount))
		return 0;
	return FileFallocate(file, offset, amount, wait_event_info);
}

/* mdzeroextend(): FileZero(), likewise */
int
AioFileZero(SMgrRelation reln, ForkNumber forknum, BlockNumber block,
			File file, off_t offset, off_t amount, uint32 wait_event_info)
{
	if (move_end(reln, forknum, block, file, offset, amount))
		return 0;
	return FileZero(file, offset, amount, wait_event_info);
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

		SpinLockAcquire(&slot->mutex);
		if ((slot->forknum == forknum || forknum == InvalidForkNumber) &&
			RelFileLocatorEquals(slot->locator, *locator))
		{
			slot->end = 0;
			slot->allocated = 0;
			slot->requested = 0;
			slot->request++;
		}
		SpinLockRelease(&slot->mutex);
	}
}

/* ------------------------------------------------------------------------
 * What has been left behind
 * ------------------------------------------------------------------------
 */

/* Give back what is allocated past the end of a fork, if it is much. */
static void
trim_slack(Relation rel)
{
	SMgrRelation reln = RelationGetSmgr(rel);
	BlockNumber nblocks = RelationGetNumberOfBlocks(rel);
	struct stat file;
	uint32		offset;
	LOCKTAG		tag;
	int			status;

	if (!is_extended_under_lock(rel) || nblocks % RELSEG_SIZE == 0)
		return;
	HOLD_INTERRUPTS();
	status = fstat(mdfd(reln, MAIN_FORKNUM, nblocks - 1, &offset), &file);
	RESUME_INTERRUPTS();

	/* the file system's own data about the file count, too */
	if (status != 0 || (uint64) file.st_blocks * 512 <
		(uint64) file.st_size + file.st_size / 64 + LEAST_RESERVE * BLCKSZ)
		return;
	SET_LOCKTAG_RELATION_EXTEND(tag, rel->rd_lockInfo.lockRelId.dbId,
								rel->rd_lockInfo.lockRelId.relId);
	trim(&tag, &rel->rd_locator, MAIN_FORKNUM, nblocks, NULL);
}

/* A table has been vacuumed, and is open. */
void
AioTrimAfterVacuum(Relation rel)
{
	List	   *indexes;

	trim_slack(rel);
	indexes = RelationGetIndexList(rel);
	foreach_oid(id, indexes)
	{
		Relation	index = index_open(id, AccessShareLock);

		trim_slack(index);
		index_close(index, AccessShareLock);
	}
	list_free(indexes);
}
