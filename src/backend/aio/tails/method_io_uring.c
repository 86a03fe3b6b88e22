/*-------------------------------------------------------------------------
 *
 * method_io_uring.c
 *	  Tail of storage/aio/method_io_uring.c: look for completions without
 *	  blocking, and wait for any completion instead of a certain one.
 *
 * Both follow the ring's own rule: completions are taken off a ring only
 * under its completion_lock, by its owner or by whoever waits for its I/O.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#ifdef IOMETHOD_IO_URING_ENABLED

#include "../internal.h"

/*
 * Process the completions that are in this backend's ring already.  Does not
 * block for I/O; may wait for another process that is emptying the ring.
 */
void
AioUringReap(void)
{
	PgAioUringContext *context = pgaio_my_uring_context;

	/* a stale answer is fine: the next call sees what this one missed */
	if (io_uring_cq_ready(&context->io_uring_ring) == 0)
		return;

	LWLockAcquire(&context->completion_lock, LW_EXCLUSIVE);
	pgaio_uring_drain_locked(context);
	LWLockRelease(&context->completion_lock);
}

/*
 * Wait until at least one I/O of this backend's ring completes, and process
 * what has completed.  'ioh', with the generation the caller knows, must be
 * an I/O submitted to this ring: while it is not complete there is something
 * to wait for.  Returns early when a signal arrives, so that the caller can
 * look at pending interrupts.
 */
void
AioUringWaitAny(PgAioHandle *ioh, uint64 generation)
{
	PgAioUringContext *context = pgaio_my_uring_context;
	PgAioHandleState state;

	LWLockAcquire(&context->completion_lock, LW_EXCLUSIVE);

	/* whoever completes it needs the lock, so the answer cannot change */
	if (!pgaio_io_was_recycled(ioh, generation, &state) &&
		state == PGAIO_HS_SUBMITTED)
	{
		if (io_uring_cq_ready(&context->io_uring_ring) == 0)
		{
			struct io_uring_cqe *cqe;
			int			ret;

			pgstat_report_wait_start(WAIT_EVENT_AIO_IO_URING_EXECUTION);
			ret = io_uring_wait_cqes(&context->io_uring_ring, &cqe, 1,
									 NULL, NULL);
			pgstat_report_wait_end();

			if (ret != 0 && ret != -EINTR)
			{
				errno = -ret;
				elog(PANIC, "waiting for io_uring completions failed: %m");
			}
		}
		pgaio_uring_drain_locked(context);
	}

	LWLockRelease(&context->completion_lock);
}

/* Describe the allocation of space to the kernel. */
void
AioUringFallocate(PgAioHandle *ioh, struct io_uring_sqe *sqe)
{
	const struct iovec *range = &pgaio_ctl->iovecs[ioh->iovec_off];

	io_uring_prep_fallocate(sqe, ioh->op_data.write.fd, FALLOC_FL_KEEP_SIZE,
							ioh->op_data.write.offset, range->iov_len);
}

#endif							/* IOMETHOD_IO_URING_ENABLED */
