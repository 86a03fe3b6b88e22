/*-------------------------------------------------------------------------
 *
 * amcache.c
 *	  Keep Relation.rd_amcache alive while somebody may look at it.
 *
 * Index access methods keep a pointer into rd_amcache across reads.  That is
 * safe in a process that does one thing at a time, since the relation cache
 * frees it only when it processes invalidations.  With tasks, a sibling may
 * process invalidations while this task is suspended in a read; and so may
 * what aio_read_hook does before somebody's read.
 *
 * Tests: src/test/aio/core.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "aio/read.h"
#include "aio/server.h"
#include "aio/task_port.h"
#include "catalog/catalog.h"
#include "utils/rel.h"

/*
 * Instead of pfree(rd_amcache) when a relation cache entry is invalidated.
 *
 * An index that is in use keeps its memory context, and in it what is not
 * freed here, until its entry is destroyed.  That is a few kilobytes for each
 * invalidation that meets a task or that hook.  Neither is concerned with
 * catalogs' indexes.
 */
void
AioRetireAmCache(Relation rel)
{
	if ((AioAnyTaskSuspended() || aio_current_task != NULL || aio_in_read_hook) &&
		rel->rd_refcnt > 0 && rel->rd_indexcxt != NULL &&
		!IsCatalogRelation(rel))
		return;
	pfree(rel->rd_amcache);
}
