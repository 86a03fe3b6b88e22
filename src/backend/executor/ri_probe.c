/*-------------------------------------------------------------------------
 *
 * ri_probe.c
 *	  Probe the keys of some rows together.
 *
 * Whoever knows which rows will be searched for next adds the keys of some of
 * them, and then has all probed in one scope.  The relations that are needed
 * are open from the first key to the end of the scope, under locks for which
 * nobody has waited.  What is allocated is in the memory context that is
 * current, which the caller resets afterwards.
 *
 * Tests: src/test/aio/ri, src/test/aio/replication.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "ri.h"

/*
 * Have the relations of a target open until AioRiEndProbes().  Returns false if
 * somebody is in the way, or nothing of them may be read ahead.
 */
bool
AioRiOpenForProbes(AioRiProbes *probes, AioRiTarget *target)
{
	if (list_member_ptr(probes->opened, target))
		return true;
	if (!AioRiOpenTarget(target))
		return false;
	if (AioLookupLimit(target->lookup.heap) == 0)
	{
		AioRiCloseTarget(target);
		return false;
	}
	probes->opened = lappend(probes->opened, target);
	return true;
}

/*
 * Add the keys of a row, which is so many rows ahead, for the first time or
 * again.  steps stays the caller's, and tells which second steps are left;
 * they are not wanted if the row is near.  A key that is known already is not
 * added.  Returns whether there is anything to search for.
 */
bool
AioRiAddProbes(AioRiProbes *probes, AioRiSearch *search, TupleTableSlot *row,
			   int ahead, AioRiSteps *steps, bool again, bool near)
{
	int			i = 0;

	if (!again && AioRiIsKnown(search, row))
		return false;
	foreach_ptr(AioRiTarget, target, AioRiFindTargets(search, row))
	{
		bool	   *begun = i < AIO_RI_STEPS_MAX ? &steps->begun[i] : NULL;
		ScanKey		keys;

		i++;
		if (again && (begun == NULL || !*begun))
			continue;
		keys = palloc_array(ScanKeyData, target->lookup.nkeys);
		if (AioRiSetKeys(search, target, row, true, keys) &&
			AioRiOpenForProbes(probes, target))
			probes->probes = AioAddProbe(probes->probes, &target->lookup, keys,
										 ahead, near && !again ? NULL : begun);
	}
	return i > 0;
}

/* Close what has been opened. */
void
AioRiEndProbes(AioRiProbes *probes)
{
	foreach_ptr(AioRiTarget, target, probes->opened)
		AioRiCloseTarget(target);
}
