/*-------------------------------------------------------------------------
 *
 * write_buffers.c
 *	  What upstream's bufmgr.c and freelist.c do, with our seams, as far as
 *	  pages are read, changed, written and replaced; it includes the server's
 *	  bufmgr_internals.c and freelist_internals.c, as these do.
 *
 * Buffers have a header lock, pins, a lock of their contents, and at most one
 * I/O.  Few of them stand for many: a process has no more than a few pinned.
 *
 * Invariants: a buffer becomes clean only if what it has is on disk; what is
 * read is what was there when the page was replaced; who waits for an I/O has
 * not locked the page's contents exclusively; a process gives back what it has,
 * and nothing else.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"
#include "write_world.h"

#define REFCOUNT_ARRAY_ENTRIES	16
#define PARTITIONS		2		/* of the mapping */
#define RING_MAX		8
#define NOT_IN_LIST		(-2)

typedef struct PrivateRefCountEntry
{
	Buffer		buffer;
	int			refcount;
} PrivateRefCountEntry;

/* upstream's hash of more pins, which nobody has here */
typedef int HASH_SEQ_STATUS;

struct BufferAccessStrategyData
{
	bool		reads;			/* BAS_BULKREAD */
	int			nbuffers;
	int			current;
	Buffer		buffers[RING_MAX];
};

typedef struct StrategyShared
{
	slock_t		mutex;
	int			first_free;
	pg_atomic_uint32 hand;
	pg_atomic_uint32 numBufferAllocs;
} StrategyShared;

typedef struct BufferLocals
{
	PrivateRefCountEntry pins[REFCOUNT_ARRAY_ENTRIES];
	bool		reserved;
	BufferDesc *cleanup_wait;
	struct BufferAccessStrategyData ring;
} BufferLocals;

struct WritebackContext
{
	int			n;
};

int			NBuffers;
int			io_combine_limit;
bool		InRecovery;
bool		track_io_timing;
CheckpointStatsData CheckpointStats;
PgStat_CheckpointerStats PendingCheckpointerStats;
BufferUsage pgBufferUsage;
WritebackContext BackendWritebackContext;
BufferDesc	sim_buffers[BUFFERS_MAX];
ConditionVariable sim_io_cvs[BUFFERS_MAX];

static char blocks[BUFFERS_MAX][BLCKSZ] __attribute__((aligned(8)));
static int	mapping[PAGES_MAX]; /* buffer of a page, or -1 */
static LWLock partition_locks[PARTITIONS];
static StrategyShared strategy_shared;
static StrategyShared *const StrategyControl = &strategy_shared;
static BufferLocals locals[PROCESSES_MAX];

/* the running process's pins */
#define PrivateRefCountArray		(locals[SimMe()].pins)
#define PrivateRefCountOverflowed	0
#define PrivateRefCountHash			NULL
#define hash_seq_init(scan, hash)	(*(scan) = 0)
#define hash_seq_search(scan)		NULL

/* ------------------------------------------------------------------------
 * Headers and pins
 * ------------------------------------------------------------------------
 */

bool
BufferIsValid(Buffer buffer)
{
	SIM_CHECK(buffer >= 0 && buffer <= NBuffers, "there is no such buffer");
	return buffer != InvalidBuffer;
}

Page
BufferGetBlock(Buffer buffer)
{
	return blocks[buffer - 1];
}

SimPage *
SimBufferPage(Buffer buffer)
{
	return (SimPage *) blocks[buffer - 1];
}

static inline XLogRecPtr
BufferGetLSN(const BufferDesc *buf)
{
	return SimBufferPage(BufferDescriptorGetBuffer(buf))->lsn;
}

/* Wait until nobody has the header locked. */
static void
wait_for_header(BufferDesc *buf)
{
	SimPoint();
	while (buf->state.value & BM_LOCKED)
		SimWait(buf, NEVER, false);
}

uint32
LockBufHdr(BufferDesc *buf)
{
	SIM_CHECK(sim_me->spinlock == NULL, "a header is locked with another spinlock held");
	wait_for_header(buf);
	buf->state.value |= BM_LOCKED;
	sim_me->spinlock = (slock_t *) buf;
	return buf->state.value;
}

void
UnlockBufHdr(BufferDesc *buf, uint32 state)
{
	SIM_CHECK(sim_me->spinlock == (slock_t *) buf, "a header is unlocked that is not locked");
	sim_me->spinlock = NULL;
	buf->state.value = state & ~BM_LOCKED;
	SimWake(buf);
	SimPoint();
}

uint64
BufferGetLSNAtomic(Buffer buffer)
{
	BufferDesc *buf = GetBufferDescriptor(buffer - 1);
	uint32		state = LockBufHdr(buf);
	XLogRecPtr	lsn = BufferGetLSN(buf);

	UnlockBufHdr(buf, state);
	return lsn;
}

static void release_pin(Datum res);
static void abort_buffer_io(Datum res);

static const ResourceOwnerDesc pin_resource = {
	.name = "buffer",
	.release_phase = RESOURCE_RELEASE_LOCKS,
	.ReleaseResource = release_pin,
};

static const ResourceOwnerDesc io_resource = {
	.name = "buffer I/O",
	.release_phase = RESOURCE_RELEASE_BEFORE_LOCKS,
	.ReleaseResource = abort_buffer_io,
};

static void
ResourceOwnerForgetBufferIO(ResourceOwner owner, Buffer buffer)
{
	ResourceOwnerForget(owner, (Datum) buffer, &io_resource);
}

