/*-------------------------------------------------------------------------
 *
 * wal_server.c
 *	  What xlog.c and upstream's AIO do around the pipeline of WAL, and what
 *	  the pipeline promises them.
 *
 * The WAL buffers are a ring of small pages.  Whoever inserts a record reserves
 * its place, copies it page by page, and makes room for a page by replacing the
 * oldest one.  Each page begins with its address, and each record with its
 * length, where the one before begins, and a checksum; the rest is random.  All
 * is remembered, so that what is on disk can be compared with it.
 *
 * Recovery goes by these rules and by nothing else, as the server's does: what
 * it takes for WAL should be what this life has inserted, and no earlier one.
 *
 * Writes in flight are completed by an I/O worker, or as with io_uring by
 * whoever looks for them: until somebody does, one that the disk has done is
 * not complete.
 *
 * Invariants: flushed <= written <= inserted, and written <= flushed +
 * aio_wal_span; what is written can be read from the file, and what is flushed
 * survives a loss of power, when the position advances; segments are finished
 * once, in order, when they are flushed; no page is replaced before it is
 * written, nor while it is; a write contains pages that are in the buffers.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "aio/shared_state.h"
#include "aio/wal.h"
#include "miscadmin.h"
#include "postmaster/walwriter.h"
#include "replication/walsender.h"
#include "wal_internal.h"
#include "wal_world.h"

#define BUFFERS_MAX		64
#define WAL_MAX			(256 * 1024)	/* bytes, in one seed */
#define HANDLES			4		/* of each process */
#define RECORD_MAX		(4 * SEGMENT_MAX)

/* what a page begins with */
#define PAGE_HEADER		8
#define PAGE_MAGIC		0x5741

typedef struct RecordHeader
{
	uint32		length;			/* all of it, but not headers of pages */
	uint32		prev;			/* where the one before begins */
	uint32		checksum;
} RecordHeader;

const uint64 aio_wal_span = SEGMENT_MAX;

int			wal_segment_size;
int			wal_sync_method;
bool		enableFsync = true;
int			CommitDelay;
int			CommitSiblings;
int			WalWriterFlushAfter;
int			max_wal_senders;
bool		sim_with_workers;
int			sim_one_size;
int			sim_method;
int			sim_syncs;
int			sim_write_ahead;

static void *pipeline_memory;
static const AioSharedState *pipeline_part;

/* bytes of WAL, by position from 'origin' */
static XLogRecPtr origin;
static char expected[WAL_MAX];

/* where recovery begins, and the record before that */
static XLogRecPtr redo_at;
static XLogRecPtr redo_prev;

/* as in xlog.c */
static XLogRecPtr reserved;		/* up to here */
static XLogRecPtr last_record;	/* the last that has been */
static XLogRecPtr inserted;		/* logInsertResult */
XLogRecPtr	sim_write_result;
XLogRecPtr	sim_flush_result;
static XLogRecPtr request;		/* LogwrtRqst.Write */
static XLogRecPtr async_upto;
static XLogRecPtr initialized;
static int	nbuffers;
static XLogRecPtr page_ends[BUFFERS_MAX];
static char pages[BUFFERS_MAX * XLOG_BLCKSZ];
static LWLock mapping_lock;

static XLogSegNo next_finished;
static XLogRecPtr kept_from;	/* what was before may be removed */
static XLogRecPtr senders_know;
static int	nsyncing;			/* sessions that sync */

/* ------------------------------------------------------------------------
 * How far WAL has got
 * ------------------------------------------------------------------------
 */

static char *
expected_at(XLogRecPtr ptr)
{
	SIM_CHECK(ptr >= origin && ptr - origin < WAL_MAX, "there is too much WAL");
	return &expected[ptr - origin];
}

void
AioWalResult(XLogRecPtr *written, XLogRecPtr *flushed)
{
	SimPoint();
	sim_me->flushed = sim_flush_result;
	SimPoint();
	sim_me->written = sim_write_result;
	*written = sim_me->written;
	*flushed = sim_me->flushed;
}

static void
check_disk(XLogRecPtr from, XLogRecPtr to, bool durable, const char *what)
{
	for (XLogRecPtr ptr = from; ptr < to; ptr++)
	{
		if (SimDiskByte(ptr, durable) != *expected_at(ptr))
		{
			SimTell("%" PRIu64 " is missing, of %" PRIu64 " to %" PRIu64, ptr, from, to);
			SimFail(__FILE__, __LINE__, what);
		}
	}
}

