/*-------------------------------------------------------------------------
 *
 * ordered_drain.c
 *	  Insert entries into an index as aminsert() gets them, near ones together.
 *
 * SP-GiST indexes have no order, but most have types that do, be it a curve
 * through the plane: entries that follow one another there tend to go to
 * the same page, or to one that has just been in use (entry_sort.c).  Which
 * page that is shows on the way down only, so each entry is inserted as it
 * would be with its row, as a task of a scope.
 *
 * This serves any access method whose batches have the values that its
 * aminsert() gets.
 *
 * Tests: src/test/aio/index/t/001_backlog.pl,
 *		  src/test/aio/index/t/002_random.pl, src/test/aio/index_am.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "aio/index_backlog.h"
#include "aio/index_task.h"
#include "aio/stats.h"
#include "miscadmin.h"

/* AioIndexAmOps.drain: insert entry by entry, as tasks if there is a scope. */
void
AioDrainOrdered(AioIndexBatch *batch, AioEntry *entries, AioScope *scope)
{
	const AioIndexAmOps *ops = AioBacklogOf(batch)->ops;
	Datum		values[INDEX_MAX_KEYS];
	bool		isnull[INDEX_MAX_KEYS];
	uint64		serial_task = 0;

	/* nobody looks at what the inserts return */
	Assert(!batch->unique);
	Assert(batch->desc->natts == batch->info->ii_NumIndexAttrs);

	if (ops->concurrency == AIO_INDEX_NO_TASKS)
		scope = NULL;
	for (uint32 i = 0; i < batch->nentries; i++)
	{
		IndexTuple	tuple = entries[i].tuple;

		CHECK_FOR_INTERRUPTS();
		aio_session_stats_data.leaf_visits++;
		index_deform_tuple(tuple, batch->desc, values, isnull);
		if (scope == NULL)
		{
			index_insert(batch->index, values, isnull, &tuple->t_tid,
						 batch->heap, UNIQUE_CHECK_NO, batch->unchanged,
						 batch->info);
			continue;
		}
		if (ops->concurrency == AIO_INDEX_SERIAL)
			AioScopeJoinTask(scope, serial_task);
		serial_task =
			AioStartIndexTask(scope,
							  AioPrepareIndexTask(scope, ops, batch->index,
												  batch->heap, batch->info,
												  values, isnull,
												  &tuple->t_tid));
	}
}
