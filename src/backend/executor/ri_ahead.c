/*-------------------------------------------------------------------------
 *
 * ri_ahead.c
 *	  The triggers of foreign keys, and of unique keys and exclusion constraints
 *	  that are checked later: look up ahead what they will search for.
 *
 * The queue of a statement's triggers tells which rows will be checked next.
 * When such triggers have had to wait for pages, the keys of rows farther down
 * the queue are probed (lookup_probe.c), as many as the window allows: first
 * steps for all, second steps for those in its nearer half.  A key that has
 * been probed already is passed over, so that rows with equal keys do not fill
 * the window.  A row whose own page is not in memory is read first, and probed
 * when it has come near.  The triggers do not know of all this.
 *
 * Nothing of this is done for keys that are found in batches (ri_batch.c).
 *
 * Tests: src/test/aio/ri.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/table.h"
#include "access/tableam.h"
#include "aio/block.h"
#include "aio/io_internal.h"
#include "aio/lookup.h"
#include "aio/read.h"
#include "aio/task_port.h"
#include "aio/usage.h"
#include "commands/trigger.h"
#include "executor/executor.h"
#include "guard.h"
#include "miscadmin.h"
#include "ri.h"
#include "ri_ring.h"
#include "storage/aio.h"
#include "utils/fmgroids.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"
#include "utils/rel.h"

/* how far down the queue keys are searched for that are not known */
#define EVENTS_AHEAD_MAX	4096

/* a window so wide has opened in earnest */
#define DISTANCE_USEFUL		8

/* after so many waits, a queue that has gained nothing is tried again */
#define WAITS_WANTED_MAX	1024

/* What the events of a trigger search for. */
typedef struct RiSource
{
	Oid			trigger;		/* hash key */
	Oid			relid;			/* its table */
	Oid			key_index;		/* of a key that is checked later */
	bool		by_old_rows;	/* keys are those of rows that are gone */
	AioRiSearch *search;		/* of a foreign key, or NULL */
	AioRecheck *recheck;		/* of a key that is checked later, or NULL */
	bool		filled;			/* is the rest known? */
	TupleTableSlot *slot;		/* for rows of the table */
	AioTriggerUsage *usage;		/* NULL: nothing is searched for */
} RiSource;

/* An event ahead whose keys are looked up. */
typedef struct RiEvent
{
	AioTriggerCursor cursor;
	uint64		number;
	bool		row_wanted;		/* its row was not in memory */
	AioRiSteps	steps;
} RiEvent;

struct AioRiAhead
{
	AioTriggerQueue *queue;
	MemoryContext context;
	MemoryContext probe_context;	/* until all probes have ended */
	HTAB	   *sources;
	int			waits;			/* for pages of targets, while closed */
	int			waits_wanted;	/* to open */
	bool		open;
	AioLookupWindow window;
	CommandId	firing_id;
	uint64		due;			/* the event that is fired now; all are
								 * counted */
	uint64		passed;			/* the last that has been looked at, */
	AioTriggerCursor last;		/* and where it is */

	/* of RiEvent: those that are looked up, in the order of the queue */
	AioRiRing	ring;
	bool		batched;		/* keys of others are found in batches */

	/* while events are looked up */
	AioRiProbes probes;
};

/* queues that look ahead */
int			aio_ri_nahead = 0;

/* aio_pages_missed, when an event was due last */
uint64		aio_ri_missed = 0;

/* The next event that is looked up and will be fired. */
static inline RiEvent *
first_event(const AioRiAhead *ahead)
{
	return AioRiMember(&ahead->ring, ahead->ring.first);
}

/* Nothing is gained, or the queue is being freed. */
static void
close_ahead(AioRiAhead *ahead)
{
	Assert(aio_ri_nahead > 0);
	aio_ri_nahead--;
	ahead->open = false;
	ahead->waits = 0;
	ahead->waits_wanted = Min(2 * ahead->waits_wanted, WAITS_WANTED_MAX);
}

/*
 * The queue is being freed, perhaps after an error.  Contexts below that of the
 * queue are gone already.
 */
static void
forget_ahead(AioRiAhead *ahead)
{
	if (!ahead->open)
		return;
	for (; AioRiAheadOf(&ahead->ring) > 0; AioRiPass(&ahead->ring))
	{
		if (first_event(ahead)->number > ahead->due)
			aio_usage[AIO_KIND_LOOKUP].cancelled++;
	}
	close_ahead(ahead);
}

