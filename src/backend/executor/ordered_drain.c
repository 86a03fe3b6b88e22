/*-------------------------------------------------------------------------
 *
 * ordered_drain.c
 *	  Insert entries into a GiST or SP-GiST index, near ones together.
 *
 * These indexes have no order, but most have types that do, be it a curve
 * through the plane: entries that follow one another there tend to go to the
 * same page, or to one that has just been in use (entry_sort.c).  Which page
 * that is shows on the way down only, so each entry is inserted as it would be
 * with its row, as a task of a scope.
 *
 * Tests: src/test/aio/t/007_backlog.pl, src/test/aio/t/008_random.pl.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "aio/index_insert.h"
#include "aio/stats.h"
#include "backlog.h"
#include "index_task.h"
#include "miscadmin.h"

/*
 * Insert entries that are sorted, as tasks of the scope, which the caller
 * awaits; scope may be NULL, and all reads then block.
 */
void
AioDrainOrdered(AioIndexBacklog *backlog, AioEntry *entries, AioScope *scope)
{
	Datum		values[INDEX_MAX_KEYS];
	bool		isnull[INDEX_MAX_KEYS];

	for (uint32 i = 0; i < backlog->nentries; i++)
	{
		IndexTuple	tuple = entries[i].tuple;

		CHECK_FOR_INTERRUPTS();
		aio_session_stats_data.leaf_visits++;
		index_deform_tuple(tuple, backlog->desc, values, isnull);
		if (scope != NULL)
			AioSpawnIndexInsert(scope, backlog->index, backlog->heap,
								backlog->info, backlog->mode,
								values, isnull, &tuple->t_tid);
		else
			index_insert(backlog->index, values, isnull, &tuple->t_tid,
						 backlog->heap, UNIQUE_CHECK_NO, false, backlog->info);
	}
}
