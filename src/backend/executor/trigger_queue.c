/*-------------------------------------------------------------------------
 *
 * trigger_queue.c
 *	  What is kept while the queue of a statement's AFTER triggers is worked
 *	  off.
 *
 * A queue has an EState, and what is kept for it is in that one's memory: so it
 * goes with it, after an error, too.  That may be later than the resource owner
 * goes in which something was opened, as of a portal that is older than the
 * subtransaction that fails.  Nothing is kept until somebody asks.  A trigger
 * may execute a statement with a queue of its own, and so on.
 *
 * Tests: src/test/aio/ri.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "ri.h"
#include "utils/memutils.h"

AioTriggerDue aio_trigger_due;

/* queues for which something is kept, the innermost first */
AioTriggerQueue *aio_trigger_queues = NULL;

/* MemoryContextCallback: the EState is being freed. */
static void
forget_queue(void *arg)
{
	AioTriggerQueue **link = &aio_trigger_queues;
	AioTriggerQueue *queue = arg;

	if (queue->forget_ahead != NULL)
		queue->forget_ahead(queue->ahead);
	while (*link != arg)
		link = &(*link)->next;
	*link = (*link)->next;
}

/* What is kept for a queue, or NULL. */
AioTriggerQueue *
AioFindTriggerQueue(const EState *estate)
{
	for (AioTriggerQueue *queue = aio_trigger_queues; queue != NULL; queue = queue->next)
	{
		if (queue->estate == estate)
			return queue;
	}
	return NULL;
}

/* What is kept for a queue from now on. */
AioTriggerQueue *
AioTriggerQueueOf(EState *estate)
{
	AioTriggerQueue *queue = AioFindTriggerQueue(estate);
	MemoryContextCallback *callback;
	MemoryContext old;

	if (queue != NULL)
		return queue;

	old = MemoryContextSwitchTo(estate->es_query_cxt);
	queue = palloc0(sizeof(AioTriggerQueue));
	callback = palloc0(sizeof(MemoryContextCallback));
	queue->estate = estate;
	queue->next = aio_trigger_queues;
	aio_trigger_queues = queue;
	callback->func = forget_queue;
	callback->arg = queue;
	MemoryContextRegisterResetCallback(estate->es_query_cxt, callback);
	MemoryContextSwitchTo(old);
	return queue;
}

/* All events of a cycle have been fired: close what has been opened for it. */
void
AioTriggerQueueEnd(EState *estate)
{
	AioTriggerQueue *queue = AioFindTriggerQueue(estate);

	if (queue != NULL && queue->end_checks != NULL)
		queue->end_checks(queue);
}
