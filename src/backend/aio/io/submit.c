/*-------------------------------------------------------------------------
 *
 * submit.c
 *	  When the reads that tasks have staged go to the kernel.
 *
 * With io_uring one system call submits many reads, so tasks stage theirs in
 * AIO batch mode.  Between staging and submission lies a danger: another
 * backend may wait for a staged read, which nothing in its power completes.
 * If we then wait for that backend, both wait for ever and no detector sees
 * it.  So everything that can block submits first: AioBeforeBlock() stands
 * before sleeping on an LWLock, before WaitEventSetWait(), and before waiting
 * for an AIO.
 *
 * Batches are ours alone while aio_batch_open is set.  Upstream's own use of
 * batch mode begins by ending ours.  The other I/O methods are never batched:
 * handing I/O to a worker takes an LWLock, which is one of the places that
 * would have to submit first.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "aio/block.h"
#include "aio/io_internal.h"
#include "storage/aio.h"

/* staged reads at which a batch is submitted at the latest */
#define AIO_BATCH_MAX	16

StaticAssertDecl(AIO_BATCH_MAX < PGAIO_SUBMIT_BATCH_SIZE,
				 "upstream must never submit a batch because it is full");

bool		aio_batch_open = false;

/* From here on reads are staged, until AioSubmitBatch(). */
void
AioBatchOpen(void)
{
#ifdef IOMETHOD_IO_URING_ENABLED
	if (io_method == IOMETHOD_IO_URING && !pgaio_my_backend->in_batchmode)
	{
		pgaio_enter_batchmode();
		aio_batch_open = true;
	}
#endif
}

/*
 * Submit the open batch if it is large enough.  What is enough depends on how
 * busy the device is kept already: while little is in flight, holding reads
 * back idles it; later the system calls saved are worth more.
 */
void
AioBatchConsider(void)
{
	int			staged = pgaio_my_backend->num_staged_ios;

	if (staged >= AIO_BATCH_MAX ||
		staged > dclist_count(&pgaio_my_backend->in_flight_ios) / 4)
		AioSubmitBatch();
}

/*
 * Submit what tasks have staged and leave batch mode.  May be called at any
 * time, also in error recovery, and raises nothing.
 */
void
AioSubmitBatch(void)
{
	if (!aio_batch_open)
		return;
	aio_batch_open = false;

	/* error recovery may have left batch mode for us, or the process ends */
	if (pgaio_my_backend != NULL && pgaio_my_backend->in_batchmode)
		pgaio_exit_batchmode();
	Assert(pgaio_my_backend == NULL || pgaio_my_backend->num_staged_ios == 0);
}
