/*-------------------------------------------------------------------------
 *
 * stream.c
 *	  Much is written, one piece after the other, and synced at the end.
 *
 * Buffered: with the kernel asked to write after so many bytes, or never
 * before the sync.  Direct: with so many writes in flight.  Both over what is
 * in the file, and into space that has been allocated and never written, as in
 * a new table or index.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres_fe.h"

#include <fcntl.h>

#include "pg_test_aio.h"

/* io_combine_limit of the server, by default */
#define PIECE			(128 * KILOBYTE)

#define DEPTH_MAX		32

static const int paces[] = {0, 256, 1024, 4096};	/* kB */
static const int depths[] = {1, 8, DEPTH_MAX};

/* Ask the kernel to write this range soon. */
static void
start_writeback(int64 offset, int64 length)
{
#ifdef HAVE_SYNC_FILE_RANGE
	int			fd = testfile_fd(MODE_BUFFERED, SYNC_NONE);

	if (sync_file_range(fd, offset, length, SYNC_FILE_RANGE_WRITE) != 0)
		testfile_failed(IO_WRITE, errno);
#endif
}

/*
 * Write up to 'size' bytes, or as much as there is time for, with 'depth'
 * writes in flight.
 */
static void
measure(FileMode mode, const IoMethod *method, int depth, int64 pace,
		int64 size, Result *result)
{
	IoRequest	requests[DEPTH_MAX];
	IoRequest  *free_requests[DEPTH_LIMIT];
	int			nfree = depth;
	int64		written = 0;
	int64		longest = 0;
	int64		deadline = deadline_ns(1);
	int64		started = now_ns();
	int64		before_sync,
				now;

	for (int i = 0; i < depth; i++)
	{
		requests[i].op = IO_WRITE;
		requests[i].fd = testfile_fd(mode, SYNC_NONE);
		requests[i].length = PIECE;
		requests[i].buffer = testfile_buffer(i, PIECE);
		free_requests[i] = &requests[i];
	}
	while (nfree < depth || (written < size && now_ns() < deadline))
	{
		int64		before = now_ns();

		if (nfree > 0 && written < size && before < deadline)
		{
			IoRequest  *request = free_requests[--nfree];

			request->offset = written;
			written += PIECE;
			io_submit_one(method, request);
			if (pace > 0 && written % pace == 0)
				start_writeback(written - pace, pace);
		}
		else
			nfree += io_wait(method, free_requests + nfree);
		longest = Max(longest, now_ns() - before);
	}
	before_sync = now_ns();
	testfile_sync();
	now = now_ns();

	result->rate = (double) written / MEGABYTE / ((now - started) / 1e9);
	result->max = longest / 1000.0;
	result->aside = (now - before_sync) / 1000.0;
}

/* Measure one mode, over what is there or into new space. */
static void
test_target(FileMode mode, bool new)
{
	static const IoMethod *const candidates[] = {
		&method_uring, &method_libaio, &method_worker, &method_sync, NULL
	};
	const IoMethod *method = mode == MODE_DIRECT ?
		first_usable(candidates, mode) : &method_sync;
	int			n = mode == MODE_DIRECT ? lengthof(depths) : lengthof(paces);

	for (int i = 0; i < n; i++)
	{
		int			depth = mode == MODE_DIRECT ? depths[i] : 1;
		int			pace = mode == MODE_DIRECT ? 0 : paces[i];
		const char *how = new ? "append" : "overwrite";
		int64		size = options.file_size;

#ifndef HAVE_SYNC_FILE_RANGE
		if (pace > 0)
			continue;
#endif
		if (method == NULL || depth > method->max_depth ||
			depth > options.max_depth)
			continue;
		/* the time of the sync comes on top */
		if (!begin_measurement(2, _("%s, %s, %s, %d in flight, pace %d kB"),
							   test_names[TEST_STREAM], how, mode_names[mode],
							   depth, pace))
			continue;
		if (new)
		{
			testfile_truncate();
			(void) testfile_allocate(0, size, false);
		}
		else
		{
			testfile_fill(size);
			size = testfile_size();
		}
		testfile_forget_cached();
		measure(mode, method, depth, pace * KILOBYTE, size,
				results_add(TEST_STREAM, mode, how, depth, pace));
	}
}

/* Measure streams of writes, in this mode. */
void
test_stream(FileMode mode)
{
	test_target(mode, false);
	test_target(mode, true);
}