void
AioWalAdvance(XLogRecPtr written, XLogRecPtr flushed)
{
	SIM_CHECK(flushed <= written, "what is not written is flushed");
	SIM_CHECK(written <= inserted, "what is not inserted is written");
	SIM_CHECK(written <= Max(flushed, sim_flush_result) + aio_wal_span, "recovery would not look behind what is written");
	check_disk(sim_write_result, written, false, "what is not in the file is written");
	check_disk(sim_flush_result, flushed, true, "what is not on disk is flushed");
	if (written > sim_write_result || flushed > sim_flush_result)
		SimTell("written %" PRIu64 " flushed %" PRIu64, written, flushed);
	sim_me->owes_wakeup |= flushed > sim_flush_result && max_wal_senders > 0;
	sim_write_result = Max(sim_write_result, written);
	SimPoint();
	sim_flush_result = Max(sim_flush_result, flushed);
}

XLogRecPtr
AioWalRequest(void)
{
	SimPoint();
	return request;
}

XLogRecPtr
AioWalInserted(void)
{
	SimPoint();
	return inserted;
}

/* Wait for insertions before 'upto'; returns how far all are done. */
XLogRecPtr
AioWalWaitForInsertions(XLogRecPtr upto)
{
	XLogRecPtr	finished;

	SimPoint();
	if (upto <= inserted)
		return inserted;
	SimPoint();
	finished = reserved;
	upto = Min(upto, finished);
	for (int i = 0; i < sim_nprocesses; i++)
	{
		SimProcess *other = &sim_processes[i];

		SimPoint();
		while (other->inserting && other->inserting_at < upto)
		{
			SIM_CHECK(other != sim_me, "somebody waits for his own insertion");
			SIM_CHECK(WALWriteLock->owner != sim_me, "somebody waits for an insertion that may wait for his lock");
			SimWait(&other->inserting, NEVER, false);
		}
		if (other->inserting)
			finished = Min(finished, other->inserting_at);
	}
	SimPoint();
	inserted = Max(inserted, finished);
	return inserted;
}

TimeLineID
AioWalTimeLine(void)
{
	return 1;
}

/* ------------------------------------------------------------------------
 * Buffers
 * ------------------------------------------------------------------------
 */

static int
buffer_of(XLogRecPtr ptr)
{
	return ptr / XLOG_BLCKSZ % nbuffers;
}

int
AioWalBufferPages(void)
{
	return nbuffers;
}

char *
AioWalBuffers(XLogRecPtr page, XLogRecPtr end, Size *nbytes)
{
	int			first = buffer_of(page);
	int			n = 0;

	SIM_CHECK(page % XLOG_BLCKSZ == 0 && page < end, "a write does not begin with a page");
	for (XLogRecPtr next = page; next < end && first + n < nbuffers; next += XLOG_BLCKSZ)
		SIM_CHECK(page_ends[first + n++] == next + XLOG_BLCKSZ, "a page is written that is not in the buffers");
	*nbytes = n * XLOG_BLCKSZ;
	return pages + first * XLOG_BLCKSZ;
}

static void
replace_page(int buffer)
{
	char	   *page = pages + buffer * XLOG_BLCKSZ;

	SIM_CHECK(page_ends[buffer] <= sim_write_result, "a page is replaced that is not written");
	SIM_CHECK(!SimDiskReads(page, NULL), "a page is replaced while it is being written");
	page_ends[buffer] = InvalidXLogRecPtr;
	memset(page, 0, XLOG_BLCKSZ);
	initialized += XLOG_BLCKSZ;
	SimPoint();
	page_ends[buffer] = initialized;
}

/* The page at 'initialized' needs this buffer, which is not written. */
static void
make_room(XLogRecPtr upto)
{
	XLogRecPtr	written;
	XLogRecPtr	flushed;

	request = Max(request, upto);
	LWLockRelease(&mapping_lock);
	AioWalWaitForInsertions(upto);
	LWLockAcquire(WALWriteLock, LW_EXCLUSIVE);
	AioWalResult(&written, &flushed);
	if (written >= upto)
		LWLockRelease(WALWriteLock);
	else
	{
		SIM_CHECK(AioFreeWalBuffers(upto, 1), "the pipeline is not used");
		AioWalResult(&written, &flushed);
		SIM_CHECK(written >= upto, "no room has been made");
	}
	LWLockAcquire(&mapping_lock, LW_EXCLUSIVE);
}

