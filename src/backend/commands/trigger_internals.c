/*-------------------------------------------------------------------------
 *
 * trigger_internals.c
 *	  Included at the end of commands/trigger.c: which events a queue holds.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "aio/trigger_queue.h"

/*
 * Move to the next event of the queue that is fired in this cycle.  Returns
 * false, and stays, if there is none.
 */
bool
AioNextTriggerEvent(AioTriggerCursor *cursor)
{
	AfterTriggerEventChunk *chunk = cursor->chunk;
	char	   *next = cursor->event;

	if (cursor->at_end)
		return false;
	next += SizeofTriggerEvent((AfterTriggerEvent) next);
	for (;;)
	{
		AfterTriggerEvent event;

		while (next >= chunk->freeptr)
		{
			chunk = chunk->next;
			if (chunk == NULL)
			{
				cursor->at_end = true;
				return false;
			}
			next = CHUNK_DATA_START(chunk);
		}
		event = (AfterTriggerEvent) next;
		if ((event->ate_flags & AFTER_TRIGGER_IN_PROGRESS) &&
			GetTriggerSharedData(event)->ats_firing_id == cursor->firing_id)
		{
			cursor->chunk = chunk;
			cursor->event = event;
			return true;
		}
		next += SizeofTriggerEvent(event);
	}
}

/* The event at which the cursor is. */
void
AioGetTriggerEvent(const AioTriggerCursor *cursor, AioTriggerEvent *result)
{
	AfterTriggerEvent event = cursor->event;
	AfterTriggerShared shared = GetTriggerSharedData(event);
	TriggerFlags tids = event->ate_flags & AFTER_TRIGGER_TUP_BITS;

	result->trigger = shared->ats_tgoid;
	result->relid = shared->ats_relid;
	result->role = shared->ats_rolid;
	result->in_table = TRIGGER_FIRED_FOR_ROW(shared->ats_event) &&
		(tids == AFTER_TRIGGER_1CTID || tids == AFTER_TRIGGER_2CTID);
	ItemPointerSetInvalid(&result->old_tid);
	ItemPointerSetInvalid(&result->new_tid);
	if (!result->in_table)
		return;
	if (TRIGGER_FIRED_BY_INSERT(shared->ats_event))
		result->new_tid = event->ate_ctid1;
	else
		result->old_tid = event->ate_ctid1;
	if (tids == AFTER_TRIGGER_2CTID)
		result->new_tid = event->ate_ctid2;
}
