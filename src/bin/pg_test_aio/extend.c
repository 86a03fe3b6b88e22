/*-------------------------------------------------------------------------
 *
 * extend.c
 *	  A file that grows.
 *
 * Three ways: to write zeros at its end; to have the file system allocate
 * space there; and to have it allocate much past the end beforehand, such that
 * the end is only moved.  The server does the last one by an I/O that nobody
 * waits for, so the time of an extension is that of moving the end, and the
 * time of allocating is told aside.  What is never written is not synced
 * either.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres_fe.h"

#include <unistd.h>

#include "common/file_utils.h"
#include "pg_test_aio.h"

typedef enum Way
{
	ZEROS,
	FALLOCATE,
	AHEAD,
} Way;

static const char *const way_names[] = {"zeros", "fallocate", "ahead"};
#define NWAYS			(AHEAD + 1)

static const int sizes[] = {8, 64};

/*
 * Returns 0, or an errno of a file system that cannot do it.  The file is
 * empty, before and after.
 */
static int
probe(Way way)
{
	int			error = 0;

	if (way != ZEROS)
	{
		error = testfile_allocate(0, BLCKSZ, way == AHEAD);
		testfile_truncate();
	}
	return error;
}

static void
extend_once(Way way, int fd, int64 end, int64 length)
{
	switch (way)
	{
		case ZEROS:
			if (pg_pwrite_zeros(fd, length, end) < 0)
				testfile_failed(IO_WRITE, errno);
			break;
		case FALLOCATE:
			(void) testfile_allocate(end, length, false);
			break;
		case AHEAD:
			if (ftruncate(fd, end + length) != 0)
				testfile_failed(IO_WRITE, errno);
			break;
	}
}

/*
 * Extend an empty file until time is up.  When it has its full size, it is
 * emptied, which does not count, and extended again.
 */
static void
measure(Way way, FileMode mode, int nblocks, Result *result)
{
	int			fd = testfile_fd(mode, SYNC_NONE);
	Histogram	histogram = {0};
	int64		length = (int64) nblocks * BLCKSZ;
	int64		end = 0;
	int64		nallocated = 0;
	int64		allocating = 0;
	int64		deadline = deadline_ns(1.0 / ROUNDS);
	int64		now = now_ns();

	while (now < deadline)
	{
		int64		before = now;

		if (end + length > options.file_size)
		{
			testfile_truncate();
			end = 0;
			before = now_ns();
		}
		if (way == AHEAD && end % (PREALLOCATION_BLOCKS * BLCKSZ) == 0)
		{
			int64		left = options.file_size - end;

			now = before;
			(void) testfile_allocate(end, Min(PREALLOCATION_BLOCKS * BLCKSZ, left),
									 true);
			before = now_ns();
			allocating += before - now;
			nallocated++;
		}
		extend_once(way, fd, end, length);
		end += length;
		now = now_ns();
		histogram_add(&histogram, now - before);
	}
	testfile_truncate();
	result->rate = histogram.n / (Max(histogram.sum, 1) / 1e9);
	histogram_summary(&histogram, result);
	if (nallocated > 0)
		result->aside = allocating / 1000.0 / nallocated;
}

/* Can this be done?  If not, that is noted once. */
static bool
can(Way way)
{
	int			error;

	if (results_why_not(&results, way_names[way]) != NULL)
		return false;
	testfile_truncate();
	error = probe(way);
	if (error != 0)
		results_skip(way_names[way], strerror(error));
	return error == 0;
}

/*
 * Measure all ways.  Only zeros are written, so the others do not depend on
 * the mode, and are measured once.
 */
void
test_extend(FileMode mode)
{
	Result		rounds[NWAYS][lengthof(sizes)][ROUNDS] = {0};

	for (int round = 0; round < ROUNDS; round++)
	{
		for (Way way = ZEROS; way <= AHEAD; way++)
		{
			if (way != ZEROS && mode == MODE_DIRECT &&
				options.modes[MODE_BUFFERED])
				continue;
			for (int i = 0; i < lengthof(sizes); i++)
			{
				if (can(way) &&
					begin_measurement(1.0 / ROUNDS, _("%s, %s, %s, %d blocks"),
									  test_names[TEST_EXTEND],
									  mode_names[mode], way_names[way],
									  sizes[i]))
					measure(way, mode, sizes[i], &rounds[way][i][round]);
			}
		}
	}
	for (Way way = ZEROS; way <= AHEAD; way++)
	{
		for (int i = 0; i < lengthof(sizes); i++)
		{
			if (rounds[way][i][0].rate > 0)
				results_add_median(TEST_EXTEND, mode, way_names[way], 1,
								   sizes[i], rounds[way][i]);
		}
	}
}
