/*-------------------------------------------------------------------------
 *
 * libaio.c
 *	  The method libaio: the kernel's asynchronous I/O, in the I/O workers.
 *
 * An I/O that is submitted to the kernel in this way can only be completed by
 * the process that has submitted it.  A backend may be waiting for a lock when
 * others need its I/O, so the I/O workers submit it; they never wait for a
 * process that waits for I/O.  Each has many I/Os in flight, where a worker of
 * the method worker has one.
 *
 * The kernel works asynchronously on files that have been opened for direct
 * I/O.  A worker carries out all other I/O (buffered files, allocation of
 * space) itself, as in the method worker, also if the kernel refuses an I/O.
 * What is completed meanwhile has to wait for that, which takes as long as the
 * disk does.
 *
 * Upholds INVARIANT-56.
 *
 * Tests: src/test/aio/io_method/t/001_io_method.pl.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#ifdef __linux__
#include <linux/aio_abi.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#endif
#include <unistd.h>

#include "aio/backup.h"
#include "aio/io_internal.h"
#include "aio/io_method.h"
#include "miscadmin.h"
#include "storage/aio_internal.h"
#include "storage/fd.h"
#include "storage/io_worker.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "storage/proc.h"
#include "storage/waiteventset.h"
#include "utils/memdebug.h"
#include "utils/wait_event.h"

#ifdef __linux__

/*
 * I/Os that one worker has in flight, and completions that are taken at a
 * time. The limits are low in builds with assertions, so that tests reach
 * them.
 */
#ifdef USE_ASSERT_CHECKING
#define IN_FLIGHT_MAX	4
#define EVENTS_MAX		2
#else
#define IN_FLIGHT_MAX	128
#define EVENTS_MAX		32
#endif

static enum
{
	NOT_TRIED, USABLE, UNUSABLE
}			state = NOT_TRIED;
static aio_context_t context;
static int	event_fd = -1;		/* readable when something is complete */
static WaitEventSet *wait_set;
static int	nin_flight = 0;

/*
 * Can this server's workers use it?  Returns 0, or an errno.
 */
int
AioLibaioProbe(void)
{
	aio_context_t probe = 0;

	if (syscall(SYS_io_setup, io_workers * IN_FLIGHT_MAX, &probe) < 0)
		return errno;
	syscall(SYS_io_destroy, probe);
	return 0;
}

static void
say_whose(void *arg)
{
	PgAioHandle *ioh = *(PgAioHandle **) arg;

	if (ioh != NULL)
		errcontext("I/O worker completing I/O on behalf of process %d",
				   GetPGProcByNumber(ioh->owner_procno)->pid);
}

/*
 * Complete what is complete; wait until so many are.  Raises nothing but a
 * PANIC.
 */
static void
reap(int at_least)
{
	PgAioHandle *ioh = NULL;
	ErrorContextCallback callback = {
		.previous = NULL,		/* what is at hand is another I/O */
		.callback = say_whose,
		.arg = &ioh,
	};
	ErrorContextCallback *outer = error_context_stack;
	struct io_event events[EVENTS_MAX];
	long		n;

	error_context_stack = &callback;
	while (nin_flight > 0)
	{
		pgstat_report_wait_start(WAIT_EVENT_AIO_IO_COMPLETION);
		n = syscall(SYS_io_getevents, context, (long) at_least,
					(long) EVENTS_MAX, events, NULL);
		pgstat_report_wait_end();
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			elog(PANIC, "io_getevents() failed: %m");

		/* of nobody else's */
		Assert(n <= nin_flight);

#ifdef USE_ASSERT_CHECKING
		for (int i = (int) n - 1; aio_debug_delay_completions > 0 && i > 0; i--)
		{
			int			other = AioRandom(i + 1);
			struct io_event event = events[i];

			events[i] = events[other];
			events[other] = event;
		}
#endif
		for (long i = 0; i < n; i++)
		{
			ioh = (PgAioHandle *) (uintptr_t) events[i].data;
			START_CRIT_SECTION();
			pgaio_io_process_completion(ioh, (int) events[i].res);
			END_CRIT_SECTION();
			ioh = NULL;
			nin_flight--;
		}
		if (n < EVENTS_MAX)
			break;
		at_least = 0;
	}
	error_context_stack = outer;
}

/* At the end of a worker: the kernel would forget what is in flight. */
static void
finish(int code, Datum arg)
{
	while (nin_flight > 0)
		reap(1);
}

/*
 * Set up the io context.  May raise an error, so it must not be called while
 * an I/O has been accepted: whoever waits for that I/O would wait forever.
 */