static PrivateRefCountEntry *
find_pin(Buffer buffer)
{
	for (int i = 0; i < REFCOUNT_ARRAY_ENTRIES; i++)
	{
		if (PrivateRefCountArray[i].refcount > 0 && PrivateRefCountArray[i].buffer == buffer)
			return &PrivateRefCountArray[i];
	}
	return NULL;
}

static int
GetPrivateRefCount(Buffer buffer)
{
	PrivateRefCountEntry *entry = find_pin(buffer);

	return entry == NULL ? 0 : entry->refcount;
}

static void
ReservePrivateRefCountEntry(void)
{
	locals[SimMe()].reserved = true;
}

static void
remember_pin(Buffer buffer)
{
	PrivateRefCountEntry *entry = find_pin(buffer);

	if (entry == NULL)
	{
		SIM_CHECK(locals[SimMe()].reserved, "a pin is taken without a place for it");
		locals[SimMe()].reserved = false;
		entry = PrivateRefCountArray;
		while (entry->refcount > 0)
		{
			entry++;
			SIM_CHECK(entry < PrivateRefCountArray + REFCOUNT_ARRAY_ENTRIES, "a process has too many pins");
		}
		entry->buffer = buffer;
	}
	entry->refcount++;
	ResourceOwnerRemember(CurrentResourceOwner, (Datum) buffer, &pin_resource);
}

/* The header is locked, and unlocked by this. */
static void
PinBuffer_Locked(BufferDesc *buf)
{
	SIM_CHECK(GetPrivateRefCount(BufferDescriptorGetBuffer(buf)) == 0, "a process pins a buffer twice");
	UnlockBufHdr(buf, buf->state.value + BUF_REFCOUNT_ONE);
	remember_pin(BufferDescriptorGetBuffer(buf));
}

/* Returns whether it is valid. */
static bool
PinBuffer(BufferDesc *buf, BufferAccessStrategy strategy)
{
	Buffer		buffer = BufferDescriptorGetBuffer(buf);

	if (GetPrivateRefCount(buffer) == 0)
	{
		uint32		usage;

		wait_for_header(buf);
		usage = BUF_STATE_GET_USAGECOUNT(buf->state.value);
		buf->state.value += BUF_REFCOUNT_ONE;
		if (usage < (strategy == NULL ? BM_MAX_USAGE_COUNT : 1))
			buf->state.value += BUF_USAGECOUNT_ONE;
	}
	remember_pin(buffer);
	return (buf->state.value & BM_VALID) != 0;
}

static void
wake_cleanup_waiter(BufferDesc *buf)
{
	uint32		state = LockBufHdr(buf);
	int			waiter = buf->wait_backend_pgprocno;
	bool		wake = (state & BM_PIN_COUNT_WAITER) && BUF_STATE_GET_REFCOUNT(state) == 1;

	UnlockBufHdr(buf, wake ? state & ~BM_PIN_COUNT_WAITER : state);
	if (wake)
		SetLatch(&sim_processes[waiter].latch);
}

static void
unpin_no_owner(BufferDesc *buf)
{
	PrivateRefCountEntry *entry = find_pin(BufferDescriptorGetBuffer(buf));

	SIM_CHECK(entry != NULL, "a buffer is unpinned that is not pinned");
	if (--entry->refcount > 0)
		return;
	locals[SimMe()].reserved = true;	/* its place */
	SIM_CHECK(!LWLockHeldByMe(&buf->content_lock), "a buffer is unpinned that is locked");
	wait_for_header(buf);
	SIM_CHECK(BUF_STATE_GET_REFCOUNT(buf->state.value) > 0, "a buffer has fewer pins than are given back");
	buf->state.value -= BUF_REFCOUNT_ONE;
	if (buf->state.value & BM_PIN_COUNT_WAITER)
		wake_cleanup_waiter(buf);
}

static void
release_pin(Datum res)
{
	unpin_no_owner(GetBufferDescriptor((int) res - 1));
}

static void
UnpinBuffer(BufferDesc *buf)
{
	ResourceOwnerForget(CurrentResourceOwner, (Datum) BufferDescriptorGetBuffer(buf), &pin_resource);
	unpin_no_owner(buf);
}

void
SimReleaseBuffer(Buffer buffer)
{
	UnpinBuffer(GetBufferDescriptor(buffer - 1));
}

/* ------------------------------------------------------------------------
 * I/O of buffers
 * ------------------------------------------------------------------------
 */

static void
WaitIO(BufferDesc *buf)
{
	ConditionVariable *cv = BufferDescriptorGetIOCV(buf);

	SIM_CHECK(buf->content_lock.owner != sim_me, "somebody waits for an I/O with the page locked exclusively");
	SimTell("waits for the I/O of page %d", SimPageNumber(&buf->tag));
	ConditionVariablePrepareToSleep(cv);
	for (;;)
	{
		uint32		state = LockBufHdr(buf);
		PgAioWaitRef wref = buf->io_wref;

		UnlockBufHdr(buf, state);
		if (!(state & BM_IO_IN_PROGRESS))
			break;
		if (pgaio_wref_valid(&wref))
		{
			pgaio_wref_wait(&wref);
			ConditionVariablePrepareToSleep(cv);
			continue;
		}
		SimTell("sleeps until the I/O of page %d has ended", SimPageNumber(&buf->tag));
		ConditionVariableSleep(cv);
	}
	ConditionVariableCancelSleep();
}

