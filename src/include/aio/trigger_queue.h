/*-------------------------------------------------------------------------
 *
 * trigger_queue.h
 *	  The queue of a statement's AFTER triggers, while it is worked off.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AIO_TRIGGER_QUEUE_H
#define AIO_TRIGGER_QUEUE_H

#include "commands/trigger.h"
#include "nodes/execnodes.h"
#include "storage/itemptr.h"

/* A place in a queue. */
typedef struct AioTriggerCursor
{
	void	   *chunk;			/* upstream's AfterTriggerEventChunk */
	void	   *event;			/* AfterTriggerEventData */
	CommandId	firing_id;		/* of the cycle in which events are fired */
	bool		at_end;			/* there is no later event of the cycle */
} AioTriggerCursor;

/* What is queued for a row. */
typedef struct AioTriggerEvent
{
	Oid			trigger;
	Oid			relid;			/* the trigger's table */
	Oid			role;			/* as which the trigger will be fired */
	bool		in_table;		/* are its rows in that table? */
	ItemPointerData old_tid;	/* invalid for INSERT */
	ItemPointerData new_tid;	/* invalid for DELETE */
} AioTriggerEvent;

/*
 * The event that was fired last, and by which trigger.  What the trigger's
 * function executes may have queues of its own; when that returns to it, this
 * is an event of one of these, and the queue may be gone.  So who looks at it
 * while a trigger is called asks AioIsTriggerDue() before.
 */
typedef struct AioTriggerDue
{
	EState	   *estate;			/* of the queue */
	AioTriggerCursor cursor;
	Oid			trigger;
	const TriggerData *call;	/* what its function has been called with,
								 * only to be compared; NULL until then */
} AioTriggerDue;

extern PGDLLIMPORT AioTriggerDue aio_trigger_due;

/*
 * Is aio_trigger_due the event for which a trigger's function has been called
 * with this?  ALTER TABLE calls triggers without a queue, that have no OID.
 */
static inline bool
AioIsTriggerDue(const TriggerData *call)
{
	return aio_trigger_due.call == call &&
		OidIsValid(call->tg_trigger->tgoid) &&
		aio_trigger_due.trigger == call->tg_trigger->tgoid;
}

/* is anything kept for a queue? */
extern PGDLLIMPORT struct AioTriggerQueue *aio_trigger_queues;

/* trigger_internals.c */
extern bool AioNextTriggerEvent(AioTriggerCursor *cursor);
extern void AioGetTriggerEvent(const AioTriggerCursor *cursor,
							   AioTriggerEvent *event);

/* trigger_queue.c */
extern void AioTriggerQueueEnd(EState *estate);

#endif							/* AIO_TRIGGER_QUEUE_H */