/* Have pages in the buffers up to the one that holds 'ptr'; or as can be. */
static void
advance_buffers(XLogRecPtr ptr, bool opportunistic)
{
	LWLockAcquire(&mapping_lock, LW_EXCLUSIVE);
	while (ptr >= initialized || opportunistic)
	{
		int			buffer = buffer_of(initialized);

		if (page_ends[buffer] > sim_write_result)
		{
			if (opportunistic)
				break;
			make_room(page_ends[buffer]);
			continue;
		}
		replace_page(buffer);
	}
	LWLockRelease(&mapping_lock);
}

/* The bytes from 'ptr' to 'end', which are in one page. */
static void
copy_into_page(XLogRecPtr ptr, XLogRecPtr end)
{
	int			buffer = buffer_of(ptr);
	XLogRecPtr	page_end = ptr - ptr % XLOG_BLCKSZ + XLOG_BLCKSZ;

	SimPoint();
	if (page_ends[buffer] != page_end)
	{
		sim_me->inserting_at = ptr;
		SimWake(&sim_me->inserting);
		advance_buffers(ptr, false);
		SIM_CHECK(page_ends[buffer] == page_end, "a page is not in the buffers");
	}
	while (ptr < end)
	{
		int			n = 1 + SimUpTo(&sim_world, end - ptr - 1);

		memcpy(pages + buffer * XLOG_BLCKSZ + ptr % XLOG_BLCKSZ, expected_at(ptr), n);
		ptr += n;
		SimPoint();
	}
}

static void
make_page_header(char *header, XLogRecPtr page)
{
	uint32		words[2] = {PAGE_MAGIC, page};

	memcpy(header, words, PAGE_HEADER);
}

bool
AioWalPageIs(const char *page, XLogRecPtr ptr)
{
	char		header[PAGE_HEADER];

	make_page_header(header, ptr);
	return memcmp(page, header, PAGE_HEADER) == 0;
}

/* Where so many bytes end that begin here, with headers of pages. */
static XLogRecPtr
advance(XLogRecPtr ptr, Size size)
{
	while (size > 0)
	{
		Size		room;

		if (ptr % XLOG_BLCKSZ == 0)
			ptr += PAGE_HEADER;
		room = Min(size, XLOG_BLCKSZ - ptr % XLOG_BLCKSZ);
		ptr += room;
		size -= room;
	}
	return ptr;
}

static uint32
checksum(const RecordHeader *header, const char *record)
{
	uint32		sum = header->length * 31 + header->prev;

	for (Size i = sizeof(RecordHeader); i < header->length; i++)
		sum = (sum ^ (unsigned char) record[i]) * 16777619;
	return sum;
}

/* What is to be inserted from 'start' to 'end'. */
static void
make_record(XLogRecPtr start, XLogRecPtr end, XLogRecPtr prev)
{
	char		record[RECORD_MAX];
	RecordHeader header = {0, prev, 0};
	Size		done = 0;

	for (XLogRecPtr ptr = start; ptr < end; ptr++)
		header.length += ptr % XLOG_BLCKSZ >= PAGE_HEADER;
	SIM_CHECK(header.length >= sizeof(header) && header.length <= RECORD_MAX, "a record is of no length");
	for (Size i = sizeof(header); i < header.length; i++)
		record[i] = (char) pg_prng_uint64(&sim_world);
	header.checksum = checksum(&header, record);
	memcpy(record, &header, sizeof(header));
	for (XLogRecPtr ptr = start; ptr < end; ptr++)
	{
		if (ptr % XLOG_BLCKSZ == 0)
			make_page_header(expected_at(ptr), ptr);
		if (ptr % XLOG_BLCKSZ >= PAGE_HEADER)
			*expected_at(ptr) = record[done++];
	}
}