static bool
StartBufferIO(BufferDesc *buf, bool for_input, bool nowait)
{
	uint32		state;

	ResourceOwnerEnlarge(CurrentResourceOwner);
	for (;;)
	{
		state = LockBufHdr(buf);
		if (!(state & BM_IO_IN_PROGRESS))
			break;
		UnlockBufHdr(buf, state);
		if (nowait)
			return false;
		WaitIO(buf);
	}
	if (for_input ? (state & BM_VALID) != 0 : !(state & BM_DIRTY))
	{
		UnlockBufHdr(buf, state);
		return false;
	}
	SIM_CHECK(for_input || !nowait || !(state & BM_IO_ERROR) || !SimHasSeen(buf->failed_at),
			  "what has failed is written without waiting, and nobody hears of it");
	UnlockBufHdr(buf, state | BM_IO_IN_PROGRESS);
	ResourceOwnerRemember(CurrentResourceOwner, (Datum) BufferDescriptorGetBuffer(buf), &io_resource);
	return true;
}

/* It becomes clean: nothing must be lost that way. */
static void
check_clean(BufferDesc *buf)
{
	const SimPage *page = SimBufferPage(BufferDescriptorGetBuffer(buf));
	const SimPage *disk = SimOnDisk(page->number);

	if (buf->changing == 0)
		SIM_CHECK(disk->lsn == page->lsn && disk->body == page->body && disk->hints == page->hints,
				  "a buffer becomes clean whose contents are not on disk");
}

static void
TerminateBufferIO(BufferDesc *buf, bool clear_dirty, uint32 set_flags,
				  bool forget_owner, bool release_aio)
{
	uint32		state = LockBufHdr(buf);

	SIM_CHECK(state & BM_IO_IN_PROGRESS, "an I/O ends twice");
	state &= ~(BM_IO_IN_PROGRESS | BM_IO_ERROR);
	if (clear_dirty && !(state & BM_JUST_DIRTIED))
	{
		check_clean(buf);
		state &= ~(BM_DIRTY | BM_CHECKPOINT_NEEDED);
	}
	if (release_aio)
	{
		SIM_CHECK(BUF_STATE_GET_REFCOUNT(state) > 0, "an I/O ends that has no pin");
		state -= BUF_REFCOUNT_ONE;
		pgaio_wref_clear(&buf->io_wref);
	}
	state |= set_flags;
	if (set_flags & BM_IO_ERROR)
		buf->failed_at = sim_steps;
	SimTell("ends the I/O of page %d%s", SimPageNumber(&buf->tag),
			state & BM_DIRTY ? ", which is dirty" : "");
	UnlockBufHdr(buf, state);
	if (forget_owner)
		ResourceOwnerForgetBufferIO(CurrentResourceOwner, BufferDescriptorGetBuffer(buf));
	ConditionVariableBroadcast(BufferDescriptorGetIOCV(buf));
	if (release_aio && (state & BM_PIN_COUNT_WAITER))
		wake_cleanup_waiter(buf);
}

static void
abort_buffer_io(Datum res)
{
	TerminateBufferIO(GetBufferDescriptor((int) res - 1), false, BM_IO_ERROR, false, false);
}

/* ------------------------------------------------------------------------
 * Files
 * ------------------------------------------------------------------------
 */

struct SMgrRelationData
{
	int			file;
};

static SMgrRelationData relations[FILES_MAX] = {{0}, {1}};

SMgrRelation
smgropen(RelFileLocator locator, int backend)
{
	return &relations[locator.relNumber - FIRST_NUMBER];
}

BlockNumber
smgrnblocks(SMgrRelation reln, ForkNumber forknum)
{
	SimPoint();
	return sim_nblocks;
}

/* A descriptor stands for a segment. */
int
mdfd(SMgrRelation reln, ForkNumber forknum, BlockNumber block, uint32 *offset)
{
	SimPoint();
	SIM_CHECK(block < (BlockNumber) sim_nblocks, "a block is written that is past the end of its file");
	if (SimChance(&sim_world, sim_data_faults / 8))
		SimRaise(SIM_ERROR_OTHER, SIM_NOBODY);
	*offset = block % RELSEG_SIZE * BLCKSZ;
	return reln->file * SEGMENTS_MAX + block / RELSEG_SIZE;
}

void
pgaio_io_set_target_smgr(PgAioHandle *ioh, SMgrRelation reln,
						 ForkNumber forknum, BlockNumber block, int nblocks,
						 bool skip_fsync)
{
	PgAioTargetData *td = &ioh->target_data;

	memset(td, 0, sizeof(*td));
	td->smgr.rlocator.relNumber = FIRST_NUMBER + reln->file;
	td->smgr.blockNum = block;
	td->smgr.nblocks = nblocks;
	td->smgr.skip_fsync = skip_fsync;
}

/* Write a page, and have it synced; raises an error if that fails. */
static void
smgrwrite(SMgrRelation reln, BlockNumber block, char *page)
{
	FileTag		tag = {.segno = block / RELSEG_SIZE};
	int			result = SimWriteNow(reln->file, block, 1, &page);

	tag.rlocator.relNumber = FIRST_NUMBER + reln->file;
	if (result != BLCKSZ)
	{
		SimTell("raises an error of a write: %d", result);
		SimRaise(SIM_ERROR_OTHER, SIM_NOBODY);
	}
	if (!RegisterSyncRequest(&tag, SYNC_REQUEST, false))
		SimSyncSegment(reln->file, tag.segno);
}

