/*-------------------------------------------------------------------------
 *
 * insert_state.c
 *	  Several IndexInfo for one index, so that inserts can be under way side
 *	  by side although the access method keeps working state in ii_AmCache.
 *
 * The statement's own IndexInfo is the first lane.  Further lanes are made
 * when all others are busy, up to a limit, and go away with the statement.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "aio/index_task.h"
#include "lib/ilist.h"
#include "utils/memutils.h"

/* enough to keep a disk busy; each costs the method's state, some kB */
#define MAX_LANES	8

typedef struct AioIndexLane
{
	IndexInfo  *info;
	bool		busy;
	uint64		task_id;		/* who keeps it busy */
} AioIndexLane;

typedef struct LaneSet
{
	dlist_node	node;			/* in lane_sets */
	IndexInfo  *key;			/* the statement's IndexInfo */
	MemoryContextCallback callback;
	int			nlanes;
	AioIndexLane lanes[MAX_LANES];
} LaneSet;

/* one for each index with lanes in running statements */
static dlist_head lane_sets = DLIST_STATIC_INIT(lane_sets);

/* The statement's memory goes away. */
static void
forget_lanes(void *arg)
{
	dlist_delete(&((LaneSet *) arg)->node);
}

static LaneSet *
get_lanes(IndexInfo *info)
{
	dlist_iter	iter;
	LaneSet    *set;

	dlist_foreach(iter, &lane_sets)
	{
		set = dlist_container(LaneSet, node, iter.cur);
		if (set->key == info)
			return set;
	}

	set = MemoryContextAllocZero(info->ii_Context, sizeof(LaneSet));
	set->key = info;
	set->nlanes = 1;
	set->lanes[0].info = info;
	set->callback.func = forget_lanes;
	set->callback.arg = set;
	MemoryContextRegisterResetCallback(info->ii_Context, &set->callback);
	dlist_push_head(&lane_sets, &set->node);
	return set;
}

/*
 * Take a free lane for an index.  If all are busy, returns NULL, and in
 * *wait_for the task that has had one for longest.
 */
AioIndexLane *
AioAcquireLane(IndexInfo *info, uint64 *wait_for)
{
	LaneSet    *set = get_lanes(info);
	AioIndexLane *lane;

	*wait_for = PG_UINT64_MAX;
	for (int i = 0; i < set->nlanes; i++)
	{
		lane = &set->lanes[i];
		if (!lane->busy)
		{
			Assert(i == 0 || lane->info != info);
			lane->busy = true;
			return lane;
		}
		*wait_for = Min(*wait_for, lane->task_id);
	}
	Assert(set->nlanes <= MAX_LANES);
	if (set->nlanes == MAX_LANES)
	{
		/* all of them say who has them */
		Assert(*wait_for > 0);
		return NULL;
	}

	lane = &set->lanes[set->nlanes];
	lane->info = MemoryContextAlloc(info->ii_Context, sizeof(IndexInfo));
	*lane->info = *info;
	lane->info->ii_AmCache = NULL;
	lane->busy = true;
	set->nlanes++;
	return lane;
}

/* What to pass to the access method. */
IndexInfo *
AioLaneInfo(AioIndexLane *lane)
{
	Assert(lane->busy);
	return lane->info;
}

/* Note who keeps the lane busy. */
void
AioLaneSetTask(AioIndexLane *lane, uint64 task_id)
{
	lane->task_id = task_id;
}

/* The lane is free again. */
void
AioReleaseLane(AioIndexLane *lane)
{
	Assert(lane->busy);
	lane->busy = false;
}
