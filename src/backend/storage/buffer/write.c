/*-------------------------------------------------------------------------
 *
 * write.c
 *	  Bounce buffers, and what happens when a write is complete.
 *
 * A page that is written without anyone waiting is copied first, to a bounce
 * buffer in shared memory, so that its buffer is free to be changed meanwhile.
 * Bounce buffers are few, belong to all processes, and are given back when the
 * write is complete, by whoever completes it.
 *
 * Upholds INVARIANT-38, 39 and 45.
 *
 * Completion callbacks run in critical sections, in any process: they allocate
 * nothing and raise nothing.
 *
 * Tests: src/test/aio/write/t/002_in_flight.pl,
 *		  src/test/aio/write/t/003_errors.pl,
 *		  src/test/simulate/write_behind.c.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "aio/shared_state.h"
#include "aio/write.h"
#include "miscadmin.h"
#include "port/pg_iovec.h"
#include "storage/aio_internal.h"
#include "storage/aio_subsys.h"
#include "storage/bufmgr.h"
#include "storage/spin.h"
#include "storage/sync.h"
#include "utils/guc.h"

/* aio.write_buffers; -1 is to choose */
int			aio_write_buffers = -1;

/* stands for "the queue of sync requests is full" where an errno is expected */
#define SYNC_QUEUE_FULL		0xFFFFF

StaticAssertDecl(SYNC_QUEUE_FULL < 1 << PGAIO_RESULT_ERROR_BITS,
				 "a result has room for that");

typedef struct BounceBuffers
{
	slock_t		mutex;
	int			nfree;
	int			first_free;		/* -1 if none is */
	int			next_free[FLEXIBLE_ARRAY_MEMBER];	/* by page */
} BounceBuffers;

static BounceBuffers *bounce;
static char *pages;				/* aligned for direct I/O, with room for that */

/* aio.write_buffers, if not too many: their I/Os pin buffers */
static int	npages = 0;

static void
choose_write_buffers(void)
{
	char		value[16];

	if (aio_write_buffers >= 0)
		return;
	snprintf(value, sizeof(value), "%d", Min(NBuffers / 16, 1024));
	SetConfigOption("aio.write_buffers", value, PGC_POSTMASTER, PGC_S_DYNAMIC_DEFAULT);
	if (aio_write_buffers < 0)
		SetConfigOption("aio.write_buffers", value, PGC_POSTMASTER, PGC_S_OVERRIDE);
}

static Size
list_size(void)
{
	choose_write_buffers();
	npages = Min(aio_write_buffers, NBuffers / 4);
	return add_size(offsetof(BounceBuffers, next_free),
					mul_size(sizeof(int), npages));
}

static void
init_list(void)
{
	SpinLockInit(&bounce->mutex);
	bounce->nfree = npages;
	bounce->first_free = npages > 0 ? 0 : -1;
	for (int i = 0; i < npages; i++)
		bounce->next_free[i] = i + 1 < npages ? i + 1 : -1;
}

static Size
pages_size(void)
{
	return add_size(PG_IO_ALIGN_SIZE, mul_size(BLCKSZ, npages));
}

static void
init_pages(void)
{
	pages = (char *) TYPEALIGN(PG_IO_ALIGN_SIZE, pages);
}

static const AioSharedState list_state = {
	.name = "aio bounce buffers, list",
	.size = list_size,
	.address = (void **) &bounce,
	.initialize = init_list,
};

static const AioSharedState pages_state = {
	.name = "aio bounce buffers",
	.size = pages_size,
	.address = (void **) &pages,
	.initialize = init_pages,
};

/* While libraries are preloaded: ask for shared memory. */
void
AioWriteInitialize(void)
{
	AioShareState(&list_state);
	AioShareState(&pages_state);
}

/* ------------------------------------------------------------------------
 * Bounce buffers
 * ------------------------------------------------------------------------
 */

/*
 * Take up to n pages.  Their numbers are stored; returns how many there are.
 * More than one is given only as long as half of all are free, so that one
 * process's large writes do not keep others from writing at all.
 */
int
AioBounceBuffersGet(int n, int *numbers)
{
	int			got = 0;

	Assert(n > 0 && n <= MAX_IO_COMBINE_LIMIT);
	if (bounce == NULL)
		return 0;				/* not in a server */
	SpinLockAcquire(&bounce->mutex);
	while (got < n && bounce->first_free >= 0 &&
		   (got == 0 || bounce->nfree > npages / 2))
	{
		Assert(bounce->nfree > 0);
		numbers[got] = bounce->first_free;
		bounce->first_free = bounce->next_free[numbers[got]];
		bounce->nfree--;
		got++;
	}
	SpinLockRelease(&bounce->mutex);
	return got;
}

/* Where a page is. */
char *
AioBounceBuffer(int page)
{
	Assert(page >= 0 && page < npages);
	return pages + (Size) page * BLCKSZ;
}

/* Give a page back. */
void
AioBounceBufferRelease(int page)
{
	Assert(page >= 0 && page < npages);
	SpinLockAcquire(&bounce->mutex);
	Assert(bounce->nfree < npages);
	bounce->next_free[page] = bounce->first_free;
	bounce->first_free = page;
	bounce->nfree++;
	SpinLockRelease(&bounce->mutex);
}

/*
 * Start a write of bounce buffers to adjacent blocks.  The handle becomes in
 * flight, or is staged in batch mode.  'data' has for each page what
 * AioMakeHandleData() makes.  The file is open, and interrupts are held off.
 * Raises nothing.
 */