static void
FlushBuffer(BufferDesc *buf, SMgrRelation reln, IOObject object,
			IOContext context)
{
	char		copy[BLCKSZ] __attribute__((aligned(8)));
	uint32		state;
	XLogRecPtr	lsn;

	SIM_CHECK(LWLockHeldByMe(&buf->content_lock), "a page is written that is not locked");
	if (!StartBufferIO(buf, false, false))
		return;
	if (reln == NULL)
		reln = smgropen(BufTagGetRelFileLocator(&buf->tag), INVALID_PROC_NUMBER);
	state = LockBufHdr(buf);
	lsn = BufferGetLSN(buf);
	UnlockBufHdr(buf, state & ~BM_JUST_DIRTIED);
	if (state & BM_PERMANENT)
		XLogFlush(lsn);
	memcpy(copy, blocks[buf->buf_id], BLCKSZ);
	PageSetChecksumInplace(copy, buf->tag.blockNum);
	SimTell("writes page %d and waits", SimPageNumber(&buf->tag));
	smgrwrite(reln, buf->tag.blockNum, copy);
	TerminateBufferIO(buf, true, 0, true, false);
}

void
ScheduleBufferTagForWriteback(WritebackContext *context, IOContext io_context,
							  BufferTag *tag)
{
	SIM_CHECK(tag->blockNum < (BlockNumber) sim_nblocks, "write-back of no page is asked for");
	context->n++;
}

/* ------------------------------------------------------------------------
 * Victims
 * ------------------------------------------------------------------------
 */

int
GetAccessStrategyBufferCount(BufferAccessStrategy strategy)
{
	return strategy == NULL ? 0 : strategy->nbuffers;
}

/* The process's ring, empty. */
BufferAccessStrategy
SimMakeRing(int nbuffers, bool reads)
{
	BufferAccessStrategy ring = &locals[SimMe()].ring;

	memset(ring, 0, sizeof(*ring));
	ring->nbuffers = Min(nbuffers, RING_MAX);
	ring->reads = reads;
	return ring;
}

static BufferDesc *
next_of_ring(BufferAccessStrategy strategy, uint32 *buf_state)
{
	Buffer		buffer;
	BufferDesc *buf;
	uint32		state;

	strategy->current = (strategy->current + 1) % strategy->nbuffers;
	buffer = strategy->buffers[strategy->current];
	if (buffer == InvalidBuffer)
		return NULL;
	buf = GetBufferDescriptor(buffer - 1);
	state = LockBufHdr(buf);
	if (BUF_STATE_GET_REFCOUNT(state) == 0 && BUF_STATE_GET_USAGECOUNT(state) <= 1)
	{
		*buf_state = state;
		return buf;
	}
	UnlockBufHdr(buf, state);
	return NULL;
}

static bool
is_free(BufferAccessStrategy strategy, BufferDesc *buf, uint32 state,
		uint32 *buf_state)
{
	if (BUF_STATE_GET_REFCOUNT(state) != 0 || BUF_STATE_GET_USAGECOUNT(state) != 0)
		return false;
	if (strategy != NULL)
		strategy->buffers[strategy->current] = BufferDescriptorGetBuffer(buf);
	*buf_state = state;
	return true;
}

static BufferDesc *
pop_free(void)
{
	BufferDesc *buf = NULL;

	SpinLockAcquire(&StrategyControl->mutex);
	if (StrategyControl->first_free >= 0)
	{
		buf = GetBufferDescriptor(StrategyControl->first_free);
		StrategyControl->first_free = buf->freeNext;
		buf->freeNext = NOT_IN_LIST;
	}
	SpinLockRelease(&StrategyControl->mutex);
	return buf;
}

static void
push_free(BufferDesc *buf)
{
	SpinLockAcquire(&StrategyControl->mutex);
	if (buf->freeNext == NOT_IN_LIST)
	{
		buf->freeNext = StrategyControl->first_free;
		StrategyControl->first_free = buf->buf_id;
	}
	SpinLockRelease(&StrategyControl->mutex);
}

BufferDesc *
StrategyGetBuffer(BufferAccessStrategy strategy, uint32 *buf_state,
				  bool *from_ring)
{
	BufferDesc *buf;
	int			tries = NBuffers;

	*from_ring = false;
	if (strategy != NULL && (buf = next_of_ring(strategy, buf_state)) != NULL)
	{
		*from_ring = true;
		return buf;
	}
	pg_atomic_fetch_add_u32(&StrategyControl->numBufferAllocs, 1);
	while ((buf = pop_free()) != NULL)
	{
		uint32		state = LockBufHdr(buf);

		if (is_free(strategy, buf, state, buf_state))
			return buf;
		UnlockBufHdr(buf, state);
	}
	for (;;)
	{
		uint32		state;

		buf = GetBufferDescriptor(pg_atomic_fetch_add_u32(&StrategyControl->hand, 1) % NBuffers);
		state = LockBufHdr(buf);
		if (is_free(strategy, buf, state, buf_state))
			return buf;
		if (BUF_STATE_GET_REFCOUNT(state) == 0)
		{
			state -= BUF_USAGECOUNT_ONE;
			tries = NBuffers;
		}
		else if (--tries == 0)
		{
			UnlockBufHdr(buf, state);
			SimTell("there is no buffer without a pin");
			SimRaise(SIM_ERROR_MEMORY, SIM_NOBODY);
		}
		UnlockBufHdr(buf, state);
	}
}

/* A ring that reads leaves a page alone for which WAL would be flushed. */
static bool
reject(BufferAccessStrategy strategy, BufferDesc *buf, bool from_ring)
{
	if (!strategy->reads || !from_ring ||
		strategy->buffers[strategy->current] != BufferDescriptorGetBuffer(buf))
		return false;
	strategy->buffers[strategy->current] = InvalidBuffer;
	return true;
}

