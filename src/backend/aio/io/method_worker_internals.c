/*-------------------------------------------------------------------------
 *
 * method_worker_internals.c
 *	  Included at the end of storage/aio/method_worker.c: the method libaio,
 *	  for which the same workers carry out the I/O.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */

/*
 * I/Os that may wait for a worker to submit them, a power of two.  Who finds
 * the queue full has to wait for the disk itself.
 */
#define LIBAIO_QUEUE_SIZE	4096

StaticAssertDecl((LIBAIO_QUEUE_SIZE & (LIBAIO_QUEUE_SIZE - 1)) == 0,
				 "a power of two");

static size_t
libaio_shmem_size(void)
{
	io_worker_queue_size = LIBAIO_QUEUE_SIZE;
	return pgaio_worker_shmem_size();
}

const IoMethodOps aio_libaio_ops = {
	.shmem_size = libaio_shmem_size,
	.shmem_init = pgaio_worker_shmem_init,

	.needs_synchronous_execution = pgaio_worker_needs_synchronous_execution,
	.submit = pgaio_worker_submit,
};
