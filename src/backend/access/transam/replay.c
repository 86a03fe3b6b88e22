/*-------------------------------------------------------------------------
 *
 * replay.c
 *	  Pages that recovery will need are read ahead.
 *
 * Upstream's prefetcher decodes records before they are replayed, and tells of
 * each block that they refer to.  Where upstream would give the kernel a hint,
 * the page is read into shared buffers, asynchronously.  Which blocks are not
 * to be touched yet, because they do not exist, or will be dropped or truncated
 * before, is upstream's to know.
 *
 * A page is first wanted, and read a little later, together with others: that
 * makes one I/O of neighbours, and one system call of several I/Os.  Its read
 * begins before the record that needs it is replayed.  Nothing is staged while
 * records are replayed, since redo may wait for whoever waits for the page.
 * With buffered I/O, the kernel is only given a hint of a page that has no
 * wanted neighbours.
 *
 * INVARIANT-79: reading ahead decides nothing.  No page is read which a record
 * before would make anew from an image, as that one may be torn.  No page is
 * zeroed or taken for good in spite of its checksum; a read that fails is
 * forgotten, and redo, if it needs the page, reads it again, and raises what
 * there is to raise.  What the redo of an extension's resource manager does is
 * not known: it may write pages past the buffers.  Until it has, the kernel is
 * given hints, at most, as by upstream.
 *
 * INVARIANT-80: a read ahead has no pin but the one that any read in flight
 * has, so redo never waits for itself.  They are complete before recovery waits
 * for anything but pages: for WAL, a command, the end of a pause.
 *
 * An I/O worker may have a file open that has been dropped, and read from that,
 * if a new file has the name.  Recovery cuts a file to no length before it is
 * unlinked, so nothing is found there, and the read fails; and before the files
 * of a whole database or tablespace are unlinked, all processes close theirs.
 *
 * Locks:     none are held.
 * Suspends:  never; there are no tasks in recovery.
 * Tests:     src/test/aio/replay.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xlog_internal.h"
#include "access/xlogrecovery.h"
#include "aio/block.h"
#include "aio/read.h"
#include "aio/replay.h"
#include "common/hashfn.h"
#include "miscadmin.h"
#include "replication/walreceiver.h"
#include "storage/aio.h"
#include "storage/buf_internals.h"
#include "storage/bufmgr.h"
#include "storage/bufpage.h"
#include "utils/memutils.h"

/* I/Os that are wanted at a time; more than that begin at once */
#define WANTED_MAX	128

/* pages that may be on their way for each I/O: some are neighbours */
#define PAGES_PER_IO	8

/* records that make pages are remembered at least so long */
#define MADE_MIN	1024

/* Neighbouring pages of a file, and the references to them. */
typedef struct WantedRead
{
	XLogRecPtr	lsn;			/* the record that needs one of them first */
	RelFileLocator rlocator;
	BlockNumber block;			/* the first one */
	int			nblocks;
	int			slot;			/* of their references */
} WantedRead;

/* they are searched for each page, so there is nothing else between them */
static WantedRead wanted[WANTED_MAX];
static int	nwanted = 0;

/* pages of them */
int			aio_replay_wanted = 0;

static DecodedBkpBlock *references[WANTED_MAX][MAX_IO_COMBINE_LIMIT];

/* slots that were used and are not; those from nslots on never were */
static int	free_slots[WANTED_MAX];
static int	nfree_slots = 0;
static int	nslots = 0;

bool		aio_replay_active = false;
XLogRecPtr	aio_replay_custom = InvalidXLogRecPtr;

/* how many I/Os may be in flight, */
static int	max_ios = 1;

/* and how many pages may be on their way, or read and not used yet */
static int	depth = 1;

/* A page that a record makes anew, which may have been replayed by now. */
typedef struct MadePage
{
	BufferTag	tag;
	XLogRecPtr	lsn;
	char		status;			/* simplehash.h's */
} MadePage;

static inline uint32
hash_tag(const BufferTag *tag)
{
	return hash_bytes((const unsigned char *) tag, sizeof(BufferTag));
}

#define SH_PREFIX		made
#define SH_ELEMENT_TYPE	MadePage
#define SH_KEY_TYPE		BufferTag
#define SH_KEY			tag
#define SH_HASH_KEY(tb, key)	hash_tag(&(key))
#define SH_EQUAL(tb, a, b)		BufferTagsEqual(&(a), &(b))
#define SH_SCOPE		static inline
#define SH_DECLARE
#define SH_DEFINE
#include "lib/simplehash.h"