static inline uint32
BufTableHashCode(const BufferTag *tag)
{
	return SimPageNumber(tag);
}

static inline LWLock *
BufMappingPartitionLock(uint32 hash)
{
	return &partition_locks[hash % PARTITIONS];
}

static int
BufTableLookup(const BufferTag *tag, uint32 hash)
{
	SIM_CHECK(LWLockHeldByMe(BufMappingPartitionLock(hash)), "the mapping is read without its lock");
	return mapping[hash];
}

/* A victim, pinned and clean, leaves its page, unless somebody uses it. */
static bool
invalidate(BufferDesc *buf)
{
	uint32		hash = BufTableHashCode(&buf->tag);
	LWLock	   *lock = BufMappingPartitionLock(hash);
	uint32		state;

	LWLockAcquire(lock, LW_EXCLUSIVE);
	state = LockBufHdr(buf);
	if (BUF_STATE_GET_REFCOUNT(state) != 1 || (state & BM_DIRTY))
	{
		UnlockBufHdr(buf, state);
		LWLockRelease(lock);
		return false;
	}
	SIM_CHECK(!(state & BM_IO_IN_PROGRESS), "a buffer is replaced while it has I/O");
	mapping[hash] = -1;
	buf->tag.relNumber = 0;
	UnlockBufHdr(buf, BUF_STATE_GET_REFCOUNT(state));
	LWLockRelease(lock);
	return true;
}

/* One try: a victim, or NULL if somebody else uses it. */
static BufferDesc *
try_victim(BufferAccessStrategy strategy, IOContext context, bool may_suspend)
{
	BufferDesc *buf;
	uint32		state;
	bool		from_ring;

	/* seams.h: AioVictim() */
	if (aio_writes_tracked == 0 && !aio_victims_lack_wal)
		buf = StrategyGetBuffer(strategy, &state, &from_ring);
	else
		buf = AioNextVictim(strategy, &state, &from_ring, may_suspend);

	SIM_CHECK(BUF_STATE_GET_REFCOUNT(state) == 0, "a victim is pinned");
	PinBuffer_Locked(buf);
	if (state & BM_DIRTY)
	{
		bool		rejected = false;

		if (!LWLockConditionalAcquire(&buf->content_lock, LW_SHARED))
		{
			UnpinBuffer(buf);
			return NULL;
		}
		if (strategy != NULL)
			rejected = XLogNeedsFlush(BufferGetLSNAtomic(BufferDescriptorGetBuffer(buf))) &&
				reject(strategy, buf, from_ring);
		if (rejected || AioWriteVictim(buf, strategy, context, from_ring))
		{
			LWLockRelease(&buf->content_lock);
			UnpinBuffer(buf);
			return NULL;
		}
		FlushBuffer(buf, NULL, IOOBJECT_RELATION, context);
		LWLockRelease(&buf->content_lock);
	}
	if ((state & BM_TAG_VALID) && !invalidate(buf))
	{
		UnpinBuffer(buf);
		return NULL;
	}
	SIM_CHECK(buf->state.value == BUF_REFCOUNT_ONE, "a victim is not empty");
	return buf;
}

static Buffer
GetVictimBuffer(BufferAccessStrategy strategy, IOContext context,
				bool may_suspend)
{
	BufferDesc *buf;

	ReservePrivateRefCountEntry();
	ResourceOwnerEnlarge(CurrentResourceOwner);
	do
	{
		buf = try_victim(strategy, context, may_suspend);
	} while (buf == NULL);
	return BufferDescriptorGetBuffer(buf);
}

#include "storage/buffer/bufmgr_internals.c"

#include "storage/buffer/freelist_internals.c"

/* ------------------------------------------------------------------------
 * Reading
 * ------------------------------------------------------------------------
 */

static BufferTag
tag_of(int page)
{
	BufferTag	tag = {.relNumber = FIRST_NUMBER + page / BLOCKS_MAX,.blockNum = page % BLOCKS_MAX};

	return tag;
}

static BufferDesc *
pin_existing(int id, BufferAccessStrategy strategy, LWLock *lock, bool *found)
{
	*found = PinBuffer(GetBufferDescriptor(id), strategy);
	LWLockRelease(lock);
	return GetBufferDescriptor(id);
}

/* A buffer for the page, pinned, and whether it is there already. */
static BufferDesc *
allocate(int page, BufferAccessStrategy strategy, bool *found)
{
	BufferTag	tag = tag_of(page);
	LWLock	   *lock = BufMappingPartitionLock(page);
	BufferDesc *buf;
	uint32		state;

	ResourceOwnerEnlarge(CurrentResourceOwner);
	ReservePrivateRefCountEntry();
	LWLockAcquire(lock, LW_SHARED);
	if (mapping[page] >= 0)
		return pin_existing(mapping[page], strategy, lock, found);
	LWLockRelease(lock);
	buf = GetBufferDescriptor(AioVictimBuffer(&relations[page / BLOCKS_MAX], MAIN_FORKNUM, strategy,
											  strategy != NULL ? IOCONTEXT_BULKREAD : IOCONTEXT_NORMAL) - 1);
	LWLockAcquire(lock, LW_EXCLUSIVE);
	if (mapping[page] >= 0)
	{
		UnpinBuffer(buf);
		push_free(buf);
		ReservePrivateRefCountEntry();
		ResourceOwnerEnlarge(CurrentResourceOwner);
		return pin_existing(mapping[page], strategy, lock, found);
	}
	mapping[page] = buf->buf_id;
	state = LockBufHdr(buf);
	SIM_CHECK(state == (BM_LOCKED | BUF_REFCOUNT_ONE), "somebody uses a victim");
	buf->tag = tag;
	state |= BM_TAG_VALID | BUF_USAGECOUNT_ONE;
	if (!SimIsUnlogged(page))
		state |= BM_PERMANENT;
	UnlockBufHdr(buf, state);
	LWLockRelease(lock);
	*found = false;
	return buf;
}

