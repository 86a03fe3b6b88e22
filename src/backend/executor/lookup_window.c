/*-------------------------------------------------------------------------
 *
 * lookup_window.c
 *	  How far ahead of need lookups are made.
 *
 * A window knows nothing of plans and estimates, only of what has happened: it
 * is opened when lookups have had to wait, grows while looking ahead begins
 * reads, and shrinks when everything is in memory.
 *
 * What may never be needed, because a LIMIT or a cursor may stop before, is at
 * most a twentieth of what has been needed so far.
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

static int
limit(const AioLookupWindow *window)
{
	if (!window->may_stop)
		return window->distance_max;
	return (int) Min(window->needed / SHARE_IN_VAIN,
					 (uint64) window->distance_max);
}

/* Lookups have had to wait: begin to look ahead. */
void
AioWindowOpen(AioLookupWindow *window, int distance_max, bool may_stop)
{
	Assert(distance_max >= 1);

	window->distance_max = distance_max;
	window->may_stop = may_stop;
	window->needed = 0;
	window->looked = 0;
	window->has_read = false;
	if (!choose_any(window))
		window->distance = may_stop ? 0 : Min(2, distance_max);
}

/*
 * The distance is 0, and something is needed.  Is that so because not enough
 * has been needed yet?
 */
bool
AioWindowBegins(AioLookupWindow *window)
{
	Assert(window->distance == 0);

	if (!window->may_stop || window->needed > SHARE_IN_VAIN)
		return false;
	if (window->needed == SHARE_IN_VAIN)
		window->distance = 1;
	return true;
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
