/*-------------------------------------------------------------------------
 *
 * libaio.c
 *	  The method libaio: the kernel's older interface, by its system calls.
 *
 * The kernel works asynchronously on files that are opened for direct I/O, so
 * nothing else is measured.  In a server the I/O workers use it, on behalf of
 * others; what is measured here is without that detour.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres_fe.h"

#ifdef __linux__
#include <linux/aio_abi.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include "common/logging.h"
#include "pg_test_aio.h"

/* the kernel may be short of memory for so long, in milliseconds */
#define PATIENCE		10000

#ifdef __linux__

static aio_context_t context;

static char *
libaio_start(int depth)
{
	return syscall(SYS_io_setup, depth, &context) == 0 ? NULL : psprintf("%m");
}

static void
libaio_submit(IoRequest **requests, int n)
{
	struct iocb controls[DEPTH_LIMIT];
	struct iocb *pointers[DEPTH_LIMIT];
	int			submitted = 0;
	int			waited = 0;

	for (int i = 0; i < n; i++)
	{
		Assert(requests[i]->op != IO_DATASYNC);
		controls[i] = (struct iocb)
		{
			.aio_lio_opcode = requests[i]->op == IO_READ ?
				IOCB_CMD_PREAD : IOCB_CMD_PWRITE,
				.aio_fildes = requests[i]->fd,
				.aio_buf = (uintptr_t) requests[i]->buffer,
				.aio_nbytes = requests[i]->length,
				.aio_offset = requests[i]->offset,
				.aio_data = (uintptr_t) requests[i],
		};
		pointers[i] = &controls[i];
	}
	while (submitted < n)
	{
		long		status = syscall(SYS_io_submit, context,
									 (long) (n - submitted),
									 pointers + submitted);

		/* none of them is the same as "try again", and sets no errno */
		if (status == 0)
			errno = EAGAIN;
		if (status > 0)
			submitted += status;
		else if (errno == EAGAIN && waited++ < PATIENCE)
			pg_usleep(1000);
		else if (errno != EINTR)
			pg_fatal("could not submit I/O to libaio: %m");
	}
}

static int
libaio_wait(IoRequest **done, int max)
{
	struct io_event events[DEPTH_LIMIT];
	long		n;

	do
	{
		n = syscall(SYS_io_getevents, context, 1L, (long) Min(max, DEPTH_LIMIT),
					events, NULL);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		pg_fatal("could not wait for libaio: %m");
	for (long i = 0; i < n; i++)
	{
		done[i] = (IoRequest *) (uintptr_t) events[i].data;
		done[i]->result = (ssize_t) events[i].res;
	}
	return (int) n;
}

#else							/* not Linux */

static char *
libaio_start(int depth)
{
	return pstrdup(_("only Linux has it"));
}

#endif

const IoMethod method_libaio = {
	.name = "libaio",
	.max_depth = DEPTH_LIMIT,
	.direct_only = true,
	.start = libaio_start,
#ifdef __linux__
	.submit = libaio_submit,
	.wait = libaio_wait,
#endif
};