static AioRiAhead *
get_ahead(AioTriggerQueue *queue)
{
	AioRiAhead *ahead = queue->ahead;
	HASHCTL		ctl;

	if (ahead != NULL)
		return ahead;
	ahead = MemoryContextAllocZero(queue->estate->es_query_cxt,
								   sizeof(AioRiAhead));
	ahead->context = AllocSetContextCreate(queue->estate->es_query_cxt,
										   "foreign keys ahead",
										   ALLOCSET_SMALL_SIZES);
	ahead->probe_context = AllocSetContextCreate(ahead->context, "probes",
												 ALLOCSET_DEFAULT_SIZES);
	ahead->waits_wanted = AIO_WAITS_BEFORE_OPENING;
	ctl.keysize = sizeof(Oid);
	ctl.entrysize = sizeof(RiSource);
	ctl.hcxt = ahead->context;
	ahead->sources = hash_create("triggers of foreign keys", 16, &ctl,
								 HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	ahead->queue = queue;
	queue->ahead = ahead;
	queue->forget_ahead = forget_ahead;
	return ahead;
}

/* Do events of this trigger search for anything that is probed? */
static inline bool
searches(AioRiAhead *ahead, const RiSource *source)
{
	if (source->search == NULL)
		return source->recheck != NULL;
	if (!AioRiFindsInBatches(ahead->queue, source->trigger))
		return true;
	ahead->batched = true;
	return false;
}

static const Trigger *
find_trigger(Relation rel, Oid trigger)
{
	for (int i = 0; rel->trigdesc != NULL && i < rel->trigdesc->numtriggers; i++)
	{
		if (rel->trigdesc->triggers[i].tgoid == trigger)
			return &rel->trigdesc->triggers[i];
	}
	return NULL;
}

/* Find out what the events of this trigger search for. */
static void
fill_source(RiSource *source, Relation rel, const Trigger *trigger)
{
	int			type = RI_FKey_trigger_type(trigger->tgfoid);
	AioRiConstraint constraint;

	if (OidIsValid(source->key_index))
		source->recheck = AioMakeRecheck(rel, source->key_index);
	else if (type != RI_TRIGGER_NONE)
	{
		AioRiGetConstraint(trigger->tgconstraint, &constraint);
		source->by_old_rows = type == RI_TRIGGER_PK;
		if (!constraint.has_period)
			source->search = AioRiMakeSearch(&constraint, !source->by_old_rows, rel);
	}
	if (source->search == NULL && source->recheck == NULL)
		return;

	/* a copy is not counted by a resource owner */
	source->slot =
		MakeSingleTupleTableSlot(CreateTupleDescCopy(RelationGetDescr(rel)),
								 table_slot_callbacks(rel));
}

/*
 * INVARIANT-101: what concerns an index is found out, and its
 * expressions are evaluated, only for events that are fired as the current
 * user.  Others leave the source as it is.
 */
static inline bool
is_of_user(const RiSource *source, const AioTriggerEvent *event)
{
	return !OidIsValid(source->key_index) || event->role == GetUserId();
}

/*
 * What the trigger of this event searches for; NULL if it would do so as
 * somebody else than the current user, and that matters.  May look up catalogs.
 */
static RiSource *
get_source(AioRiAhead *ahead, const AioTriggerEvent *event)
{
	RiSource   *source = hash_search(ahead->sources, &event->trigger, HASH_FIND, NULL);
	RiSource	fresh = {.trigger = event->trigger,.relid = event->relid};
	const Trigger *found;
	Relation	rel;
	MemoryContext old;

	if (source != NULL && (source->filled || !is_of_user(source, event)))
		return source->filled && is_of_user(source, event) ? source : NULL;
	old = MemoryContextSwitchTo(ahead->context);

	/* a row of it is being checked, or will be: it is locked */
	rel = table_open(event->relid, NoLock);
	found = find_trigger(rel, event->trigger);
	if (found != NULL && found->tgfoid == F_UNIQUE_KEY_RECHECK)
		fresh.key_index = found->tgconstrindid;
	fresh.filled = is_of_user(&fresh, event);
	if (found != NULL && fresh.filled && AioIsHeap(rel) &&
		!RelationUsesLocalBuffers(rel))
		fill_source(&fresh, rel, found);
	table_close(rel, NoLock);
	MemoryContextSwitchTo(old);
	if (fresh.slot != NULL)
		fresh.usage = AioTriggerUsageIn(ahead->queue, event->trigger);
	source = hash_search(ahead->sources, &event->trigger, HASH_ENTER, NULL);
	*source = fresh;
	return fresh.filled ? source : NULL;
}

/* Is the page of a row in memory, or on its way from now on? */
static bool
is_here(Relation rel, const ItemPointerData *tid, bool *has_read)
{
	BlockNumber block;

	if (!ItemPointerIsValid(tid))
		return true;
	block = ItemPointerGetBlockNumber(tid);
	if (AioPageIsHere(rel, block))
		return true;
	*has_read |= AioReadAhead(rel, block) == AIO_READ_AHEAD_BEGUN;
	return false;
}

/*
 * The row with which an event's keys are found; NULL if it has to be read.  The
 * trigger is given both versions of a row that has been updated.
 */
static TupleTableSlot *
get_row(RiSource *source, const AioTriggerEvent *event, bool *has_read)
{
	ItemPointerData tid = source->by_old_rows ? event->old_tid : event->new_tid;
	Relation	rel = table_open(source->relid, NoLock);
	bool		old_is_here = is_here(rel, &event->old_tid, has_read);
	bool		new_is_here = is_here(rel, &event->new_tid, has_read);
	TupleTableSlot *row = NULL;

	if (old_is_here && new_is_here &&
		table_tuple_fetch_row_version(rel, &tid, SnapshotAny, source->slot))
		row = source->slot;
	table_close(rel, NoLock);
	return row;
}

/* Have an event's keys probed, for the first time or again. */
static bool
add_keys(AioRiAhead *ahead, RiSource *source, TupleTableSlot *row, RiEvent *event,
		 bool again, bool near)
{
	int			distance = (int) (event->number - ahead->due);
	bool		result;

	result = source->recheck != NULL ?
		AioAddRecheckProbe(&ahead->probes, source->recheck, row,
						   distance, &event->steps, again, near) :
		AioRiAddProbes(&ahead->probes, source->search, row, distance,
					   &event->steps, again, near);
	if (result && !again)
		AioCountKeysAhead(source->usage, 1);
	return result;
}

/* An event that is new.  Is there anything to look up for it? */
static bool
add_event(AioRiAhead *ahead, RiEvent *event, bool near, bool *has_read)
{
	AioTriggerEvent queued;
	RiSource   *source;
	TupleTableSlot *row;
	bool		result;

	AioGetTriggerEvent(&event->cursor, &queued);
	if (!queued.in_table)
		return false;
	source = get_source(ahead, &queued);
	if (source == NULL || !searches(ahead, source))
		return false;
	row = get_row(source, &queued, has_read);
	event->row_wanted = row == NULL;
	if (row == NULL)
		return true;
	result = add_keys(ahead, source, row, event, false, near);
	ExecClearTuple(row);
	return result;
}

/* An event has come near: make the steps that it has left. */
static void
add_again(AioRiAhead *ahead, RiEvent *event, bool *has_read)
{
	AioTriggerEvent queued;
	RiSource   *source;
	TupleTableSlot *row;

	if (!event->row_wanted &&
		memchr(event->steps.begun, true, sizeof(event->steps.begun)) == NULL)
		return;
	AioGetTriggerEvent(&event->cursor, &queued);
	source = get_source(ahead, &queued);
	row = source == NULL ? NULL : get_row(source, &queued, has_read);
	if (row == NULL)
		return;
	add_keys(ahead, source, row, event, !event->row_wanted, true);
	ExecClearTuple(row);
}

/* Find out what to probe.  Returns how many events have not been before. */
static int
add_events(AioRiAhead *ahead, bool *has_read)
{
	AioRiRing  *ring = &ahead->ring;
	uint32		distance = ahead->window.distance;
	int			nnew = 0;

	for (; AioRiStepIsDue(ring, distance); ring->ndone++)
		add_again(ahead, AioRiMember(ring, ring->ndone), has_read);
	while (AioRiAheadOf(ring) < distance &&
		   ahead->passed - ahead->due < EVENTS_AHEAD_MAX &&
		   AioNextTriggerEvent(&ahead->last))
	{
		RiEvent    *event = AioRiMember(ring, ring->end);
		bool		is_near = AioRiAheadOf(ring) < AioRiNear(distance);

		MemSet(event, 0, sizeof(*event));
		event->cursor = ahead->last;
		event->number = ++ahead->passed;
		if (!add_event(ahead, event, is_near, has_read))
			continue;
		nnew++;
		AioRiAdd(ring, is_near && !event->row_wanted);
	}
	return nnew;
}

static void
look_ahead(AioRiAhead *ahead)
{
	bool		has_read = false;
	MemoryContext old;
	int			nnew;

	if (!AioScopeAllowed())
		return;
	MemoryContextReset(ahead->probe_context);
	old = MemoryContextSwitchTo(ahead->probe_context);
	MemSet(&ahead->probes, 0, sizeof(ahead->probes));
	ahead->batched = false;
	nnew = add_events(ahead, &has_read);
	if (ahead->probes.probes == NIL && has_read)
		AioSubmitBatch();
	has_read |= AioRunProbes(ahead->probes.probes);
	AioRiEndProbes(&ahead->probes);
	MemoryContextSwitchTo(old);

	if (nnew > 0)
		AioWindowLooked(&ahead->window, nnew, has_read);

	/* keys are found in batches now */
	if (nnew == 0 && AioRiAheadOf(&ahead->ring) == 0 && ahead->batched)
		ahead->window.distance = 0;
	if (ahead->window.distance >= DISTANCE_USEFUL)
		ahead->waits_wanted = AIO_WAITS_BEFORE_OPENING;
}

/* Begin with the event that comes after the one that is due. */
static void
begin_at_due(AioRiAhead *ahead)
{
	ahead->firing_id = aio_trigger_due.cursor.firing_id;
	ahead->last = aio_trigger_due.cursor;
	ahead->passed = ahead->due;
	ahead->ring.first = ahead->ring.end = ahead->ring.ndone = 0;
}

/*
 * Is it time to look at further events, or to make steps that are left?  Both
 * are done for some at a time.
 */
static bool
is_to_look_ahead(AioRiAhead *ahead)
{
	while (AioRiAheadOf(&ahead->ring) > 0 &&
		   first_event(ahead)->number <= ahead->due)
		AioRiPass(&ahead->ring);
	return AioRiIsToLookAhead(&ahead->ring, ahead->window.distance,
							  !ahead->last.at_end &&
							  ahead->passed - ahead->due < EVENTS_AHEAD_MAX / 2);
}

static void
open_ahead(AioRiAhead *ahead, int distance_max)
{
	AioRiMakeRoom(&ahead->ring, distance_max + 1, sizeof(RiEvent),
				  GetMemoryChunkContext(ahead));
	ahead->open = true;
	aio_ri_nahead++;
	AioWindowOpen(&ahead->window, Min(distance_max, (int) ahead->ring.room), AIO_ALL_ROWS);
	begin_at_due(ahead);
}

/* How far ahead the events of a table's triggers may be looked up. */
static int
limit_of(Oid relid)
{
	Relation	rel = table_open(relid, NoLock);
	int			limit = AioLookupLimit(rel);

	table_close(rel, NoLock);
	return limit;
}

/* Is this a relation in which the trigger searches, as far as is known? */
static bool
searches_in(const RiSource *source, Oid relid)
{
	if (relid == source->relid)
		return true;
	if (source->recheck != NULL)
		return AioRecheckReads(source->recheck, relid);
	return AioRiSearchesIn(source->search, relid);
}

/* Somebody had to wait for a page since the event before was due. */
static void
count_wait(AioRiAhead *ahead)
{
	AioTriggerEvent event;
	RiSource   *source;
	int			limit;

	AioGetTriggerEvent(&aio_trigger_due.cursor, &event);
	source = get_source(ahead, &event);
	if (source == NULL || !searches(ahead, source) ||
		(!AIO_LOOKUPS_FORCED && !searches_in(source, aio_rel_missed)))
		return;
	if (ahead->open)
	{
		/* looked up too late, or forgotten again */
		aio_usage[AIO_KIND_LOOKUP].waited++;
		return;
	}
	if (++ahead->waits < ahead->waits_wanted && !AIO_LOOKUPS_FORCED)
		return;
	limit = limit_of(event.relid);
	if (limit > 0)
		open_ahead(ahead, limit);
}

/*
 * afterTriggerInvokeEvents(): an event is due, and pages have been missed since
 * the one before it, or a queue looks ahead.  With 'first', the one before was
 * not of this cycle, so that the pages are not those of its triggers.
 */
void
AioRiEventDue(bool first)
{
	bool		missed = aio_ri_missed != aio_pages_missed && !first;
	AioTriggerQueue *queue = AioFindTriggerQueue(aio_trigger_due.estate);
	AioRiAhead *ahead;

	aio_ri_missed = aio_pages_missed;
	missed |= AIO_LOOKUPS_FORCED;
	if (aio_lookup_ahead == 0 || io_method == IOMETHOD_SYNC)
	{
		if (queue != NULL && queue->ahead != NULL && queue->ahead->open)
			close_ahead(queue->ahead);
		return;
	}
	if ((queue == NULL || queue->ahead == NULL) && !missed)
		return;
	ahead = get_ahead(AioTriggerQueueOf(aio_trigger_due.estate));
	ahead->due++;
	if (missed)
		count_wait(ahead);
	if (!ahead->open)
		return;

	/* events of an earlier cycle are gone */
	if (ahead->firing_id != aio_trigger_due.cursor.firing_id ||
		ahead->passed < ahead->due)
		begin_at_due(ahead);
	if (ahead->window.distance == 0)
		close_ahead(ahead);
	else if (is_to_look_ahead(ahead))
		look_ahead(ahead);
}
