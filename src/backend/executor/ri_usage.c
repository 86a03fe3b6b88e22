/*-------------------------------------------------------------------------
 *
 * ri_usage.c
 *	  How the triggers of foreign keys have checked their rows: with queries or
 *	  without, and which of the keys were looked up ahead.
 *
 * The session counts all of them.  What each trigger has done is kept beside
 * what else is kept for its queue, for EXPLAIN, which shows it before the
 * queue's EState is freed.  A queue of which nobody wants to know that, and
 * which makes none of its checks without a query, has nothing to keep.
 *
 * Tests: src/test/aio/ri/t/005_explain.pl.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "aio/stats.h"
#include "ri.h"
#include "utils/memutils.h"

/* Where to count for a trigger, as long as there is the queue. */
AioTriggerUsage *
AioTriggerUsageIn(AioTriggerQueue *queue, Oid trigger)
{
	MemoryContext old;
	AioTriggerUsage *usage;

	foreach_ptr(AioTriggerUsage, known, queue->usages)
	{
		if (known->trigger == trigger)
			return known;
	}
	old = MemoryContextSwitchTo(queue->estate->es_query_cxt);
	usage = palloc0(sizeof(AioTriggerUsage));
	usage->trigger = trigger;
	queue->usages = lappend(queue->usages, usage);
	MemoryContextSwitchTo(old);
	return usage;
}

/* A row has been checked without a query. */
void
AioCountDirectCheck(AioTriggerUsage *usage)
{
	usage->direct++;
	aio_session_stats_data.checks_direct++;
}

/* So many keys have been looked up ahead. */
void
AioCountKeysAhead(AioTriggerUsage *usage, uint32 n)
{
	usage->ahead += n;
	aio_session_stats_data.check_keys_ahead += n;
}

/*
 * RI_FKey_cascade_del() and others, and where we are asked before: this trigger
 * is going to execute its query.
 */
void
AioRiCountQuery(const TriggerData *trigger)
{
	aio_session_stats_data.checks_by_query++;
	if (AioIsTriggerDue(trigger) && aio_trigger_due.estate->es_instrument != 0)
		AioTriggerUsageIn(AioTriggerQueueOf(aio_trigger_due.estate),
						  aio_trigger_due.trigger)->queries++;
}

/*
 * What a trigger of one of the tables that a statement has opened has done;
 * NULL if that is nothing that is counted.
 */
const AioTriggerUsage *
AioTriggerUsageOf(const ResultRelInfo *rri, Oid trigger)
{
	for (AioTriggerQueue *queue = aio_trigger_queues; queue != NULL; queue = queue->next)
	{
		const EState *estate = queue->estate;

		if (!list_member_ptr(estate->es_opened_result_relations, rri) &&
			!list_member_ptr(estate->es_tuple_routing_result_relations, rri) &&
			!list_member_ptr(estate->es_trig_target_relations, rri))
			continue;
		foreach_ptr(AioTriggerUsage, usage, queue->usages)
		{
			if (usage->trigger == trigger)
				return usage;
		}
	}
	return NULL;
}