/* Reserve its place, up to 'end', and insert it. */
static XLogRecPtr
insert_record(XLogRecPtr end)
{
	XLogRecPtr	start = reserved;
	XLogRecPtr	ptr = start;

	expected_at(end);
	reserved = end;
	make_record(start, end, last_record);
	last_record = start;
	SimTell("inserts %" PRIu64 " to %" PRIu64, start, end);
	while (ptr < end)
	{
		XLogRecPtr	next = Min(end, ptr - ptr % XLOG_BLCKSZ + XLOG_BLCKSZ);

		copy_into_page(ptr, next);
		ptr = next;
	}
	sim_me->inserting = false;
	sim_me->inserting_at = 0;
	SimWake(&sim_me->inserting);
	SimPoint();
	if (start / XLOG_BLCKSZ != end / XLOG_BLCKSZ)
		request = Max(request, end);
	CritSectionCount--;
	AioWalRecordInserted(end);
	return end;
}

/* Insert a record of so many bytes; returns where it ends. */
XLogRecPtr
SimInsert(Size size)
{
	CritSectionCount++;
	SimPoint();
	sim_me->inserting = true;
	SimPoint();
	size = sim_one_size > 0 ? (Size) sim_one_size : Max(size, sizeof(RecordHeader));
	return insert_record(advance(reserved, size));
}

/* Insert what fills the segment, if something is in it. */
XLogRecPtr
SimSwitchSegment(void)
{
	XLogRecPtr	start;

	CritSectionCount++;
	SimPoint();
	sim_me->inserting = true;
	SimPoint();
	start = reserved;
	if (start % wal_segment_size != 0)
	{
		XLogRecPtr	end = start - start % wal_segment_size + wal_segment_size;

		/* what does not fit there fills the next one, too */
		if (end - start < sizeof(RecordHeader))
			end += wal_segment_size;
		return insert_record(end);
	}
	sim_me->inserting = false;
	SimWake(&sim_me->inserting);
	CritSectionCount--;
	return start;
}

XLogRecPtr
SimInsertEnd(void)
{
	return reserved;
}

/* ------------------------------------------------------------------------
 * Flushes
 * ------------------------------------------------------------------------
 */

bool
RecoveryInProgress(void)
{
	return false;
}

void
XLogFlush(XLogRecPtr upto)
{
	SIM_CHECK(sim_me->nlwlocks == 0, "a process flushes with a lock held");
	if (upto <= sim_me->flushed)
		return;
	START_CRIT_SECTION();
	SIM_CHECK(AioFlushWal(upto, 1), "the pipeline is not used");
	END_CRIT_SECTION();
	WalSndWakeupProcessRequests(true, true);
	SIM_CHECK(!sim_me->owes_wakeup, "walsenders are not told of a flush");
	SIM_CHECK(sim_flush_result >= upto, "a flush returns before all is flushed");
}

bool
XLogBackgroundFlush(void)
{
	XLogRecPtr	write = request - request % XLOG_BLCKSZ;
	XLogRecPtr	flush;
	XLogRecPtr	written;
	XLogRecPtr	flushed;

	AioWalResult(&written, &flushed);
	if (write <= flushed)
		write = async_upto;
	if (write <= flushed)
		return false;
	flush = SimChance(&sim_world, 500) ? write : 0;
	START_CRIT_SECTION();
	AioWalWaitForInsertions(write);
	LWLockAcquire(WALWriteLock, LW_EXCLUSIVE);
	AioWalResult(&written, &flushed);
	if (write > written || flush > flushed)
		SIM_CHECK(AioWriteWalInBackground(write, flush, 1), "the pipeline is not used");
	LWLockRelease(WALWriteLock);
	END_CRIT_SECTION();
	WalSndWakeupProcessRequests(true, true);
	advance_buffers(InvalidXLogRecPtr, true);
	return true;
}

void
XLogSetAsyncXactLSN(XLogRecPtr upto)
{
	SimPoint();
	async_upto = Max(async_upto, upto);
	if (SimChance(&sim_world, 500))
		AioWalWakeWriter();
}

void
WalSndWakeup(bool physical, bool logical)
{
	SimPoint();
	senders_know = sim_flush_result;
	sim_me->owes_wakeup = false;
}

void
WalSndWakeupRequest(void)
{
	sim_me->wakes_senders = true;
}

void
WalSndWakeupProcessRequests(bool physical, bool logical)
{
	if (sim_me->wakes_senders && max_wal_senders > 0)
		WalSndWakeup(physical, logical);
	sim_me->wakes_senders = false;
}

/* ------------------------------------------------------------------------
 * Files
 * ------------------------------------------------------------------------
 */