static struct made_hash *made = NULL;

/* when there are as many, those that have been replayed are forgotten */
static uint32 made_limit = MADE_MIN;

/*
 * How many pages may be on their way, or read and not used yet, if the user
 * allows so many I/Os?  Decides whether this process reads ahead at all.
 */
int
AioReplayDepth(int concurrency)
{
	aio_replay_active = IsUnderPostmaster && io_method != IOMETHOD_SYNC;
	if (!aio_replay_active)
		return concurrency;
	max_ios = Max(concurrency, 1);

	/* all that may be wanted has room, so that nobody waits for that */
	depth = Min(max_ios, WANTED_MAX) * PAGES_PER_IO;
	depth = Min(depth, max_ios + WANTED_MAX);
	depth = Min(depth, (int) GetPinLimit());
	depth = Max(depth, 1);
	return depth;
}

/* A record that has not been replayed makes this page anew. */
void
AioReplayNoteMade(const DecodedBkpBlock *reference, XLogRecPtr lsn)
{
	BufferTag	tag;
	bool		found;

	if (reference->forknum != MAIN_FORKNUM)
		return;
	if (made == NULL)
		made = made_create(TopMemoryContext, MADE_MIN, NULL);
	InitBufferTag(&tag, &reference->rlocator, MAIN_FORKNUM, reference->blkno);
	made_insert(made, tag, &found)->lsn = lsn;
}

/* Forget about pages that have been made. */
static void
forget_made(XLogRecPtr replayed)
{
	made_iterator iterator;
	MadePage   *page;

	made_start_iterate(made, &iterator);
	while ((page = made_iterate(made, &iterator)) != NULL)
	{
		if (page->lsn <= replayed)
			made_delete_item(made, page);
	}
	made_limit = Max(MADE_MIN, made->members * 2);
}

/* Will a record that comes before make this page anew? */
static bool
will_be_made(const RelFileLocator *rlocator, BlockNumber block,
			 XLogRecPtr replayed)
{
	BufferTag	tag;
	MadePage   *page;

	if (made == NULL || made->members == 0)
		return false;
	if (made->members >= made_limit)
		forget_made(replayed);
	InitBufferTag(&tag, rlocator, MAIN_FORKNUM, block);
	page = made_lookup(made, tag);
	return page != NULL && page->lsn > replayed;
}

/*
 * Should the kernel read this page into its cache, and redo copy it from there?
 * That takes two cheap system calls.  With io_uring, a buffered read of one
 * page takes this process more; an I/O worker relieves it, but needs a
 * processor that is free.  Nobody learns when the I/O of a hint ends: the limit
 * of pages applies to hints, that of I/Os does not.
 */
static bool
hint_is_enough(int nblocks)
{
	return nblocks == 1 && !AioUsesDirectIO();
}

/*
 * The reads of pages that are wanted begin: of those that the record at
 * 'needed' needs, and of others as long as there is room for their I/Os.  That
 * they are for pages which redo may not need is known here only: damaged ones
 * are left alone.
 */
static void
begin_wanted(XLogRecPtr needed)
{
	bool		zero = zero_damaged_pages;
	bool		ignore = ignore_checksum_failure;
	int			n;

	/* an error ends the process, which needs no other values any more */
	zero_damaged_pages = false;
	ignore_checksum_failure = false;
	for (n = 0; n < nwanted; n++)
	{
		WantedRead *one = &wanted[n];
		SMgrRelation smgr;
		Buffer		buffers[MAX_IO_COMBINE_LIMIT];

		if (one->lsn > needed && AioReadAheadIsFull(max_ios))
			break;
		smgr = smgropen(one->rlocator, INVALID_PROC_NUMBER);
		aio_replay_wanted -= one->nblocks;
		free_slots[nfree_slots++] = one->slot;
		if (hint_is_enough(one->nblocks))
		{
			smgrprefetch(smgr, MAIN_FORKNUM, one->block, 1);
			continue;
		}
		AioReadFileAhead(smgr, one->block, one->nblocks, max_ios, depth,
						 buffers);
		for (int j = 0; j < one->nblocks; j++)
			references[one->slot][j]->prefetch_buffer = buffers[j];
	}
	AioSubmitBatch();
	zero_damaged_pages = zero;
	ignore_checksum_failure = ignore;
	nwanted -= n;
	memmove(wanted, &wanted[n], nwanted * sizeof(WantedRead));
}

