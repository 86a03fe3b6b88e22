/*-------------------------------------------------------------------------
 *
 * amcache.c
 *	  Keep Relation.rd_amcache alive while a task may look at it.
 *
 * Index access methods keep a pointer into rd_amcache across reads.  That is
 * safe in a process that does one thing at a time, since the relation cache
 * frees it only when it processes invalidations.  With tasks, a sibling may
 * process invalidations while this task is suspended in a read.  What would
 * be freed then is kept until no task is suspended.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "aio/seams.h"
#include "internal.h"
#include "nodes/pg_list.h"
#include "utils/memutils.h"

/* memory to free when the last suspended task is gone */
static List *retired = NIL;

/* Instead of pfree(rd_amcache) in the relation cache. */
void
AioRetireAmCache(void *amcache)
{
	MemoryContext old;

	if (likely(!AioAnyTaskSuspended()))
	{
		pfree(amcache);
		return;
	}
	old = MemoryContextSwitchTo(TopMemoryContext);
	retired = lappend(retired, amcache);
	MemoryContextSwitchTo(old);
}

/* Free what was retired, unless some task is still suspended. */
void
AioReleaseAmCaches(void)
{
	if (retired == NIL || AioAnyTaskSuspended())
		return;
	list_free_deep(retired);
	retired = NIL;
}