int
AioWalOpenSegment(XLogSegNo segno, TimeLineID tli, int sync_method,
				  bool may_wait)
{
	SimInode   *inode = SimInodeOf(segno);

	SimPoint();
	if (inode == NULL || SimChance(&sim_world, sim_faults / 4))
	{
		errno = inode == NULL ? ENOENT : EMFILE;
		return -1;
	}
	if (SimChance(&sim_world, 50))
		pg_usleep(SimUpTo(&sim_world, 3 * sim_disk_time));
	return SimFileOpen(inode, sync_method);
}

static void
create_segment(XLogSegNo segno)
{
	if (SimInodeOf(segno) != NULL)
		return;
	SimTell("creates segment %" PRIu64, segno);
	pg_usleep(SimUpTo(&sim_world, 3 * sim_disk_time));
	if (SimInodeOf(segno) == NULL)
		SimInodeMake(segno);
}

int
XLogFileInit(XLogSegNo segno, TimeLineID tli)
{
	create_segment(segno);
	return SimFileOpen(SimInodeOf(segno), wal_sync_method);
}

void
AioWalTryCreateSegment(XLogSegNo segno, TimeLineID tli)
{
	SIM_CHECK(CritSectionCount == 0, "a segment is created where an error cannot be raised");
	SIM_CHECK((segno + 1) * wal_segment_size > kept_from, "a segment is created again that was removed");
	if (!SimChance(&sim_world, sim_faults))
		create_segment(segno);
}

void
AioWalSegmentFinished(XLogSegNo segno, TimeLineID tli)
{
	SimTell("segment %" PRIu64 " is finished", segno);
	SIM_CHECK(LWLockHeldByMeInMode(WALWriteLock, LW_EXCLUSIVE), "a segment is finished without the lock");
	SIM_CHECK(segno == next_finished, "segments are not finished in order");
	SIM_CHECK((segno + 1) * wal_segment_size <= sim_flush_result, "a segment is finished that is not flushed");
	next_finished = segno + 1;
}

ssize_t
AioWalPwrite(int fd, const char *from, Size nbytes, uint32 offset)
{
	int			result = SimDiskWriteNow(fd, from, nbytes, offset);

	SimTell("wrote %d of %zu bytes to segment %" PRIu64 ", %u", result, nbytes,
			SimInodeSegment(SimFileInode(fd)), offset);
	errno = result < 0 ? -result : 0;
	return Max(result, -1);
}

int
AioWalFdatasync(int fd)
{
	int			result;

	/* the WAL writer is not bound by the limit of sessions */
	nsyncing += sim_me != sim_processes;
	SIM_CHECK(nsyncing <= sim_syncs, "there are too many syncs in flight");
	result = SimDiskSync(fd);
	nsyncing -= sim_me != sim_processes;
	errno = -result;
	return result == 0 ? 0 : -1;
}

void
issue_xlog_fsync(int fd, XLogSegNo segno, TimeLineID tli)
{
	if (AioWalFdatasync(fd) != 0)
		ereport(PANIC, (errcode_for_file_access(), errmsg("could not sync")));
}

void
ReserveExternalFD(void)
{
	sim_me->external_fds++;
}

void
ReleaseExternalFD(void)
{
	SIM_CHECK(sim_me->external_fds > 0, "a file is released that was not reserved");
	sim_me->external_fds--;
}

/* ------------------------------------------------------------------------
 * Writes in flight
 * ------------------------------------------------------------------------
 */

typedef enum HandleState
{
	IDLE,
	HANDED_OUT,
	QUEUED,						/* for an I/O worker */
	WRITING,
	COMPLETING,
	COMPLETE,					/* its owner does not know yet */
} HandleState;

struct PgAioHandle
{
	HandleState state;
	uint64		generation;
	SimProcess *owner;
	int			fd;
	AioWalTarget target;
	char	   *from;
	Size		nbytes;
	uint32		offset;
	uint64		number;
	SimDiskOp  *op;
};

static PgAioHandle handles[PROCESSES_MAX * HANDLES];
static PgAioHandle *queued[PROCESSES_MAX * HANDLES];
static int	nqueued;

/* what an I/O worker waits for */
static const char work;

bool
AioWalInUse(void)
{
	return true;
}

bool
AioWalMayStartWrites(void)
{
	return true;
}