/* That of which the page is, or which would take it in as well, or NULL. */
static WantedRead *
find_wanted(const RelFileLocator *rlocator, BlockNumber block)
{
	for (int i = nwanted - 1; i >= 0; i--)
	{
		WantedRead *one = &wanted[i];

		if (block >= one->block && block - one->block <= one->nblocks &&
			RelFileLocatorEquals(*rlocator, one->rlocator))
			return one;
	}
	return NULL;
}

/*
 * A record that will be replayed refers to this page, which exists, and is not
 * in memory.  Returns whether it will be read; if not, there is no point in
 * that.  The reference is remembered until the record is about to be replayed.
 * Raises what AioReadFileAhead() raises.
 */
bool
AioReplayWant(const RelFileLocator *rlocator, BlockNumber block,
			  DecodedBkpBlock *reference, XLogRecPtr replayed, XLogRecPtr lsn)
{
	WantedRead *one;

	if (will_be_made(rlocator, block, replayed))
	{
		AioReplayCountSkipped(true);
		return false;
	}

	one = find_wanted(rlocator, block);
	if (one != NULL && block < one->block + one->nblocks)
	{
		AioReplayCountSkipped(false);
		return false;
	}
	if (one == NULL || one->nblocks >= io_combine_limit)
	{
		if (nwanted >= WANTED_MAX)
			begin_wanted(wanted[0].lsn);
		one = &wanted[nwanted++];
		one->lsn = lsn;
		one->rlocator = *rlocator;
		one->block = block;
		one->nblocks = 0;
		one->slot = nfree_slots > 0 ? free_slots[--nfree_slots] : nslots++;
	}
	references[one->slot][one->nblocks++] = reference;
	aio_replay_wanted++;
	return true;
}

/*
 * Pages are wanted, and a record is about to be returned for replay.  Their
 * reads begin if it needs the first of them, if there will be no more of them
 * soon, or if a quarter of what may be on its way is not: the later they begin,
 * the more of them are neighbours.
 */
void
AioReplayBegin(XLogReaderState *reader, int inflight)
{
	DecodedXLogRecord *next = reader->decode_queue_head;

	Assert(nwanted > 0 && next != NULL);
	if (next->lsn >= wanted[0].lsn || inflight < depth ||
		inflight - aio_replay_wanted <= depth - Max(depth / 4, 1))
		begin_wanted(next->lsn);
}

/*
 * Could it call restore_command to try again to read a page that was not there?
 * That takes its time, while records that have been decoded wait, and may be
 * called for the segment before, too, of which it needs a page once more.
 */
static bool
may_restore(XLogReaderState *reader)
{
	bool		page_missing = reader->readLen == 0;

	return page_missing && InArchiveRecovery &&
		recoveryRestoreCommand != NULL && recoveryRestoreCommand[0] != '\0' &&
		!WalRcvStreaming();
}

/*
 * There is no room for more decoded records, or no more WAL.  Which record is
 * to be replayed before that is tried again?  Upstream waits for all of them,
 * and nothing is on its way by then.
 */
XLogRecPtr
AioReplayTryAgainAt(XLogReaderState *reader)
{
	DecodedXLogRecord *record = reader->decode_queue_head;
	XLogRecPtr	last = reader->decode_queue_tail->lsn;
	XLogRecPtr	middle = last - (last - record->lsn) / 2;

	if (!aio_replay_active || may_restore(reader))
		return last;
	while (record->lsn < middle)
		record = record->next;
	return record->lsn;
}

/*
 * Wait for all reads that have begun: whoever replays may not look at pages for
 * long.  Raises nothing.
 */
void
AioReplayFinishReads(void)
{
	AioReadAheadWaitAll();
}

/*
 * Records that have been decoded will not be replayed, or not from there; or
 * recovery has ended, and may wait for a last command.
 */
void
AioReplayForget(void)
{
	nwanted = 0;
	nfree_slots = 0;
	nslots = 0;
	aio_replay_wanted = 0;
	aio_replay_custom = InvalidXLogRecPtr;
	if (made != NULL)
		made_reset(made);
	AioReadAheadWaitAll();
	if (aio_writes_in_flight > 0)
		AioFinishWrites();
	if (aio_preallocated_in_recovery)
		AioGiveBackInRecovery(true);
}
