/*-------------------------------------------------------------------------
 *
 * insert_state.c
 *	  Several IndexInfo for one index, so that inserts can be under way side
 *	  by side although the access method keeps working state in ii_AmCache.
 *
 * The statement's own IndexInfo is the first insert state.  Further insert
 * states are made when all others are busy, up to a limit, and go away with
 * the statement.
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
#define MAX_STATES	8

typedef struct AioInsertState
{
	IndexInfo  *info;
	bool		busy;
	uint64		task_id;		/* who keeps it busy */
} AioInsertState;

typedef struct InsertStateSet
{
	dlist_node	node;			/* in state_sets */
	IndexInfo  *key;			/* the statement's IndexInfo */
	MemoryContextCallback callback;
	int			nstates;
	AioInsertState states[MAX_STATES];
} InsertStateSet;

/* one for each index with insert states in running statements */
static dlist_head state_sets = DLIST_STATIC_INIT(state_sets);

/* The statement's memory goes away. */
static void
forget_states(void *arg)
{
	dlist_delete(&((InsertStateSet *) arg)->node);
}

static InsertStateSet *
get_states(IndexInfo *info)
{
	dlist_iter	iter;
	InsertStateSet *set;

	dlist_foreach(iter, &state_sets)
	{
		set = dlist_container(InsertStateSet, node, iter.cur);
		if (set->key == info)
			return set;
	}

	set = MemoryContextAllocZero(info->ii_Context, sizeof(InsertStateSet));
	set->key = info;
	set->nstates = 1;
	set->states[0].info = info;
	set->callback.func = forget_states;
	set->callback.arg = set;
	MemoryContextRegisterResetCallback(info->ii_Context, &set->callback);
	dlist_push_head(&state_sets, &set->node);
	return set;
}

/*
 * Take a free insert state of an index.  If all are busy, returns NULL, and in
 * *wait_for the task that has had one for longest.
 */
AioInsertState *
AioAcquireInsertState(IndexInfo *info, uint64 *wait_for)
{
	InsertStateSet *set = get_states(info);
	AioInsertState *state;

	*wait_for = PG_UINT64_MAX;
	for (int i = 0; i < set->nstates; i++)
	{
		state = &set->states[i];
		if (!state->busy)
		{
			Assert(i == 0 || state->info != info);
			state->busy = true;
			return state;
		}
		*wait_for = Min(*wait_for, state->task_id);
	}
	Assert(set->nstates <= MAX_STATES);
	if (set->nstates == MAX_STATES)
	{
		/* all of them say who has them */
		Assert(*wait_for > 0);
		return NULL;
	}

	state = &set->states[set->nstates];
	state->info = MemoryContextAlloc(info->ii_Context, sizeof(IndexInfo));
	*state->info = *info;
	state->info->ii_AmCache = NULL;
	state->busy = true;
	set->nstates++;
	return state;
}

/* What to pass to the access method. */
IndexInfo *
AioInsertStateInfo(AioInsertState *state)
{
	Assert(state->busy);
	return state->info;
}

/* Note who keeps the insert state busy. */
void
AioInsertStateSetTask(AioInsertState *state, uint64 task_id)
{
	state->task_id = task_id;
}

/* The insert state is free again. */
void
AioReleaseInsertState(AioInsertState *state)
{
	Assert(state->busy);
	state->busy = false;
}