/* The disk, or an I/O worker, has done it: the same for whoever notices. */
static void
complete(PgAioHandle *ioh, int result)
{
	SIM_CHECK(ioh->state == WRITING, "a write is completed twice");
	ioh->state = COMPLETING;
	if (ioh->op != NULL)
		SimDiskForget(ioh->op);
	ioh->op = NULL;
	SimTell("write %" PRIu64 " ends with %d", ioh->number, result);
	CritSectionCount++;
	AioWalEndWrite(&ioh->target, ioh->from, ioh->nbytes, ioh->offset, result);
	SIM_CHECK(result != -EIO || !AioWalMethodSyncsWrites(ioh->target.sync_method),
			  "a sync may have failed, and the next one is believed");
	AioWalWriteComplete(ioh->number);
	SIM_CHECK(!sim_me->owes_wakeup || sim_me->wakes_senders, "walsenders are not told of a write that flushes");
	CritSectionCount--;
	ioh->state = COMPLETE;
	SimWake(ioh);
}

/* With io_uring: complete it, if the disk has done it. */
static bool
reap(PgAioHandle *ioh)
{
	int			result;

	if (ioh->state != WRITING || sim_with_workers || ioh->op == NULL ||
		!SimDiskDone(ioh->op, &result))
		return false;
	complete(ioh, result);
	return true;
}

bool
AioWalMayStartNow(void)
{
	if (!SimChance(&sim_world, 950))
		return false;
	for (int i = 0; i < (int) lengthof(handles); i++)
	{
		if (handles[i].owner == sim_me)
			reap(&handles[i]);
	}
	return true;
}

PgAioHandle *
AioWalHandle(PgAioWaitRef *wref)
{
	PgAioHandle *mine = &handles[(sim_me - sim_processes) * HANDLES];

	for (PgAioHandle *ioh = mine; ioh < mine + HANDLES; ioh++)
	{
		if (ioh->state != IDLE && ioh->state != COMPLETE)
			continue;
		ioh->owner = sim_me;
		ioh->state = HANDED_OUT;
		ioh->generation++;
		wref->handle = ioh;
		wref->generation = ioh->generation;
		return ioh;
	}
	return NULL;
}

void
AioWalSubmit(PgAioHandle *ioh, int fd, const AioWalTarget *target, char *from,
			 Size nbytes, uint32 offset, uint64 number)
{
	SIM_CHECK(ioh->state == HANDED_OUT, "a handle is used twice");
	SimTell("submits write %" PRIu64 ": %zu bytes to segment %" PRIu64 ", %u, method %d",
			number, nbytes, AioWalTargetSegment(target), offset, target->sync_method);
	SIM_CHECK(SimFileInode(fd) == SimInodeOf(AioWalTargetSegment(target)) &&
			  SimFileSyncMethod(fd) == target->sync_method,
			  "a file is written that is not the target");
	SimPoint();
	ioh->fd = fd;
	ioh->target = *target;
	ioh->from = from;
	ioh->nbytes = nbytes;
	ioh->offset = offset;
	ioh->number = number;
	ioh->op = NULL;
	if (sim_with_workers)
	{
		ioh->state = QUEUED;
		queued[nqueued++] = ioh;
		SimWake(&work);
		return;
	}
	ioh->state = WRITING;
	ioh->op = SimDiskWrite(fd, from, nbytes, offset, true);
}

void
AioWalAwait(PgAioWaitRef *wref)
{
	PgAioHandle *ioh = wref->handle;
	bool		slept = false;

	SimPoint();
	while (ioh->generation == wref->generation && ioh->state != COMPLETE)
	{
		SIM_CHECK(ioh->state != HANDED_OUT, "somebody waits for a write that is not submitted");
		if (reap(ioh))
			break;
		slept = true;
		if (ioh->state == WRITING && !sim_with_workers)
			SimWait(ioh->op, NEVER, true);
		else
			SimWait(ioh, NEVER, true);
	}
	if (slept)
		SetLatch(MyLatch);
}

/* Own writes through it have to be complete. */
int
AioWalClose(int fd)
{
	for (int i = 0; i < (int) lengthof(handles); i++)
	{
		PgAioWaitRef wref = {&handles[i], handles[i].generation};

		if (!sim_with_workers && handles[i].owner == sim_me &&
			handles[i].state == WRITING && handles[i].fd == fd)
			AioWalAwait(&wref);
	}
	SimFileClose(fd);
	return 0;
}

void
AioWalCloseReopened(int fd)
{
	SimFileClose(fd);
}

