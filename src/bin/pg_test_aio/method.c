/*-------------------------------------------------------------------------
 *
 * method.c
 *	  Who carries out I/O: what the methods have in common, and the method
 *	  sync.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres_fe.h"

#include <unistd.h>

#include "common/logging.h"
#include "pg_test_aio.h"

/* what the method sync has carried out */
static IoRequest *carried_out;

/*
 * Carry out an I/O, and wait for it.  The result is in the request.  May be
 * called by any thread.
 */
void
io_attempt(IoRequest *request)
{
	do
	{
		switch (request->op)
		{
			case IO_READ:
				request->result = pread(request->fd, request->buffer,
										request->length, request->offset);
				break;
			case IO_WRITE:
				request->result = pwrite(request->fd, request->buffer,
										 request->length, request->offset);
				break;
			case IO_DATASYNC:
				request->result = fdatasync(request->fd);
				break;
		}
	} while (request->result < 0 && errno == EINTR);
	if (request->result < 0)
		request->result = -errno;
}

/* End the program if it failed. */
static void
check(const IoRequest *request)
{
	if (request->result < 0)
		testfile_failed(request->op, -request->result);
	if (request->op != IO_DATASYNC && request->result != request->length)
		pg_fatal("could not read or write the test file in directory \"%s\": %zd of %zu bytes were transferred",
				 options.directory, request->result, request->length);
}

/* Carry out an I/O, and wait for it.  Does not return if it fails. */
void
io_perform(IoRequest *request)
{
	io_attempt(request);
	check(request);
}

/* Have one I/O carried out. */
void
io_submit_one(const IoMethod *method, IoRequest *request)
{
	request->started = now_ns();
	method->submit(&request, 1);
}

/*
 * Wait until at least one is complete.  'done' has room for DEPTH_LIMIT.
 * Returns how many are; does not return if one has failed.
 */
int
io_wait(const IoMethod *method, IoRequest **done)
{
	int			n = method->wait(done, DEPTH_LIMIT);

	for (int i = 0; i < n; i++)
		check(done[i]);
	return n;
}

static char *
sync_start(int depth)
{
	return NULL;
}

static void
sync_submit(IoRequest **requests, int n)
{
	Assert(n == 1);
	carried_out = requests[0];
	io_attempt(carried_out);
}

static int
sync_wait(IoRequest **done, int max)
{
	done[0] = carried_out;
	return 1;
}

const IoMethod method_sync = {
	.name = "sync",
	.max_depth = 1,
	.start = sync_start,
	.submit = sync_submit,
	.wait = sync_wait,
};
