/*-------------------------------------------------------------------------
 *
 * lookup_search.c
 *	  Scans with array keys: probe what they are going to search for.
 *
 * A scan for "= ANY (array)" descends into the index once for each element, if
 * elements are far from one another, and each time waits for a page of the
 * index, and then for a page of the table.
 *
 * Tests: src/test/aio/lookup.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/relscan.h"
#include "aio/task_port.h"
#include "lookup.h"
#include "utils/memutils.h"

/* What to probe: searches from the first on, of those after the current one. */
typedef struct Searches
{
	AioLookupScan *lookup;
	IndexScanDesc scan;
	ScanDirection direction;
	int			first;
	int			last;
} Searches;

/* AioScopeBody */
static void
probe_searches(AioScope *scope, void *arg)
{
	Searches   *searches = arg;
	AioLookupScan *lookup = searches->lookup;

	for (int ahead = searches->first; ahead <= searches->last; ahead++)
	{
		ScanKey		keys = palloc_array(ScanKeyData, searches->scan->numberOfKeys);

		if (!lookup->target.ops->upcoming_search(searches->scan,
												 searches->direction, ahead,
												 keys, &lookup->search))
			break;
		AioProbe(scope, &lookup->target, keys, ahead);
	}
}

/*
 * Probe what the scan is going to search for, as far as the window allows.
 * Returns false if half of that is ahead already, or if nothing is known of
 * what comes; else *has_read is set if reads have begun.
 */
bool
AioProbeSearches(AioLookupScan *lookup, IndexScanDesc scan,
				 ScanDirection direction, bool *has_read)
{
	Searches	searches = {.lookup = lookup,.scan = scan,.direction = direction};
	List	   *targets;
	MemoryContext old;
	ScanKey		keys;
	bool		probes = false;
	int			next;
	int			known = 0;

	if (lookup->window.distance == 0 || !AioScopeAllowed())
		return false;
	if (lookup->context == NULL)
		lookup->context = AllocSetContextCreate(lookup->target.node->state->es_query_cxt,
												"searches ahead",
												ALLOCSET_SMALL_SIZES);
	MemoryContextReset(lookup->context);
	old = MemoryContextSwitchTo(lookup->context);
	keys = palloc_array(ScanKeyData, scan->numberOfKeys);
	if (lookup->target.ops->upcoming_search(scan, direction, 1, keys, &next))
	{
		/* the one that was probed last is behind, or the arrays begin anew */
		if (lookup->search >= next && lookup->search - next < lookup->window.distance)
			known = lookup->search - next + 1;
		if (known <= lookup->window.distance / 2)
		{
			lookup->window.needed += Max(lookup->nsearches - known, 0);
			searches.first = known + 1;
			searches.last = lookup->window.distance;
			targets = list_make1(&lookup->target);
			*has_read |= AioRunProbes(targets, probe_searches, &searches);
			lookup->nsearches = lookup->search - next + 1;
			probes = true;
		}
	}
	MemoryContextSwitchTo(old);
	return probes;
}