/* May this process read it, or has somebody else? */
static bool
start_input(BufferDesc *buf)
{
	if (pgaio_have_staged())
	{
		if (StartBufferIO(buf, true, true))
			return true;
		pgaio_submit_staged();
	}
	return StartBufferIO(buf, true, false);
}

/* AsyncReadBuffers(), of one page. */
static void
read_async(ReadBuffersOperation *operation)
{
	BufferDesc *buf = GetBufferDescriptor(operation->buffer - 1);
	SMgrRelation reln = smgropen(BufTagGetRelFileLocator(&buf->tag), INVALID_PROC_NUMBER);
	PgAioHandle *ioh;
	uint64		data = AioMakeHandleData(operation->buffer, 0);
	struct iovec *iov;
	uint32		offset;
	int			fd;

	ResourceOwnerEnlarge(CurrentResourceOwner);
	ioh = pgaio_io_acquire_nb(CurrentResourceOwner, &operation->io_return);
	if (ioh == NULL)
	{
		pgaio_submit_staged();
		ResourceOwnerEnlarge(CurrentResourceOwner);
		ioh = pgaio_io_acquire(CurrentResourceOwner, &operation->io_return);
	}
	if (!start_input(buf))
	{
		pgaio_io_release(ioh);
		operation->done = true;
		return;
	}
	pgaio_io_get_wref(ioh, &operation->io_wref);
	pgaio_io_set_handle_data_64(ioh, &data, 1);
	pgaio_io_register_callbacks(ioh, SIM_HCB_READ, 0);
	if (operation->flags & READ_BUFFERS_SYNCHRONOUSLY)
		pgaio_io_set_flag(ioh, PGAIO_HF_SYNCHRONOUS);
	HOLD_INTERRUPTS();
	fd = reln->file * SEGMENTS_MAX + buf->tag.blockNum / RELSEG_SIZE;
	offset = buf->tag.blockNum % RELSEG_SIZE * BLCKSZ;
	pgaio_io_set_target_smgr(ioh, reln, MAIN_FORKNUM, buf->tag.blockNum, 1, false);
	pgaio_io_get_iovec(ioh, &iov);
	iov[0].iov_base = BufferGetBlock(operation->buffer);
	iov[0].iov_len = BLCKSZ;
	pgaio_io_start_readv(ioh, fd, 1, offset);
	RESUME_INTERRUPTS();
}

static PgAioResult
read_complete(PgAioHandle *ioh, PgAioResult prior, uint8 cb_data)
{
	uint8		n;
	Buffer		buffer = AioHandleDataBuffer(pgaio_io_get_handle_data(ioh, &n)[0]);
	BufferDesc *buf = GetBufferDescriptor(buffer - 1);
	bool		ok = prior.result == BLCKSZ;

	if (ok)
	{
		SimPage    *page = SimBufferPage(buffer);
		SimPage    *newest = &sim_newest[SimPageNumber(&buf->tag)];

		SIM_CHECK(page->number == newest->number && page->checksum == SimChecksum(page), "a page is read from another place");
		SIM_CHECK(page->lsn == newest->lsn && page->body == newest->body && page->hints == newest->hints,
				  "a page is read that is not the newest one");
	}
	else
	{
		prior.status = PGAIO_RS_ERROR;
		prior.id = SIM_HCB_READ;
	}
	TerminateBufferIO(buf, false, ok ? BM_VALID : BM_IO_ERROR, false, true);
	return prior;
}

static void
stage_read(PgAioHandle *ioh, uint8 cb_data)
{
	uint8		n;
	Buffer		buffer = AioHandleDataBuffer(pgaio_io_get_handle_data(ioh, &n)[0]);
	BufferDesc *buf = GetBufferDescriptor(buffer - 1);
	uint32		state;
	PgAioWaitRef wref;

	pgaio_io_get_wref(ioh, &wref);
	state = LockBufHdr(buf);
	SIM_CHECK((state & (BM_VALID | BM_IO_IN_PROGRESS)) == BM_IO_IN_PROGRESS, "a page is read that is there");
	buf->io_wref = wref;
	AioUnlockStagedBuffer(buf, state + BUF_REFCOUNT_ONE);
	ResourceOwnerForgetBufferIO(CurrentResourceOwner, buffer);
}

const PgAioHandleCallbacks sim_read_cb = {
	.stage = stage_read,
	.complete_shared = read_complete,
};

/* Returns whether it has to be waited for. */
bool
SimStartRead(int page, BufferAccessStrategy strategy,
			 ReadBuffersOperation *operation)
{
	bool		found;
	BufferDesc *buf = allocate(page, strategy, &found);

	operation->buffer = BufferDescriptorGetBuffer(buf);
	operation->done = found;
	pgaio_wref_clear(&operation->io_wref);
	if (!found)
		read_async(operation);
	return !operation->done;
}

