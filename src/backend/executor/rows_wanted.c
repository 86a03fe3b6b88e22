/*-------------------------------------------------------------------------
 *
 * rows_wanted.c
 *	  How many more rows of a node of a running plan are going to be asked for.
 *
 * The nodes between whoever runs a plan and one of its nodes tell: a sort asks
 * for all rows of its input, a LIMIT for as many as it has not returned yet,
 * and a join that finds at most one match for each outer row needs at least as
 * many outer rows as it is going to return.  What they tell is a lower bound.
 * It holds while the node is being executed: so many rows, with the one that
 * is asked for now, are asked for, or all up to the node's end, unless an error
 * ends the statement before.
 *
 * INVARIANT-87: a row is asked for before its turn only if it is known to be
 * wanted.  What it takes to produce another one is not bounded: it may be at
 * the other end of a table, or behind a page that cannot be read.
 *
 * Tests: src/test/aio/lookup/t/008_in_vain.pl.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "aio/executor_run.h"
#include "executor/executor.h"
#include "executor/hashjoin.h"
#include "lookup.h"

/* Who asks for the rows of the first node of a path? */
typedef enum RowsTop
{
	BY_RUN,						/* whoever runs the plan */
	ALL,						/* an expression, for all of them */
	ONE,						/* it may stop after each */
} RowsTop;

/* A node of a path, and the loops that take its rows ahead. */
typedef struct PathNode
{
	PlanState  *node;
	List	   *loops;
} PathNode;

struct AioRowsPath
{
	const AioLookups *lookups;
	const PlanState *target;
	RowsTop		top;
	List	   *nodes;			/* of PathNode, from the first one to the
								 * target */
};

static bool search(AioRowsPath *path, PlanState *node);

/* Who executes a subplan? */
static RowsTop
top_of(const SubPlanState *state)
{
	const SubPlan *subplan = state->subplan;

	/* what changes data is executed to its end, whoever looks at its rows */
	if (subplan->useHashTable || subplan->subLinkType == ARRAY_SUBLINK ||
		IsA(state->planstate, ModifyTableState))
		return ALL;
	return ONE;
}

static bool
search_subplans(AioRowsPath *path, List *subplans)
{
	List	   *above = path->nodes;
	RowsTop		top = path->top;

	foreach_node(SubPlanState, state, subplans)
	{
		path->nodes = NIL;
		path->top = top_of(state);
		if (search(path, state->planstate))
			return true;
	}
	path->nodes = above;
	path->top = top;
	return false;
}

static bool
search_all(AioRowsPath *path, PlanState **nodes, int n)
{
	for (int i = 0; i < n; i++)
	{
		if (search(path, nodes[i]))
			return true;
	}
	return false;
}

static bool
search_below(AioRowsPath *path, PlanState *node)
{
	switch (nodeTag(node))
	{
		case T_AppendState:
			return search_all(path, castNode(AppendState, node)->appendplans,
							  castNode(AppendState, node)->as_nplans);
		case T_MergeAppendState:
			return search_all(path, castNode(MergeAppendState, node)->mergeplans,
							  castNode(MergeAppendState, node)->ms_nplans);
		case T_SubqueryScanState:
			return search(path, castNode(SubqueryScanState, node)->subplan);
		default:
			return search(path, outerPlanState(node)) ||
				search(path, innerPlanState(node));
	}
}

/* Is the target this node, or below it?  Then the path leads to it. */
static bool
search(AioRowsPath *path, PlanState *node)
{
	PathNode   *one;

	if (node == NULL)
		return false;
	one = palloc0(sizeof(PathNode));
	one->node = node;
	path->nodes = lappend(path->nodes, one);
	if (node == path->target || search_below(path, node) ||
		search_subplans(path, node->initPlan) ||
		search_subplans(path, node->subPlan))
	{
		foreach_ptr(AioLookupLoop, loop, path->lookups->loops)
		{
			if (loop->outer == node)
				one->loops = lappend(one->loops, loop);
		}
		return true;
	}
	path->nodes = list_delete_last(path->nodes);
	pfree(one);
	return false;
}

/*
 * The path to a node of a statement whose lookups have been found.  Allocates
 * in the current memory context.
 */
AioRowsPath *
AioFindRowsPath(const AioLookups *lookups, PlanState *node)
{
	AioRowsPath *path = palloc0(sizeof(AioRowsPath));

	path->lookups = lookups;
	path->target = node;
	path->top = lookups->all_wanted ? ALL : BY_RUN;
	if (!search(path, lookups->top))
		path->top = ONE;
	return path;
}

/* Does a join give rows of its left input that match nothing? */
static bool
fills_left(const JoinState *join)
{
	return join->jointype == JOIN_LEFT || join->jointype == JOIN_ANTI ||
		join->jointype == JOIN_FULL;
}

