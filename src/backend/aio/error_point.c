/*-------------------------------------------------------------------------
 *
 * error_point.c
 *	  Go on after an error, without a subtransaction.
 *
 * Only for what changes nothing that would have to be undone, such as the
 * evaluation of an expression whose value may not be needed: locks of pages and
 * interrupts are as before, and whatever else was acquired since then is the
 * caller's to release.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "aio/error_point.h"
#include "aio/task_port.h"
#include "miscadmin.h"

/* Remember what holds before something is tried that may raise an error. */
void
AioMarkErrorPoint(AioErrorPoint *point)
{
	point->memory_context = CurrentMemoryContext;
	point->owner = CurrentResourceOwner;
	point->holdoff = InterruptHoldoffCount;
	point->cancel_holdoff = QueryCancelHoldoffCount;
}

/*
 * In PG_CATCH(): forget the error, and go on from there.  Who will need the
 * error has copied it.
 */
void
AioReturnToErrorPoint(const AioErrorPoint *point)
{
	MemoryContextSwitchTo(point->memory_context);
	CurrentResourceOwner = point->owner;
	FlushErrorState();
	AioCleanUpAfterError();
	InterruptHoldoffCount = point->holdoff;
	QueryCancelHoldoffCount = point->cancel_holdoff;
}
