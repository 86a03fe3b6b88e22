/*-------------------------------------------------------------------------
 *
 * aio_internals.c
 *	  Included at the end of storage/aio/aio.c: waits for an I/O are counted,
 *	  and do not rely on its owner once it is submitted.
 *
 * Tests: src/test/aio/core/t/002_staged.pl.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "aio/io_method.h"
#include "aio/usage.h"

/* so long a wait lasts before it is looked whether the I/O is submitted */
#define LOOK_MS		1

/*
 * Another process has staged an I/O.  Upstream's function would sleep from now
 * on until somebody completes it.  But when it is submitted we can do that, and
 * have to if the other process then waits for us; and nobody tells us when it
 * is.
 */
static void
wait_until_submitted(PgAioHandle *ioh, uint64 ref_generation)
{
	PgAioHandleState state;
	bool		slept = false;

	if (pgaio_method_ops->wait_one == NULL)
		return;
	while (!pgaio_io_was_recycled(ioh, ref_generation, &state) &&
		   (state == PGAIO_HS_DEFINED || state == PGAIO_HS_STAGED))
	{
		ConditionVariableTimedSleep(&ioh->cv, LOOK_MS, WAIT_EVENT_AIO_IO_COMPLETION);
		slept = true;
	}
	if (slept)
		ConditionVariableCancelSleep();
}

/*
 * An I/O of this process may be in the queue of I/O workers, behind others that
 * take long: look whenever they are busy.
 */
static void
wait_until_begun(PgAioHandle *ioh, uint64 ref_generation)
{
	PgAioHandleState state;

	if (likely(!AioWorkerTakeBack(ioh)))
		return;
	ConditionVariablePrepareToSleep(&ioh->cv);
	while (!pgaio_io_was_recycled(ioh, ref_generation, &state) &&
		   state == PGAIO_HS_SUBMITTED && AioWorkerTakeBack(ioh))
		ConditionVariableSleep(&ioh->cv, WAIT_EVENT_AIO_IO_COMPLETION);
	ConditionVariableCancelSleep();
}

/*
 * Wait for an I/O, and count that.  A seam gives upstream's function another
 * name, so that every caller comes here.
 */
static void
pgaio_io_wait(PgAioHandle *ioh, uint64 ref_generation)
{
	AioBeginWait(ioh, ref_generation);
	if (ioh->owner_procno == MyProcNumber)
		wait_until_begun(ioh, ref_generation);
	else
		wait_until_submitted(ioh, ref_generation);
	upstream_pgaio_io_wait(ioh, ref_generation);
	AioEndWait();
}
