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

/* The event that is fired now, and by which trigger. */
typedef struct AioTriggerDue
{
	EState	   *estate;			/* of the queue */
	AioTriggerCursor cursor;
	Oid			trigger;
} AioTriggerDue;

extern PGDLLIMPORT AioTriggerDue aio_trigger_due;

/* is anything kept for a queue? */
extern PGDLLIMPORT struct AioTriggerQueue *aio_trigger_queues;

/* trigger_internals.c */
extern bool AioNextTriggerEvent(AioTriggerCursor *cursor);
extern void AioGetTriggerEvent(const AioTriggerCursor *cursor,
							   AioTriggerEvent *event);

/* trigger_queue.c */
extern void AioTriggerQueueEnd(EState *estate);

#endif							/* AIO_TRIGGER_QUEUE_H */
