/*-------------------------------------------------------------------------
 *
 * random.c
 *	  Single blocks in random order, with so many in flight.
 *
 * Each block is visited once before any is visited again, and the kernel's
 * cache is emptied before buffered I/O, which ends early when a part of the
 * blocks has been visited.  So buffered reads find little in the cache, even
 * where more is read than was asked for.
 *
 * A buffered write is a copy into the kernel's cache, in whatever way it is
 * asked for, so buffered writes are measured with the method sync only,
 * whatever methods are wanted.  Where there were some, the time includes that
 * of a sync at the end.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres_fe.h"

#include "common/pg_prng.h"
#include "pg_test_aio.h"

/* the test mixed writes so many of a hundred */
#define WRITES_OF_MIXED 30

/* buffered I/O is to one in so many blocks, at most */
#define BUFFERED_PART	4

/* 1, 2, 4, ... DEPTH_LIMIT */
#define NDEPTHS			9

StaticAssertDecl(1 << (NDEPTHS - 1) == DEPTH_LIMIT, "NDEPTHS and DEPTH_LIMIT");
StaticAssertDecl(DEPTH_LIMIT * BLCKSZ <= BUFFER_TOTAL,
				 "the blocks in flight fit into the buffers");

/* numbers of all blocks, in random order, and the next one to visit */
static uint32 *blocks = NULL;
static uint32 nblocks = 0;
static uint32 next_block = 0;

static void
shuffle(void)
{
	nblocks = (uint32) (testfile_size() / BLCKSZ);
	blocks = pg_malloc(nblocks * sizeof(uint32));
	for (uint32 i = 0; i < nblocks; i++)
	{
		uint32		j = pg_prng_uint64_range(&pg_global_prng_state, 0, i);

		blocks[i] = blocks[j];
		blocks[j] = i;
	}
}

/* Make a request that has been carried out, or is new, the next one. */
static void
prepare(IoRequest *request, TestKind test)
{
	uint32		chance = pg_prng_uint32(&pg_global_prng_state) % 100;

	request->op = IO_READ;
	if (test == TEST_WRITE || (test == TEST_MIXED && chance < WRITES_OF_MIXED))
		request->op = IO_WRITE;
	if (request->op == IO_WRITE)
		testfile_vary(request->buffer, request->length);
	request->offset = (off_t) blocks[next_block] * BLCKSZ;
	next_block = (next_block + 1) % nblocks;
}

/*
 * Keep 'depth' I/Os in flight, until time is up; return what came of it in
 * 'result'.
 */
static void
measure(TestKind test, FileMode mode, const IoMethod *method, int depth,
		Result *result)
{
	IoRequest	requests[DEPTH_LIMIT];
	IoRequest  *done[DEPTH_LIMIT];
	Histogram	histogram = {0};
	int64		left = mode == MODE_BUFFERED ? nblocks / BUFFERED_PART :
		PG_INT64_MAX;
	int64		started = now_ns();
	int64		deadline = deadline_ns(1.0 / ROUNDS);
	int			nin_flight = Min(depth, left);

	for (int i = 0; i < nin_flight; i++)
	{
		requests[i].fd = testfile_fd(mode, SYNC_NONE);
		requests[i].length = BLCKSZ;
		requests[i].buffer = testfile_buffer(i, BLCKSZ);
		requests[i].started = started;
		prepare(&requests[i], test);
		done[i] = &requests[i];
	}
	left -= nin_flight;
	method->submit(done, nin_flight);

	while (nin_flight > 0)
	{
		int			n = io_wait(method, done);
		int64		now = now_ns();
		int			nnext = now < deadline ? Min(n, left) : 0;

		for (int i = 0; i < n; i++)
			histogram_add(&histogram, now - done[i]->started);
		for (int i = 0; i < nnext; i++)
		{
			done[i]->started = now;
			prepare(done[i], test);
		}
		if (nnext > 0)
			method->submit(done, nnext);
		left -= nnext;
		nin_flight += nnext - n;
	}
	if (mode == MODE_BUFFERED && test != TEST_READ)
		testfile_sync();

	result->rate = histogram.n / ((now_ns() - started) / 1e9);
	histogram_summary(&histogram, result);
}

/* Is a method to be measured at this depth? */
static bool
applies(TestKind test, FileMode mode, const IoMethod *method, int depth)
{
	if (depth > method->max_depth)
		return false;
	if (test == TEST_WRITE && mode == MODE_BUFFERED)
		return method == &method_sync;
	return method_is_usable(method, mode);
}

/* Run a test at all depths, each with all methods. */
void
test_random(TestKind test, FileMode mode)
{
	static Result rounds[NDEPTHS][METHODS_LIMIT][ROUNDS];

	memset(rounds, 0, sizeof(rounds));
	for (int round = 0; round < ROUNDS; round++)
	{
		for (int d = 0; 1 << d <= options.max_depth; d++)
		{
			for (int i = 0; all_methods[i] != NULL; i++)
			{
				const IoMethod *method = all_methods[i];

				if (!applies(test, mode, method, 1 << d) ||
					!begin_measurement(1.0 / ROUNDS, _("%s, %s, %s, %d in flight"),
									   test_names[test], mode_names[mode],
									   method->name, 1 << d))
					continue;
				if (blocks == NULL)
					shuffle();
				testfile_forget_cached();
				measure(test, mode, method, 1 << d, &rounds[d][i][round]);
			}
		}
	}
	for (int d = 0; d < NDEPTHS; d++)
	{
		for (int i = 0; all_methods[i] != NULL; i++)
		{
			if (rounds[d][i][0].rate > 0)
				results_add_median(test, mode, all_methods[i]->name, 1 << d, 0,
								   rounds[d][i]);
		}
	}
}
