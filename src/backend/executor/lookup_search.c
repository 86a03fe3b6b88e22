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
#include "aio/lookup.h"
#include "aio/task_port.h"
#include "lookup.h"
#include "port/pg_bitutils.h"
#include "utils/memutils.h"

/* the part of a window that is probed at a time */
#define SEARCHES_AT_A_TIME(distance)	(((distance) + 7) / 8)

/*
 * What to probe.  Searches that come are counted from 1, the one after the
 * current one.
 */
typedef struct Searches
{
	AioLookupScan *lookup;
	IndexScanDesc scan;
	ScanDirection direction;
	int			first;			/* that has not been through both steps */
	int			known;			/* last that has been through the first one */
	int			near;			/* last in the nearer half of the window */
	int			distance;		/* last of all */
} Searches;

/*
 * How many searches ahead may be probed?  A probe reads a leaf and pages of the
 * table, or looks at many leaves before it finds anything.  So those that may
 * be in vain are not made: rows that are known to be wanted come from as many
 * searches only if none has two.
 */
static int
may_probe(const AioLookupScan *lookup)
{
	const AioLookupWindow *window = &lookup->window;

	if (AIO_LOOKUPS_FORCED || window->wanted == AIO_ALL_ROWS)
		return window->distance;
	return lookup->matches_once ?
		(int) Min(window->wanted, (uint64) window->distance) : 0;
}

/* Of the search for this element of the array, AioAddProbe()'s 'begun'. */
static bool *
begun_of(AioLookupScan *lookup, int element)
{
	uint32		n = pg_nextpower2_32(lookup->window.distance_max + 1);

	if (lookup->begun == NULL)
		lookup->begun = MemoryContextAllocZero(lookup->target.node->state->es_query_cxt,
											   n * sizeof(bool));
	return &lookup->begun[(uint32) element % n];
}

/* What to probe, as a list. */
static List *
add_searches(const Searches *searches)
{
	AioLookupScan *lookup = searches->lookup;
	List	   *probes = NIL;

	for (int ahead = searches->first; ahead <= searches->distance; ahead++)
	{
		ScanKey		keys;
		bool	   *begun;
		int			element;

		if (ahead > searches->near && ahead <= searches->known)
			continue;
		keys = palloc_array(ScanKeyData, searches->scan->numberOfKeys);
		if (!lookup->target.ops->upcoming_search(searches->scan,
												 searches->direction, ahead,
												 keys, &element))
			break;
		begun = begun_of(lookup, element);
		if (ahead > searches->known)
		{
			*begun = false;
			lookup->search = element;
			probes = AioAddProbe(probes, &lookup->target, keys, ahead,
								 ahead <= searches->near ? NULL : begun);
		}
		else if (*begun)
			probes = AioAddProbe(probes, &lookup->target, keys, ahead, begun);
		if (ahead <= searches->near)
			lookup->search_probed = element;
	}
	return probes;
}

/*
 * Probe what the scan is going to search for, as far as the window allows.
 * Returns how many searches have not been probed before: 0 if most of the
 * window is ahead already, or if nothing is known of what comes.  *has_read is
 * set if reads have begun.
 */
int
AioProbeSearches(AioLookupScan *lookup, IndexScanDesc scan,
				 ScanDirection direction, bool *has_read)
{
	int			distance = may_probe(lookup);
	Searches	searches = {.lookup = lookup,.scan = scan,.direction = direction,
	.first = 1,.near = (distance + 1) / 2,.distance = distance};
	MemoryContext old;
	ScanKey		keys;
	int			nprobed = 0;
	int			next;

	if (distance == 0 || !AioScopeAllowed())
		return 0;
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
		if (lookup->search >= next && lookup->search - next < lookup->window.distance_max)
			searches.known = lookup->search - next + 1;
		if (searches.known + SEARCHES_AT_A_TIME(distance) <= distance)
		{
			if (searches.known > 0 && lookup->search_probed >= next)
				searches.first = lookup->search_probed - next + 2;
			*has_read |= AioRunProbes(add_searches(&searches));
			nprobed = Max(lookup->search - next + 1 - searches.known, 0);
		}
	}
	MemoryContextSwitchTo(old);
	return nprobed;
}