void
SimWaitRead(ReadBuffersOperation *operation)
{
	while (!operation->done)
	{
		if (!pgaio_wref_check_done(&operation->io_wref))
			pgaio_wref_wait(&operation->io_wref);
		SIM_CHECK(operation->io_return.result.status != PGAIO_RS_UNKNOWN, "a read is complete without a result");
		if (operation->io_return.result.status == PGAIO_RS_ERROR)
			SimRaise(SIM_ERROR_OTHER, SIM_NOBODY);
		operation->done = true;
	}
}

Buffer
SimReadBuffer(int page, BufferAccessStrategy strategy)
{
	ReadBuffersOperation operation = {.flags = READ_BUFFERS_SYNCHRONOUSLY};

	if (SimStartRead(page, strategy, &operation))
		SimWaitRead(&operation);
	return operation.buffer;
}

/* ------------------------------------------------------------------------
 * Locking and changing
 * ------------------------------------------------------------------------
 */

static void
check_contents(Buffer buffer)
{
	BufferDesc *buf = GetBufferDescriptor(buffer - 1);
	const SimPage *page = SimBufferPage(buffer);
	const SimPage *newest = &sim_newest[page->number];

	SIM_CHECK(SimPageNumber(&buf->tag) == (int) page->number, "a buffer has another page than it should");
	SIM_CHECK(page->lsn == newest->lsn && page->body == newest->body, "a buffer has not the newest contents");
}

void
SimLockBuffer(Buffer buffer, LWLockMode mode)
{
	LWLockAcquire(&GetBufferDescriptor(buffer - 1)->content_lock, mode);
	check_contents(buffer);
}

void
SimUnlockBuffer(Buffer buffer)
{
	LWLockRelease(&GetBufferDescriptor(buffer - 1)->content_lock);
}

/* Lock it when nobody else has it pinned; false if somebody else waits so. */
bool
SimLockForCleanup(Buffer buffer)
{
	BufferDesc *buf = GetBufferDescriptor(buffer - 1);

	for (;;)
	{
		uint32		state;

		SimLockBuffer(buffer, LW_EXCLUSIVE);
		state = LockBufHdr(buf);
		if (BUF_STATE_GET_REFCOUNT(state) == 1)
		{
			UnlockBufHdr(buf, state);
			return true;
		}
		if (state & BM_PIN_COUNT_WAITER)
		{
			UnlockBufHdr(buf, state);
			SimUnlockBuffer(buffer);
			return false;
		}
		buf->wait_backend_pgprocno = MyProcNumber;
		locals[SimMe()].cleanup_wait = buf;
		UnlockBufHdr(buf, state | BM_PIN_COUNT_WAITER);
		SimUnlockBuffer(buffer);

		/* the seam */
		AioBeforeCleanupWait(buf);
		SimSleep(NEVER);
		MyLatch->is_set = false;
		CHECK_FOR_INTERRUPTS();

		state = LockBufHdr(buf);
		if ((state & BM_PIN_COUNT_WAITER) && buf->wait_backend_pgprocno == MyProcNumber)
			state &= ~BM_PIN_COUNT_WAITER;
		locals[SimMe()].cleanup_wait = NULL;
		UnlockBufHdr(buf, state);
	}
}

void
SimMarkDirty(Buffer buffer)
{
	BufferDesc *buf = GetBufferDescriptor(buffer - 1);

	SIM_CHECK(buf->content_lock.owner == sim_me, "a page is changed that is not locked");
	wait_for_header(buf);
	buf->state.value |= BM_DIRTY | BM_JUST_DIRTIED;
}

/* MarkBufferDirtyHint(): with the page share-locked, and without WAL. */
void
SimSetHint(Buffer buffer)
{
	BufferDesc *buf = GetBufferDescriptor(buffer - 1);
	SimPage    *page = SimBufferPage(buffer);

	buf->changing++;
	page->hints++;
	sim_newest[page->number].hints = page->hints;
	SimPoint();
	if ((pg_atomic_read_u32(&buf->state) & (BM_DIRTY | BM_JUST_DIRTIED)) != (BM_DIRTY | BM_JUST_DIRTIED))
	{
		uint32		state = LockBufHdr(buf);

		UnlockBufHdr(buf, state | BM_DIRTY | BM_JUST_DIRTIED);
	}
	buf->changing--;
}

/* ------------------------------------------------------------------------
 * Writing many
 * ------------------------------------------------------------------------
 */

static bool
is_dirty(uint32 state)
{
	return (state & (BM_VALID | BM_DIRTY)) == (BM_VALID | BM_DIRTY);
}

/* Pinned: write it, by our seam or without. */
static void
write_pinned(BufferDesc *buf)
{
	LWLockAcquire(&buf->content_lock, LW_SHARED);
	/* the seam */
	if (!AioFlushBuffer(buf))
		FlushBuffer(buf, NULL, IOOBJECT_RELATION, IOCONTEXT_NORMAL);
	LWLockRelease(&buf->content_lock);
	UnpinBuffer(buf);
}

static void
sync_one(int id, bool skip_recently_used)
{
	BufferDesc *buf = GetBufferDescriptor(id);
	uint32		state;

	ReservePrivateRefCountEntry();
	ResourceOwnerEnlarge(CurrentResourceOwner);
	state = LockBufHdr(buf);
	if (!is_dirty(state) ||
		(skip_recently_used && (BUF_STATE_GET_REFCOUNT(state) != 0 || BUF_STATE_GET_USAGECOUNT(state) != 0)))
	{
		UnlockBufHdr(buf, state);
		return;
	}
	PinBuffer_Locked(buf);
	write_pinned(buf);
}