void
AioIssueWrite(PgAioHandle *ioh, SMgrRelation reln, ForkNumber forknum,
			  BlockNumber blocknum, int nblocks, const uint64 *data,
			  bool skip_fsync, int fd, uint32 offset)
{
	struct iovec *iov;

	Assert(InterruptHoldoffCount > 0);
	Assert(nblocks > 0 && blocknum % RELSEG_SIZE + nblocks <= RELSEG_SIZE);
	Assert(offset == blocknum % RELSEG_SIZE * BLCKSZ);

	pgaio_io_set_handle_data_64(ioh, unconstify(uint64 *, data), nblocks);
	pgaio_io_register_callbacks(ioh, AIO_HCB_PAGE_WRITEV, 0);
	pgaio_io_set_target_smgr(ioh, reln, forknum, blocknum, nblocks, skip_fsync);
	pgaio_io_register_callbacks(ioh, AIO_HCB_MD_WRITEV, 0);
	(void) pgaio_io_get_iovec(ioh, &iov);
	for (int i = 0; i < nblocks; i++)
	{
		iov[i].iov_base = AioBounceBuffer(AioHandleDataPage(data[i]));
		iov[i].iov_len = BLCKSZ;
	}
	pgaio_io_start_writev(ioh, fd, nblocks, offset);
}

/* ------------------------------------------------------------------------
 * Callbacks of upstream's AIO
 * ------------------------------------------------------------------------
 */

/* Have the next checkpoint sync the file.  Returns false if it could not be. */
static bool
request_sync(const PgAioTargetData *td)
{
	FileTag		tag;

	memset(&tag, 0, sizeof(tag));
	tag.handler = SYNC_HANDLER_MD;
	tag.rlocator = td->smgr.rlocator;
	tag.forknum = td->smgr.forkNum;
	tag.segno = td->smgr.blockNum / RELSEG_SIZE;
	return RegisterSyncRequest(&tag, SYNC_REQUEST, false);
}

/* complete_shared: has the file been written? */
static PgAioResult
md_writev_complete(PgAioHandle *ioh, PgAioResult prior_result, uint8 cb_data)
{
	PgAioTargetData *td = pgaio_io_get_target_data(ioh);
	PgAioResult result = prior_result;

	Assert(CritSectionCount > 0);
	if (result.result == td->smgr.nblocks * BLCKSZ &&
		(td->smgr.skip_fsync || td->smgr.is_temp || request_sync(td)))
	{
		result.result = td->smgr.nblocks;
		return result;
	}

	result.status = PGAIO_RS_ERROR;
	result.id = AIO_HCB_MD_WRITEV;
	if (result.result < 0)
		result.error_data = -result.result;
	else if (result.result < td->smgr.nblocks * BLCKSZ)
		result.error_data = 0;
	else
		result.error_data = SYNC_QUEUE_FULL;
	result.result = 0;

	/* whoever started it may not look at the result */
	if (result.error_data != SYNC_QUEUE_FULL)
		pgaio_result_report(result, td, LOG_SERVER_ONLY);
	return result;
}

/* report: what pgaio_result_report() says */
static void
md_writev_report(PgAioResult result, const PgAioTargetData *td, int elevel)
{
	RelPathStr	path = relpathbackend(td->smgr.rlocator,
									  td->smgr.is_temp ? MyProcNumber : INVALID_PROC_NUMBER,
									  td->smgr.forkNum);

	errno = result.error_data;
	if (result.error_data == SYNC_QUEUE_FULL)
		ereport(elevel,
				errmsg_internal("could not forward fsync request because request queue is full"));
	else if (result.error_data != 0)
		ereport(elevel,
				errcode_for_file_access(),
				errmsg("could not write blocks %u..%u in file \"%s\": %m",
					   td->smgr.blockNum,
					   td->smgr.blockNum + td->smgr.nblocks - 1,
					   path.str));
	else
		ereport(elevel,
				errcode(ERRCODE_DISK_FULL),
				errmsg("could not write blocks %u..%u in file \"%s\": wrote too little",
					   td->smgr.blockNum,
					   td->smgr.blockNum + td->smgr.nblocks - 1,
					   path.str),
				errhint("Check free disk space."));
}

/* complete_shared: bounce buffers are free, and the I/O of buffers has ended */
static PgAioResult
page_writev_complete(PgAioHandle *ioh, PgAioResult prior_result,
					 uint8 cb_data)
{
	bool		ok = prior_result.status == PGAIO_RS_OK;
	bool		failed = !ok && prior_result.error_data != SYNC_QUEUE_FULL;
	uint64	   *data;
	uint8		n;

	data = pgaio_io_get_handle_data(ioh, &n);
	Assert(n == pgaio_io_get_target_data(ioh)->smgr.nblocks);
	for (int i = 0; i < n; i++)
	{
		AioBounceBufferRelease(AioHandleDataPage(data[i]));
		if (BufferIsValid(AioHandleDataBuffer(data[i])))
			AioEndWrite(AioHandleDataBuffer(data[i]), ok, failed);
	}
	return prior_result;
}

const PgAioHandleCallbacks aio_md_writev_cb = {
	.complete_shared = md_writev_complete,
	.report = md_writev_report,
};

const PgAioHandleCallbacks aio_page_writev_cb = {
	.stage = AioStageWrite,
	.complete_shared = page_writev_complete,
};
