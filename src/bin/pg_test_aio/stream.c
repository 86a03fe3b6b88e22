/*-------------------------------------------------------------------------
 *
 * stream.c
 *	  Much is written, one piece after the other, and synced at the end.
 *
 * Buffered: with the kernel asked to write after so many bytes, or never
 * before the sync; always with the method sync, for a buffered write is a copy
 * by whatever method.  Direct: with so many writes in flight.  Both over what
 * is in the file, and into space that has been allocated and never written, as
 * in a new table or index.
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

StaticAssertDecl(DEPTH_MAX * PIECE <= BUFFER_TOTAL,
				 "the pieces in flight fit into the buffers");

/* in blocks; 0 leaves the kernel alone */
const int	stream_paces[NPACES] = {0, 32, BULK_FLUSH_AFTER, 512};

/* one way to write a stream */
typedef struct StreamWay
{
	FileMode	mode;
	bool		new;			/* into new space, or over what is there */
	int			depth;
	int			pace;			/* in blocks */
} StreamWay;

static const int depths[] = {1, 8, DEPTH_MAX};

/* of a mode */
#define WAYS_LIMIT		(2 * Max(NPACES, lengthof(depths)))

/* Ask the kernel to write this range soon.  Returns 0, or an errno. */
static int
start_writeback(int64 offset, int64 length)
{
#ifdef HAVE_SYNC_FILE_RANGE
	int			fd = testfile_fd(MODE_BUFFERED, SYNC_NONE);

	return sync_file_range(fd, offset, length,
						   SYNC_FILE_RANGE_WRITE) == 0 ? 0 : errno;
#else
	return EOPNOTSUPP;
#endif
}

/* Can it be asked?  If not, that is noted once. */
static bool
can_pace(void)
{
	int			error = start_writeback(0, PIECE);

	if (error == 0)
		return true;
	if (!testfile_cannot(error))
		testfile_failed(IO_WRITE, error);
	if (results_why_not(&results, "writeback") == NULL)
		results_skip("writeback", strerror(error));
	return false;
}

/* Write the next piece. */
static void
submit(const IoMethod *method, IoRequest *request, int64 offset, int64 pace)
{
	int64		end = offset + PIECE;

	testfile_vary(request->buffer, PIECE);
	request->offset = offset;
	io_submit_one(method, request);
	if (pace > 0 && end % pace == 0)
	{
		int			error = start_writeback(end - pace, pace);

		if (error != 0)
			testfile_failed(IO_WRITE, error);
	}
}

/*
 * Write up to 'size' bytes, or as much as there is time for.
 */
static void
measure(const StreamWay *way, const IoMethod *method, int64 size,
		Result *result)
{
	IoRequest	requests[DEPTH_MAX];
	IoRequest  *free_requests[DEPTH_LIMIT];
	int64		pace = (int64) way->pace * BLCKSZ;
	int			nfree = way->depth;
	int64		written = 0;
	int64		longest = 0;
	int64		deadline = deadline_ns(1.0 / ROUNDS);
	int64		started = now_ns();
	int64		now = started;
	int64		before_sync;

	for (int i = 0; i < way->depth; i++)
	{
		requests[i].op = IO_WRITE;
		requests[i].fd = testfile_fd(way->mode, SYNC_NONE);
		requests[i].length = PIECE;
		requests[i].buffer = testfile_buffer(i, PIECE);
		free_requests[i] = &requests[i];
	}
	for (;;)
	{
		int64		before = now;

		/*
		 * One look at the clock decides what this turn does: with two, time
		 * may be up for the second only, and nothing be there to wait for.
		 */
		if (nfree > 0 && written < size && before < deadline)
		{
			submit(method, free_requests[--nfree], written, pace);
			written += PIECE;
		}
		else if (nfree < way->depth)
			nfree += io_wait(method, free_requests + nfree);
		else
			break;
		now = now_ns();
		longest = Max(longest, now - before);
	}
	before_sync = now_ns();
	testfile_sync();
	now = now_ns();

	result->rate = (double) written / MEGABYTE / ((now - started) / 1e9);
	result->max = longest / 1000.0;
	result->aside = (now - before_sync) / 1000.0;
}

/* The ways of this mode; returns how many there are. */
static int
list_ways(FileMode mode, StreamWay *ways)
{
	bool		pacing = mode == MODE_BUFFERED && can_pace();
	int			n = 0;

	for (int new = 0; new <= 1; new++)
	{
		if (mode == MODE_BUFFERED)
		{
			for (int i = 0; i < NPACES; i++)
			{
				StreamWay	way = {mode, new, 1, stream_paces[i]};

				if (way.pace == 0 || pacing)
					ways[n++] = way;
			}
		}
		else
		{
			for (int i = 0; i < lengthof(depths); i++)
			{
				StreamWay	way = {mode, new, depths[i], 0};

				ways[n++] = way;
			}
		}
	}
	return n;
}

/* Prepare the file; returns how much of it may be written. */
static int64
prepare_file(bool new)
{
	int64		size = options.file_size;

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
	return size;
}

/* Measure streams of writes, in this mode. */
void
test_stream(FileMode mode)
{
	static const IoMethod *const candidates[] = {
		&method_uring, &method_libaio, &method_worker, &method_sync, NULL
	};
	const IoMethod *method = mode == MODE_DIRECT ?
		first_usable(candidates, mode) : &method_sync;
	Result		rounds[WAYS_LIMIT][ROUNDS] = {0};
	StreamWay	ways[WAYS_LIMIT];
	int			nways = list_ways(mode, ways);

	/* what is filled for one way serves the next one, so they come in order */
	for (int new = 0; new <= 1; new++)
	{
		for (int round = 0; round < ROUNDS; round++)
		{
			for (int i = 0; i < nways; i++)
			{
				const StreamWay *way = &ways[i];

				if (way->new != new || method == NULL ||
					way->depth > Min(method->max_depth, options.max_depth))
					continue;
				/* the time of the sync comes on top */
				if (!begin_measurement(2.0 / ROUNDS,
									   _("%s, %s, %s, %d in flight, pace %d kB"),
									   test_names[TEST_STREAM],
									   new ? "append" : "overwrite",
									   mode_names[mode], way->depth,
									   BLOCKS_TO_KB(way->pace)))
					continue;
				measure(way, method, prepare_file(new), &rounds[i][round]);
			}
		}
	}
	for (int i = 0; i < nways; i++)
	{
		if (rounds[i][0].rate > 0)
			results_add_median(TEST_STREAM, mode,
							   ways[i].new ? "append" : "overwrite",
							   ways[i].depth, BLOCKS_TO_KB(ways[i].pace),
							   rounds[i]);
	}
}