/* The checkpointer: all that are dirty now, and permanent unless 'all'. */
void
SimBufferSync(bool all)
{
	uint32		mask = BM_DIRTY | (all ? 0 : BM_PERMANENT);
	int			ids[BUFFERS_MAX];
	int			n = 0;

	for (int page_order = 0; page_order < NBuffers; page_order++)
	{
		BufferDesc *buf = GetBufferDescriptor(page_order);
		uint32		state = LockBufHdr(buf);

		if ((state & mask) == mask)
		{
			state |= BM_CHECKPOINT_NEEDED;
			ids[n++] = page_order;
		}
		UnlockBufHdr(buf, state);
	}
	if (n == 0)
		return;
	for (int i = 1; i < n; i++)
	{
		int			id = ids[i];
		int			j = i;

		for (; j > 0 && SimPageNumber(&sim_buffers[ids[j - 1]].tag) > SimPageNumber(&sim_buffers[id].tag); j--)
			ids[j] = ids[j - 1];
		ids[j] = id;
	}
	AioBeginBufferFlush();
	for (int i = 0; i < n; i++)
	{
		if (pg_atomic_read_u32(&sim_buffers[ids[i]].state) & BM_CHECKPOINT_NEEDED)
			sync_one(ids[i], false);
		if (SimChance(&sim_world, 100))
			SimSleep(SimUpTo(&sim_world, sim_disk_time));
		if (SimChance(&sim_world, 100))
			SimAbsorbSyncRequests();
	}
	AioFinishBufferFlush();
}

/* The background writer: what is about to be a victim. */
void
SimBackgroundPass(void)
{
	uint32		hand = pg_atomic_read_u32(&StrategyControl->hand);
	int			n = SimUpTo(&sim_world, NBuffers);

	pg_atomic_exchange_u32(&StrategyControl->numBufferAllocs, 0);
	for (int i = 0; i < n; i++)
		sync_one((hand + i) % NBuffers, true);
}

/* FlushRelationBuffers(): what the relation is now, is on disk. */
void
SimFlushRelation(int file)
{
	RelFileLocator locator = {.relNumber = FIRST_NUMBER + file};
	XLogRecPtr	before[BLOCKS_MAX];

	for (int i = 0; i < BLOCKS_MAX; i++)
		before[i] = sim_newest[file * BLOCKS_MAX + i].lsn;
	AioBeginBufferFlush();
	for (int i = 0; i < NBuffers; i++)
	{
		BufferDesc *buf = GetBufferDescriptor(i);
		uint32		state;

		if (!BufTagMatchesRelFileLocator(&buf->tag, &locator))
			continue;
		ReservePrivateRefCountEntry();
		ResourceOwnerEnlarge(CurrentResourceOwner);
		state = LockBufHdr(buf);
		if (BufTagMatchesRelFileLocator(&buf->tag, &locator) && is_dirty(state))
		{
			PinBuffer_Locked(buf);
			write_pinned(buf);
		}
		else
			UnlockBufHdr(buf, state);
	}
	AioFinishBufferFlush();
	for (int i = 0; i < BLOCKS_MAX; i++)
		SIM_CHECK(SimOnDisk(file * BLOCKS_MAX + i)->lsn >= before[i], "a relation is flushed, and a page is not written");
}

/* ------------------------------------------------------------------------
 * Start, errors and end
 * ------------------------------------------------------------------------
 */

void
SimBuffersReset(int nbuffers)
{
	NBuffers = nbuffers;
	memset(sim_buffers, 0, sizeof(sim_buffers));
	memset(blocks, 0, sizeof(blocks));
	memset(partition_locks, 0, sizeof(partition_locks));
	memset(sim_io_cvs, 0, sizeof(sim_io_cvs));
	for (int i = 0; i < PAGES_MAX; i++)
		mapping[i] = -1;
	for (int i = 0; i < nbuffers; i++)
	{
		sim_buffers[i].buf_id = i;
		sim_buffers[i].freeNext = i + 1 < nbuffers ? i + 1 : -1;
		pgaio_wref_clear(&sim_buffers[i].io_wref);
	}
	memset(&strategy_shared, 0, sizeof(strategy_shared));
}

void
SimBuffersInit(void)
{
	memset(&locals[SimMe()], 0, sizeof(BufferLocals));
}

/* An error: before resources are released. */
void
SimBuffersAbort(void)
{
	BufferDesc *buf = locals[SimMe()].cleanup_wait;
	uint32		state;

	if (buf == NULL)
		return;
	state = LockBufHdr(buf);
	if ((state & BM_PIN_COUNT_WAITER) && buf->wait_backend_pgprocno == MyProcNumber)
		state &= ~BM_PIN_COUNT_WAITER;
	UnlockBufHdr(buf, state);
	locals[SimMe()].cleanup_wait = NULL;
}

/* All have ended: nothing is in use, and nothing dirty if it is to be clean. */
void
SimBuffersCheckIdle(bool clean)
{
	for (int i = 0; i < NBuffers; i++)
	{
		const BufferDesc *buf = &sim_buffers[i];
		uint32		state = buf->state.value;

		SIM_CHECK(BUF_STATE_GET_REFCOUNT(state) == 0, "a pin is left");
		SIM_CHECK(!(state & (BM_LOCKED | BM_IO_IN_PROGRESS)), "a buffer is left locked, or with I/O");
		SIM_CHECK(buf->content_lock.owner == NULL && buf->content_lock.sharers == 0, "a page is left locked");
		SIM_CHECK(!clean || !(state & BM_DIRTY), "a page is left dirty by a checkpoint that ends the server");
	}
}