static int
open_and_write(PgAioHandle *ioh)
{
	int			fd = AioWalOpenSegment(AioWalTargetSegment(&ioh->target),
									   ioh->target.tli, ioh->target.sync_method, true);
	SimDiskOp  *op;
	int			result;

	if (fd < 0)
		return -errno;
	op = SimDiskWrite(fd, ioh->from, ioh->nbytes, ioh->offset, true);
	while (!SimDiskDone(op, &result))
		SimWait(op, NEVER, false);
	SimDiskForget(op);
	SimFileClose(fd);
	return result;
}

/* The body of an I/O worker. */
void
SimWorker(void)
{
	for (;;)
	{
		while (nqueued > 0)
		{
			PgAioHandle *ioh = queued[0];

			memmove(queued, queued + 1, --nqueued * sizeof(queued[0]));
			ioh->state = WRITING;
			complete(ioh, open_and_write(ioh));
		}
		SimWait(&work, NEVER, true);
	}
}

/* ------------------------------------------------------------------------
 * Other processes
 * ------------------------------------------------------------------------
 */

/* The WAL writer is the first process. */
void
AioWalWakeWriter(void)
{
	SetLatch(&sim_processes[0].latch);
}

void
AioWalFlushBegins(AioWalFlush *flush)
{
}

void
AioWalFlushEnds(const AioWalFlush *flush)
{
}

/* Parameters that have been changed take effect where a process looks. */
void
SimReloadConfiguration(void)
{
	wal_sync_method = sim_method;
	aio_wal_syncs = sim_syncs;
	if (aio_wal_write_ahead != sim_write_ahead)
	{
		aio_wal_write_ahead = sim_write_ahead;
		AioAssignWalWriteAhead(sim_write_ahead, NULL);
	}
}

/*
 * What the checkpointer does: flush what there is, then remove segments that
 * are not needed any more, or use them again.
 */
void
SimCheckpoint(void)
{
	XLogRecPtr	prev;
	XLogRecPtr	redo;
	XLogSegNo	keep;

	SimInsert(20);
	prev = last_record;
	redo = reserved;
	XLogFlush(redo);
	if (redo > redo_at)
	{
		redo_at = redo;
		redo_prev = prev;
	}
	keep = Min(redo / wal_segment_size, next_finished);
	kept_from = Max(kept_from, keep * wal_segment_size);
	while (SimFirstSegment() < keep)
	{
		XLogSegNo	first = SimFirstSegment();

		SimPoint();
		if (SimChance(&sim_world, 800))
			SimInodeRename(first, SimLastSegment() + 1);
		else
			SimInodeRemove(first);
	}
}

/* ------------------------------------------------------------------------
 * Start and crash
 * ------------------------------------------------------------------------
 */

/* The pipeline wants memory. */
void
AioShareState(const AioSharedState *part)
{
	pipeline_part = part;
	pipeline_memory = calloc(1, part->size());
	*part->address = pipeline_memory;
}

/* The first life: WAL ends here, and all before is of no interest. */
void
SimServerReset(XLogRecPtr start)
{
	origin = start - start % XLOG_BLCKSZ;
	SimInodeMake(start / wal_segment_size);
	memset(expected, 0, start - origin);
	redo_at = start;
	redo_prev = last_record = 0;
	reserved = start;
	sim_flush_result = start;
	kept_from = origin;
}

/* A server starts; WAL ends here. */
void
SimServerStart(XLogRecPtr end)
{
	XLogRecPtr	page = end - end % XLOG_BLCKSZ;

	SIM_CHECK(end == reserved, "WAL does not begin where it ends");
	nbuffers = 4 + SimUpTo(&sim_world, BUFFERS_MAX - 4) / (1 + SimUpTo(&sim_world, 5));
	inserted = request = async_upto = end;
	sim_write_result = sim_flush_result = end;
	senders_know = end;
	nsyncing = 0;
	next_finished = end / wal_segment_size;
	memset(page_ends, 0, sizeof(page_ends));
	memset(pages, 0, sizeof(pages));
	memset(&mapping_lock, 0, sizeof(mapping_lock));
	WALWriteLock->owner = NULL;
	memset(handles, 0, sizeof(handles));
	nqueued = 0;
	initialized = page;
	if (page != end)
	{
		initialized += XLOG_BLCKSZ;
		page_ends[buffer_of(page)] = initialized;
		for (XLogRecPtr ptr = page; ptr < end; ptr++)
			pages[buffer_of(page) * XLOG_BLCKSZ + ptr % XLOG_BLCKSZ] = *expected_at(ptr);
	}
	if (pipeline_part == NULL)
		AioWalInitialize();
	pipeline_part->initialize();
}

