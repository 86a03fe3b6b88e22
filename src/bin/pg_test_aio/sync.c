/*-------------------------------------------------------------------------
 *
 * sync.c
 *	  Single blocks that are written and synced, as the write-ahead log is.
 *
 * They are written one after the other in space that has been written before,
 * as in a segment of WAL that is used again.  After the values of
 * wal_sync_method, what only an asynchronous method can do is measured:
 * several syncs at a time, and writes that go on during a sync.
 *
 * All latencies are of a write and the sync after it, such that they can be
 * compared; what of it the sync takes is told besides, for that is how the
 * server decides whether more than one pays.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres_fe.h"

#include <unistd.h>

#include "pg_test_aio.h"

/* the size of a segment of WAL, by default */
#define SEGMENT_SIZE	(16 * MEGABYTE)

#define DEPTH_MAX		8

/* one way to sync */
typedef struct SyncWay
{
	const char *how;			/* NULL: asynchronously */
	SyncFlag	flag;
	int			(*sync) (int fd);
	int			depth;
	bool		writing;		/* one more block is always being written */
} SyncWay;

StaticAssertDecl((DEPTH_MAX + 1) * BLCKSZ <= BUFFER_TOTAL,
				 "the blocks in flight fit into the buffers");

static const SyncWay ways[] = {
	{.how = "fdatasync",.sync = fdatasync,.depth = 1},
	{.how = "fsync",.sync = fsync,.depth = 1},
	{.how = "open_datasync",.flag = SYNC_DATA,.depth = 1},
	{.how = "open_sync",.flag = SYNC_ALL,.depth = 1},
	{.depth = 1},
	{.depth = 2},
	{.depth = 4},
	{.depth = DEPTH_MAX},
	{.depth = 1,.writing = true},
};

static off_t end_of_wal = 0;

/* The next block. */
static void
prepare_write(IoRequest *request)
{
	request->op = IO_WRITE;
	testfile_vary(request->buffer, request->length);
	request->offset = end_of_wal;
	end_of_wal = (end_of_wal + BLCKSZ) % SEGMENT_SIZE;
}

/* One block is written and synced, then the next one. */
static void
measure(FileMode mode, const SyncWay *way, Result *result)
{
	Histogram	histogram = {0};
	int64		syncing = 0;
	int64		deadline = deadline_ns(1.0 / ROUNDS);
	int64		started = now_ns();
	int64		now = started;
	IoRequest	request = {
		.fd = testfile_fd(mode, way->flag),
		.length = BLCKSZ,
		.buffer = testfile_buffer(0, BLCKSZ),
	};

	while (now < deadline)
	{
		int64		before = now;
		int64		between;

		prepare_write(&request);
		io_perform(&request);
		between = now_ns();
		if (way->sync != NULL && way->sync(request.fd) != 0)
			testfile_failed(IO_DATASYNC, errno);
		now = now_ns();
		histogram_add(&histogram, now - before);
		syncing += now - between;
	}
	result->rate = histogram.n / ((now - started) / 1e9);
	histogram_summary(&histogram, result);
	if (way->sync != NULL && histogram.n > 0)
		result->aside = syncing / 1000.0 / histogram.n;
}

/*
 * Each of 'depth' requests is a write, then a sync, then the next write.  One
 * more only writes, if that is wanted, which is in 'meanwhile' of the result.
 */
static void
measure_async(FileMode mode, const SyncWay *way, const IoMethod *method,
			  Result *result)
{
	int			depth = way->depth;
	IoRequest	requests[DEPTH_MAX + 1];
	IoRequest  *done[DEPTH_LIMIT];
	int64		write_started[DEPTH_MAX + 1];
	Histogram	histogram = {0};
	int64		syncing = 0;
	int64		nwritten = 0;
	int64		deadline = deadline_ns(1.0 / ROUNDS);
	int64		started = now_ns();
	int			nin_flight = depth + (way->writing ? 1 : 0);

	for (int i = 0; i < nin_flight; i++)
	{
		requests[i].fd = testfile_fd(mode, SYNC_NONE);
		requests[i].length = BLCKSZ;
		requests[i].buffer = testfile_buffer(i, BLCKSZ);
		prepare_write(&requests[i]);
		write_started[i] = now_ns();
		io_submit_one(method, &requests[i]);
	}
	while (nin_flight > 0)
	{
		int			n = io_wait(method, done);
		int64		now = now_ns();

		for (int i = 0; i < n; i++)
		{
			IoRequest  *request = done[i];
			int			number = request - requests;

			if (request->op == IO_DATASYNC)
			{
				histogram_add(&histogram, now - write_started[number]);
				syncing += now - request->started;
			}
			else if (number == depth)
				nwritten++;
			if (request->op == IO_WRITE && number != depth)
				request->op = IO_DATASYNC;
			else if (now < deadline)
			{
				prepare_write(request);
				write_started[number] = now;
			}
			else
			{
				nin_flight--;
				continue;
			}
			io_submit_one(method, request);
		}
	}
	result->rate = histogram.n / ((now_ns() - started) / 1e9);
	histogram_summary(&histogram, result);
	result->aside = syncing / 1000.0 / histogram.n;
	result->meanwhile = (double) nwritten / histogram.n;
}

/* Measure all ways to sync, in this mode. */
void
test_sync(FileMode mode)
{
	static const IoMethod *const candidates[] = {
		&method_uring, &method_worker, NULL
	};
	const IoMethod *method = first_usable(candidates, mode);
	Result		rounds[lengthof(ways)][ROUNDS] = {0};

	for (int round = 0; round < ROUNDS; round++)
	{
		for (int i = 0; i < lengthof(ways); i++)
		{
			const SyncWay *way = &ways[i];
			Result	   *result = &rounds[i][round];

			if ((way->how == NULL && method == NULL) ||
				way->depth > options.max_depth ||
				!begin_measurement(1.0 / ROUNDS, _("%s, %s, %s, %d in flight"),
								   test_names[TEST_SYNC], mode_names[mode],
								   way->how != NULL ? way->how : method->name,
								   way->depth))
				continue;
			testfile_fill(SEGMENT_SIZE);
			if (way->how != NULL)
				measure(mode, way, result);
			else
				measure_async(mode, way, method, result);
		}
	}
	for (int i = 0; i < lengthof(ways); i++)
	{
		const SyncWay *way = &ways[i];
		char		how[NAME_LIMIT];

		if (rounds[i][0].rate == 0)
			continue;			/* not measured */
		strlcpy(how, way->how != NULL ? way->how : method->name, NAME_LIMIT);
		if (way->writing)
			strlcat(how, "+writes", NAME_LIMIT);
		results_add_median(TEST_SYNC, mode, how, way->depth, 0, rounds[i]);
	}
}
