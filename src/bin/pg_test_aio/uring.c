/*-------------------------------------------------------------------------
 *
 * uring.c
 *	  The method io_uring: one ring, and one system call for all that is
 *	  submitted at a time.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres_fe.h"

#ifdef USE_LIBURING
#include <liburing.h>
#endif

#include "common/logging.h"
#include "pg_test_aio.h"

#ifdef USE_LIBURING

static struct io_uring ring;

/* Submit what is in the ring.  Returns 0, or an errno. */
static int
enter(void)
{
	int			status;

	do
	{
		status = io_uring_submit(&ring);
	} while (status == -EINTR || (status >= 0 && io_uring_sq_ready(&ring) > 0));
	return Max(-status, 0);
}

/* A container may permit to set up a ring but not to use it, so use it. */
static int
probe(void)
{
	struct io_uring_cqe *cqe;
	int			error;

	io_uring_prep_nop(io_uring_get_sqe(&ring));
	error = enter();
	if (error == 0)
		error = -io_uring_wait_cqe(&ring, &cqe);
	if (error == 0)
		io_uring_cqe_seen(&ring, cqe);
	return error;
}

static char *
uring_start(int depth)
{
	int			error = -io_uring_queue_init(depth, &ring, 0);

	if (error == 0 && (error = probe()) != 0)
		io_uring_queue_exit(&ring);
	errno = error;
	return error == 0 ? NULL : psprintf("%m");
}

static void
uring_submit(IoRequest **requests, int n)
{
	for (int i = 0; i < n; i++)
	{
		IoRequest  *request = requests[i];
		struct io_uring_sqe *sqe = io_uring_get_sqe(&ring);

		switch (request->op)
		{
			case IO_READ:
				io_uring_prep_read(sqe, request->fd, request->buffer,
								   request->length, request->offset);
				break;
			case IO_WRITE:
				io_uring_prep_write(sqe, request->fd, request->buffer,
									request->length, request->offset);
				break;
			case IO_DATASYNC:
				io_uring_prep_fsync(sqe, request->fd, IORING_FSYNC_DATASYNC);
				break;
		}
		io_uring_sqe_set_data(sqe, request);
	}
	errno = enter();
	if (errno != 0)
		pg_fatal("could not submit I/O to io_uring: %m");
}

static int
uring_wait(IoRequest **done, int max)
{
	struct io_uring_cqe *cqe;
	int			n = 0;
	int			status;

	do
	{
		status = io_uring_wait_cqe(&ring, &cqe);
	} while (status == -EINTR);
	errno = -status;
	if (status < 0)
		pg_fatal("could not wait for io_uring: %m");
	do
	{
		done[n] = io_uring_cqe_get_data(cqe);
		done[n++]->result = cqe->res;
		io_uring_cqe_seen(&ring, cqe);
	} while (n < max && io_uring_peek_cqe(&ring, &cqe) == 0);
	return n;
}

#else							/* !USE_LIBURING */

static char *
uring_start(int depth)
{
	return pstrdup(_("this program is built without io_uring"));
}

#endif

const IoMethod method_uring = {
	.name = "io_uring",
	.max_depth = DEPTH_LIMIT,
	.start = uring_start,
#ifdef USE_LIBURING
	.submit = uring_submit,
	.wait = uring_wait,
#endif
};