static void
set_up(void)
{
	const char *what = NULL;

	Assert(AmIoWorkerProcess());
	wait_set = CreateWaitEventSet(NULL, 3);
	if (syscall(SYS_io_setup, IN_FLIGHT_MAX, &context) < 0)
		what = "io_setup";
	else if ((event_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) < 0)
	{
		int			save_errno = errno;

		syscall(SYS_io_destroy, context);
		errno = save_errno;
		what = "eventfd";
	}
	if (what != NULL)
	{
		state = UNUSABLE;
		ereport(LOG,
				(errmsg("I/O worker cannot use libaio: %s failed: %m", what),
				 errdetail("It carries out one I/O at a time."),
				 errhint("Check /proc/sys/fs/aio-max-nr, which counts all processes of this host.")));
		return;
	}
	ReserveExternalFD();
	AddWaitEventToSet(wait_set, WL_LATCH_SET, PGINVALID_SOCKET, MyLatch, NULL);
	AddWaitEventToSet(wait_set, WL_EXIT_ON_PM_DEATH, PGINVALID_SOCKET, NULL, NULL);
	AddWaitEventToSet(wait_set, WL_SOCKET_READABLE, event_fd, NULL, NULL);
	before_shmem_exit(finish, 0);
	state = USABLE;
}

/*
 * Submit an I/O whose file is open.  The kernel has its own reference to the
 * file then, so that it may be closed.  Returns whether it is in flight.
 */
static bool
submit(PgAioHandle *ioh)
{
	struct iocb control = {0};
	struct iocb *controls[] = {&control};

	switch ((PgAioOp) ioh->op)
	{
		case PGAIO_OP_READV:
			control.aio_lio_opcode = IOCB_CMD_PREADV;
			control.aio_fildes = ioh->op_data.read.fd;
			control.aio_nbytes = ioh->op_data.read.iov_length;
			control.aio_offset = ioh->op_data.read.offset;
			control.aio_rw_flags = AioReadVFlags(ioh);
			break;
		case PGAIO_OP_WRITEV:
			control.aio_lio_opcode = IOCB_CMD_PWRITEV;
			control.aio_fildes = ioh->op_data.write.fd;
			control.aio_nbytes = ioh->op_data.write.iov_length;
			control.aio_offset = ioh->op_data.write.offset;
			break;
		default:
			return false;
	}
	control.aio_buf = (uintptr_t) &pgaio_ctl->iovecs[ioh->iovec_off];
	control.aio_data = (uintptr_t) ioh;
	control.aio_flags = IOCB_FLAG_RESFD;
	control.aio_resfd = event_fd;

	if (nin_flight == IN_FLIGHT_MAX)
		reap(1);
	Assert(nin_flight < IN_FLIGHT_MAX);
	for (;;)
	{
		long		n = syscall(SYS_io_submit, context, 1L, controls);

		if (n == 1)
		{
			nin_flight++;
			return true;
		}
		if (n < 0 && errno == EAGAIN && nin_flight > 0)
			reap(1);
		else if (!(n < 0 && errno == EINTR))
			return false;
	}
}

/*
 * IoWorkerMain(): carry out an I/O, or submit it.  Interrupts
 * are held off, and the file is open.
 */
void
AioWorkerPerform(PgAioHandle *ioh)
{
	Assert(InterruptHoldoffCount > 0);
	Assert(AioHeldLWLocks() == 0);

#ifdef USE_VALGRIND
	/* upstream has declared undefined what it thinks will be read */
	if (ioh->op == PGAIO_OP_WRITEV)
	{
		struct iovec *iov;
		uint16		niovecs = pgaio_io_get_iovec_length(ioh, &iov);

		for (int i = 0; i < niovecs; i++)
			VALGRIND_MAKE_MEM_DEFINED(iov[i].iov_base, iov[i].iov_len);
	}
#endif

	/* what is complete should not have to wait for this one */
	if (!AioRandomDelay())
		reap(0);
	if (state != USABLE || (ioh->flags & PGAIO_HF_BUFFERED) || !submit(ioh))
		pgaio_io_perform_synchronously(ioh);
}

/*
 * IoWorkerMain(): there is nothing to carry out.  Arguments as those of
 * WaitLatch(); also returns when an I/O has been completed.
 */
void
AioWorkerWait(Latch *latch, int events, long timeout, uint32 wait_event)
{
	WaitEvent	event;
	uint64		count;

	if (io_method == IOMETHOD_LIBAIO && state == NOT_TRIED)
		set_up();
	Assert(nin_flight == 0 || state == USABLE);
	if (nin_flight == 0)
	{
		(void) WaitLatch(latch, events, timeout, wait_event);
		return;
	}
	if (WaitEventSetWait(wait_set, timeout, &event, 1, wait_event) == 1 &&
		event.events == WL_SOCKET_READABLE &&
		read(event_fd, &count, sizeof(count)) < 0 && errno != EAGAIN)
		elog(PANIC, "could not read from event descriptor: %m");
	reap(0);
}

#else							/* not Linux */

int
AioLibaioProbe(void)
{
	return ENOSYS;
}

void
AioWorkerPerform(PgAioHandle *ioh)
{
	pgaio_io_perform_synchronously(ioh);
}

void
AioWorkerWait(Latch *latch, int events, long timeout, uint32 wait_event)
{
	(void) WaitLatch(latch, events, timeout, wait_event);
}

#endif