/* The next byte of records, if the disk has it. */
static bool
read_byte(XLogRecPtr *ptr, char *byte)
{
	char		header[PAGE_HEADER];

	if (SimInodeOf(*ptr / wal_segment_size) == NULL)
		return false;
	if (*ptr % XLOG_BLCKSZ == 0)
	{
		for (int i = 0; i < PAGE_HEADER; i++)
			header[i] = SimDiskByte(*ptr + i, false);
		if (!AioWalPageIs(header, *ptr))
			return false;
		*ptr += PAGE_HEADER;
	}
	*byte = SimDiskByte((*ptr)++, false);
	return true;
}

/* Is there a record at 'ptr' that follows 'prev'?  Then pass it. */
static bool
read_record(XLogRecPtr *ptr, XLogRecPtr prev)
{
	char		record[RECORD_MAX];
	RecordHeader header = {sizeof(header), 0, 0};
	XLogRecPtr	next = *ptr;

	for (Size n = 0; n < header.length; n++)
	{
		if (!read_byte(&next, &record[n]))
			return false;
		if (n != sizeof(header) - 1)
			continue;
		memcpy(&header, record, sizeof(header));
		if (header.prev != prev || header.length < sizeof(header) || header.length > RECORD_MAX)
			return false;
	}
	if (header.checksum != checksum(&header, record))
		return false;
	*ptr = next;
	return true;
}

/* After a crash: where does WAL end?  What was beyond never happened. */
XLogRecPtr
SimRecover(void)
{
	XLogRecPtr	end = redo_at;
	XLogRecPtr	prev = redo_prev;
	XLogRecPtr	next = end;

	while (read_record(&next, prev))
	{
		for (XLogRecPtr ptr = end; ptr < next; ptr++)
		{
			if (next > reserved || SimDiskByte(ptr, false) != *expected_at(ptr))
				SimFail(__FILE__, __LINE__, "WAL of an earlier life is replayed");
		}
		prev = end;
		end = next;
	}
	reserved = end;
	last_record = prev;
	return end;
}

/* What is left behind the end: what the server does before it inserts. */
void
SimEraseWal(void)
{
	CurrentMemoryContext = SimContextMake();
	CritSectionCount++;
	AioEraseWalBehind(reserved, 1);
	CritSectionCount--;
}

int
AioWalOpenOld(XLogSegNo segno, TimeLineID tli)
{
	SimInode   *inode = SimInodeOf(segno);

	SimPoint();
	return inode == NULL ? -1 : SimFileOpen(inode, WAL_SYNC_METHOD_FDATASYNC);
}

ssize_t
AioWalPread(int fd, char *to, Size nbytes, uint32 offset)
{
	return SimDiskRead(fd, to, nbytes, offset);
}

void
AioWalTellErased(XLogRecPtr end, XLogRecPtr first, XLogRecPtr last, int npages)
{
	SimTell("erases %d pages from %" PRIu64 " to %" PRIu64 ", WAL ends at %" PRIu64,
			npages, first, last, end);
}

/* All that was flushed is there, but for segments that were removed. */
void
SimCheckKept(bool durable)
{
	check_disk(kept_from, sim_flush_result, durable, "what was flushed is lost");
}

/* Is an I/O worker, which does not end with the server, about to do it? */
static bool
is_wakeup_owed(void)
{
	for (int i = 0; i < sim_nprocesses; i++)
	{
		if (!sim_processes[i].ended && sim_processes[i].owes_wakeup)
			return true;
	}
	return false;
}

/* Nothing is left to do: all that is inserted is flushed, and told of. */
void
SimCheckFinished(void)
{
	SIM_CHECK(inserted == reserved && sim_write_result == inserted && sim_flush_result == inserted,
			  "the server has ended, and WAL is not flushed");
	SIM_CHECK(next_finished == sim_flush_result / wal_segment_size,
			  "a segment is not finished");
	SIM_CHECK(max_wal_senders == 0 || senders_know == sim_flush_result || is_wakeup_owed(),
			  "nobody has told the walsenders");
	SimPipelineCheckIdle();
}