/* Does a join return at most one row for each row of its left input? */
static bool
matches_once(const JoinState *join)
{
	switch (join->jointype)
	{
		case JOIN_SEMI:
		case JOIN_ANTI:
			return true;
		case JOIN_INNER:
		case JOIN_LEFT:
			return join->single_match;
		default:
			return false;
	}
}

/* What a LIMIT asks for, if it is asked for so many rows. */
static uint64
asked_by_limit(const LimitState *limit, uint64 rows)
{
	int64		skipped = Max(limit->offset - limit->position, 0);
	int64		left = limit->offset + limit->count - limit->position;

	if (rows != AIO_ALL_ROWS)
		rows += skipped;
	if (limit->noCount)
		return rows;
	return Min(rows, (uint64) Max(left, 1));
}

/* What a hash join asks of its left input. */
static uint64
asked_by_hash_join(const HashJoinState *join, uint64 rows)
{
	/*
	 * its first row may be looked at before the hash table, which may be
	 * empty
	 */
	if (join->hj_HashTable == NULL)
		return rows == AIO_ALL_ROWS && fills_left(&join->js) ? rows : 1;
	if (rows == AIO_ALL_ROWS)
		return rows;

	/* rows that have been put aside are returned later */
	return matches_once(&join->js) && join->hj_HashTable->nbatch == 1 ? rows : 1;
}

/*
 * If a node is asked for so many rows, for how many is a child of it?
 */
static uint64
asked_of(const PlanState *node, const PlanState *child, uint64 rows)
{
	uint64		all_or_one = rows == AIO_ALL_ROWS ? rows : 1;

	switch (nodeTag(node))
	{
		case T_SortState:
		case T_HashState:
			return AIO_ALL_ROWS;
		case T_AggState:
			switch (((const Agg *) node->plan)->aggstrategy)
			{
				case AGG_PLAIN:
				case AGG_HASHED:
					return AIO_ALL_ROWS;
				case AGG_SORTED:
					/* there are no more groups than rows */
					return ((const Agg *) node->plan)->groupingSets == NIL ?
						rows : all_or_one;
				default:
					return all_or_one;
			}
		case T_LimitState:
			return asked_by_limit((const LimitState *) node, rows);
		case T_NestLoopState:
			if (child == innerPlanState(node))
				return ((const JoinState *) node)->single_match ||
					((const JoinState *) node)->jointype == JOIN_ANTI ? 1 : rows;
			return matches_once((const JoinState *) node) ? rows : all_or_one;
		case T_HashJoinState:
			return asked_by_hash_join((const HashJoinState *) node, rows);
		case T_MergeJoinState:
			return child == outerPlanState(node) &&
				fills_left((const JoinState *) node) ? all_or_one : 1;
		case T_MemoizeState:
			return ((const MemoizeState *) node)->singlerow ? 1 : rows;
		case T_WindowAggState:
			return ((const WindowAgg *) node->plan)->runCondition == NIL ?
				all_or_one : 1;
		case T_GatherState:
		case T_GatherMergeState:
		case T_IncrementalSortState:
		case T_MergeAppendState:
		case T_ProjectSetState:
			/* they have more rows than they are asked for, or have kept some */
			return all_or_one;
		case T_AppendState:
		case T_GroupState:
		case T_LockRowsState:
		case T_MaterialState:
		case T_ModifyTableState:
		case T_ResultState:
		case T_SubqueryScanState:
		case T_UniqueState:
			/* none of these returns two rows for one that it has asked for */
			return rows;
		default:
			return 1;
	}
}

/*
 * How many more rows of a path's node are going to be asked for by what is in
 * front of this layer of it, with the one that is asked for now?  At least 1;
 * AIO_ALL_ROWS if it will be read to its end.
 */
uint64
AioRowsOfPath(const AioRowsPath *path, AioLookupLayer layer)
{
	const EState *estate = path->target->state;
	uint64		rows = 1;
	const PlanState *parent = NULL;

	if (!ScanDirectionIsForward(estate->es_direction))
		return 1;
	if (path->top == BY_RUN)
		rows = AioRowsWanted(estate, AIO_ALL_ROWS);
	else if (path->top == ALL)
		rows = AIO_ALL_ROWS;
	foreach_ptr(PathNode, one, path->nodes)
	{
		if (parent != NULL)
			rows = asked_of(parent, one->node, rows);
		parent = one->node;

		/* those that are ahead have been asked for */
		foreach_ptr(AioLookupLoop, loop, one->loops)
		{
			uint64		ahead = loop->nfilled - loop->ntaken;

			if (rows != AIO_ALL_ROWS &&
				(one->node != path->target || loop->layer > layer))
				rows = rows > ahead ? rows - ahead : 1;
		}
	}
	return Max(rows, 1);
}
