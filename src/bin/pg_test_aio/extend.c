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

/* aio.extend_ahead of the server, by default, in blocks */
#define AHEAD_BLOCKS	4096

typedef enum Way
{
	ZEROS,
	FALLOCATE,
	AHEAD,
} Way;

static const char *const way_names[] = {"zeros", "fallocate", "ahead"};
static const int sizes[] = {8, 64};

/*
 * Returns 0, or an errno of a file system that cannot do it.  The file is
 * empty.
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

/* Extend an empty file until it is full, or time is up. */
static void
measure(Way way, FileMode mode, int nblocks, Result *result)
{
	int			fd = testfile_fd(mode, SYNC_NONE);
	Histogram	histogram = {0};
	int64		length = (int64) nblocks * BLCKSZ;
	int64		end = 0;
	int64		nallocated = 0;
	int64		allocating = 0;
	int64		deadline = deadline_ns(1);
	int64		started = now_ns();
	int64		now = started;

	while (now < deadline && end + length <= options.file_size)
	{
		int64		before = now;

		if (way == AHEAD && end % (AHEAD_BLOCKS * BLCKSZ) == 0)
		{
			int64		left = options.file_size - end;

			(void) testfile_allocate(end, Min(AHEAD_BLOCKS * BLCKSZ, left),
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
	result->rate = histogram.n / ((now - started) / 1e9);
	histogram_summary(&histogram, result);
	if (nallocated > 0)
		result->aside = allocating / 1000.0 / nallocated;
}

/*
 * Measure all ways.  Only zeros are written, so the others do not depend on
 * the mode, and are measured once.
 */
void
test_extend(FileMode mode)
{
	for (Way way = ZEROS; way <= AHEAD; way++)
	{
		if (way != ZEROS && mode == MODE_DIRECT && options.modes[MODE_BUFFERED])
			continue;
		for (int i = 0; i < lengthof(sizes); i++)
		{
			int			error;

			if (results_why_not(&results, way_names[way]) != NULL ||
				!begin_measurement(1, _("%s, %s, %s, %d blocks"),
								   test_names[TEST_EXTEND], mode_names[mode],
								   way_names[way], sizes[i]))
				continue;
			testfile_truncate();
			error = probe(way);
			if (error != 0)
			{
				results_skip(way_names[way], strerror(error));
				continue;
			}
			measure(way, mode, sizes[i],
					results_add(TEST_EXTEND, mode, way_names[way], 1,
								sizes[i]));
			testfile_truncate();
		}
	}
}
