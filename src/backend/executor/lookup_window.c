/*-------------------------------------------------------------------------
 *
 * lookup_window.c
 *	  How far ahead of need lookups are made.
 *
 * A window knows nothing of plans and estimates, only of what has happened: it
 * is opened when lookups have had to wait, grows while looking ahead begins
 * reads, and shrinks when everything is in memory.
 *
 * INVARIANT-63: what may never be needed, because a LIMIT or a cursor may stop
 * before, is counted in pages.  What has been looked up in vain, and what would
 * be if all stopped now, is at most a twentieth of what has been needed, over
 * all scans of a node.
 *
 * Tests: src/test/aio/lookup.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "aio/lookup.h"
#include "aio/task.h"
#include "lookup.h"

/* of what has been needed, the share that may be looked up in vain */
#define SHARE_IN_VAIN	20

#ifdef USE_ASSERT_CHECKING

/* aio.debug_lookups */
int			aio_debug_lookups = 0;

/*
 * With aio.debug_lookups: some distance up to that, whatever has happened so
 * far.  Returns false without.
 */
static bool
choose_any(AioLookupWindow *window)
{
	if (aio_debug_lookups == 0)
		return false;
	window->distance = 1 + AioRandom(Min(aio_debug_lookups, window->distance_max));
	return true;
}

#else
#define choose_any(window) false
#endif

/* The most that may be looked up ahead at the moment. */
static int
limit(const AioLookupWindow *window)
{
	uint64		max = window->distance_max;
	uint64		spare = window->needed / SHARE_IN_VAIN;

	if (window->wanted >= max)
		return (int) max;
	spare -= Min(window->in_vain, spare);
	return (int) Min(window->wanted + spare, max);
}

/* Lookups have had to wait: begin to look ahead. */
void
AioWindowOpen(AioLookupWindow *window, int distance_max, uint64 wanted)
{
	Assert(distance_max >= 1);

	window->distance_max = distance_max;
	window->wanted = wanted;
	window->needed = 0;
	window->in_vain = 0;
	window->looked = 0;
	window->has_read = false;
	if (!choose_any(window))
		window->distance = Min(2, limit(window));
}

/*
 * The distance, unless less than that is known to be wanted by now, and too
 * much has been in vain.
 */
int
AioWindowDistance(const AioLookupWindow *window)
{
	Assert(window->distance >= 0 && window->distance <= window->distance_max);

	if (AIO_LOOKUPS_FORCED)
		return window->distance;
	return Min(window->distance, limit(window));
}

/* Lookups have been made ahead; did any of them begin a read? */
void
AioWindowAdjust(AioLookupWindow *window, bool has_read)
{
	Assert(window->distance >= 0 && window->distance <= window->distance_max);

	if (choose_any(window))
		return;
	if (has_read)
		window->distance = Min(Max(window->distance * 2, 1), limit(window));
	else
		window->distance /= 2;
}

/*
 * Some lookups have been made ahead; did any of them begin a read?  The
 * distance is adjusted when there have been as many as fill half of the window.
 */
void
AioWindowLooked(AioLookupWindow *window, int nlookups, bool has_read)
{
	window->looked += nlookups;
	window->has_read |= has_read;
	if (window->looked < Max(window->distance / 2, 1))
		return;
	AioWindowAdjust(window, window->has_read);
	window->looked = 0;
	window->has_read = false;
}
