/*-------------------------------------------------------------------------
 *
 * lookup_plan.c
 *	  Find what a running statement looks up in indexes.
 *
 * These are nested loops whose inner side looks up an index, or a TID, for each
 * outer row, nodes whose target list or conditions have subqueries that do,
 * inserts of rows that may conflict with others, MERGE, scans in the order of
 * an index, and scans with array keys or arrays of TIDs; and rows whose values
 * may have to be fetched from a TOAST table.
 *
 * Nothing is opened, locked or looked up in catalogs here, except for the
 * properties of functions and types, and of the indexes of a table into which a
 * statement inserts that may look up ahead what it conflicts with.
 *
 * Tests: src/test/aio/lookup.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "aio/index_policy.h"
#include "executor/execPartition.h"
#include "executor/executor.h"
#include "guard.h"
#include "lookup.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "utils/rel.h"

/* Can keys of an index scan be evaluated before it is their turn? */
static bool
keys_can_be_had(const AioLookupTarget *target)
{
	for (int i = 0; i < target->nkeys; i++)
	{
		/* its members are in an array of their own */
		if (target->keys[i].sk_flags & SK_ROW_HEADER)
			return false;
	}
	for (int i = 0; i < target->nruntime_keys; i++)
	{
		if (AioExpressionHasSideEffects((Node *) target->runtime_keys[i].key_expr->expr, AIO_NO_ERRORS))
			return false;
	}
	return target->nruntime_keys > 0;
}

/* Can an Append's partitions be pruned before it is their turn? */
static bool
pruning_can_be_had(AppendState *append)
{
	return !AioPlanNodeCallsUnnamedCode(&append->ps) &&
		!AioExpressionHasSideEffects((Node *) AioPruningExpressions(&append->ps),
									 AIO_NO_ERRORS);
}

/* Can keys of a Memoize node be hashed before it is their turn? */
static bool
memoize_can_be_had(MemoizeState *memoize)
{
	const Memoize *plan = castNode(Memoize, memoize->ss.ps.plan);

	return !AioPlanNodeCallsUnnamedCode(&memoize->ss.ps) &&
		!AioExpressionHasSideEffects((Node *) plan->param_exprs, AIO_NO_ERRORS);
}

/* The index that a node looks up, if it does. */
static bool
describe(PlanState *node, Relation bitmap_heap, AioLookupTarget *target)
{
	int			norderbys = 0;

	MemSet(target, 0, sizeof(*target));
	target->node = node;
	target->direction = ForwardScanDirection;
	switch (nodeTag(node))
	{
		case T_IndexScanState:
			{
				IndexScanState *scan = castNode(IndexScanState, node);

				target->index = scan->iss_RelationDesc;
				target->heap = scan->ss.ss_currentRelation;
				target->keys = scan->iss_ScanKeys;
				target->nkeys = scan->iss_NumScanKeys;
				target->runtime_keys = scan->iss_RuntimeKeys;
				target->nruntime_keys = scan->iss_NumRuntimeKeys;
				target->direction = ((IndexScan *) node->plan)->indexorderdir;
				norderbys = scan->iss_NumOrderByKeys;
				break;
			}
		case T_IndexOnlyScanState:
			{
				IndexOnlyScanState *scan = castNode(IndexOnlyScanState, node);

				target->index = scan->ioss_RelationDesc;
				target->heap = scan->ss.ss_currentRelation;
				target->keys = scan->ioss_ScanKeys;
				target->nkeys = scan->ioss_NumScanKeys;
				target->runtime_keys = scan->ioss_RuntimeKeys;
				target->nruntime_keys = scan->ioss_NumRuntimeKeys;
				target->direction = ((IndexOnlyScan *) node->plan)->indexorderdir;
				target->index_only = true;
				norderbys = scan->ioss_NumOrderByKeys;
				break;
			}
		case T_BitmapIndexScanState:
			{
				BitmapIndexScanState *scan = castNode(BitmapIndexScanState, node);

				/* the access method cannot take an array */
				if (scan->biss_NumArrayKeys > 0)
					return false;
				target->index = scan->biss_RelationDesc;
				target->heap = bitmap_heap;
				target->keys = scan->biss_ScanKeys;
				target->nkeys = scan->biss_NumScanKeys;
				target->runtime_keys = scan->biss_RuntimeKeys;
				target->nruntime_keys = scan->biss_NumRuntimeKeys;
				break;
			}
		default:
			return false;
	}
	target->ops = AioLookupAm(target->index, target->heap);
	return target->ops != NULL && norderbys == 0;
}

/* Where the walk of what is executed for each outer row has come to. */
typedef struct InnerWalk
{
	AioLookupLoop *loop;
	AioLookups *lookups;
	bool		first_only;		/* one row may be enough */
	bool		stops;			/* it is, of what this scan returns */
	AppendState *append;
	int			child;
	MemoizeState *memoize;
	Relation	bitmap_heap;
} InnerWalk;

/*
 * PlanState walker: indexes that are looked up with values of the outer row.
 * What is on the inner side of a join below depends on that one's outer row.
 */
static bool
find_targets(PlanState *node, void *context)
{
	InnerWalk	walk = *(InnerWalk *) context;
	AioLookupTarget target;
	bool		is_scan = IsA(node, IndexScanState) ||
		IsA(node, IndexOnlyScanState);

	/* what is below correlated subplans has other parameters */
	if (!is_scan && (node->subPlan != NIL || node->initPlan != NIL))
		return false;

	switch (nodeTag(node))
	{
		case T_NestLoopState:
			walk.stops = false;
			return find_targets(outerPlanState(node), &walk);

		case T_AppendState:
			{
				AppendState *append = castNode(AppendState, node);
				bool		prunes = append->as_prune_state != NULL &&
					append->as_prune_state->do_exec_prune &&
					pruning_can_be_had(append);

				/*
				 * If one row may be enough, only the first child that is left
				 * is known to be executed.
				 */
				for (int i = 0; i < append->as_nplans; i++)
				{
					if (i > 0 && walk.first_only && !prunes)
						break;
					if (prunes)
					{
						walk.append = append;
						walk.child = i;
					}
					(void) find_targets(append->appendplans[i], &walk);
				}
				return false;
			}

		case T_ResultState:
			/* it may ask for nothing */
			if (castNode(ResultState, node)->resconstantqual != NULL)
				return false;
			walk.stops = false;
			return planstate_tree_walker(node, find_targets, &walk);

		case T_LimitState:
		case T_MergeJoinState:
		case T_UniqueState:
			walk.first_only = true;
			walk.stops = false;
			return planstate_tree_walker(node, find_targets, &walk);

		case T_AggState:
			/* the first group is not all of the input */
			walk.stops = false;
			if (castNode(Agg, node->plan)->aggstrategy == AGG_PLAIN ||
				castNode(Agg, node->plan)->aggstrategy == AGG_HASHED)
				walk.first_only = false;
			return planstate_tree_walker(node, find_targets, &walk);

		case T_SortState:
		case T_HashState:
			walk.first_only = walk.stops = false;
			return planstate_tree_walker(node, find_targets, &walk);

		case T_MemoizeState:
			walk.stops &= castNode(MemoizeState, node)->singlerow;
			if (memoize_can_be_had(castNode(MemoizeState, node)))
				walk.memoize = castNode(MemoizeState, node);
			return planstate_tree_walker(node, find_targets, &walk);

		case T_BitmapHeapScanState:
			walk.bitmap_heap = castNode(BitmapHeapScanState, node)->ss.ss_currentRelation;
			return planstate_tree_walker(node, find_targets, &walk);

		case T_IndexScanState:
		case T_IndexOnlyScanState:
		case T_BitmapIndexScanState:
			if (walk.stops)
				walk.lookups->stopped = lappend(walk.lookups->stopped, node);
			if (describe(node, walk.bitmap_heap, &target) &&
				AioMayProbe(&target) && keys_can_be_had(&target))
			{
				AioLookupTarget *kept = palloc(sizeof(AioLookupTarget));

				*kept = target;
				kept->first_only = walk.first_only;
				kept->append = walk.append;
				kept->child = walk.child;
				kept->memoize = walk.memoize;
				walk.loop->targets = lappend(walk.loop->targets, kept);
			}
			return false;

		case T_TidScanState:
			{
				AioLookupTarget *tids = AioFindTids(castNode(TidScanState, node));

				if (tids == NULL)
					return false;
				tids->append = walk.append;
				tids->child = walk.child;
				tids->memoize = walk.memoize;
				walk.loop->targets = lappend(walk.loop->targets, tids);
				return false;
			}

		default:
			walk.stops = false;
			return planstate_tree_walker(node, find_targets, &walk);
	}
}

/* Allocates in the current memory context. */
AioLookupLoop *
AioNewLoop(PlanState *node, PlanState *outer, AioLookupLayer layer)
{
	AioLookupLoop *loop = palloc0(sizeof(AioLookupLoop));

	loop->node = node;
	loop->outer = outer;
	loop->layer = layer;
	loop->waits_wanted = AIO_WAITS_BEFORE_OPENING;
	return loop;
}

static void
add_nested_loop(AioLookups *lookups, NestLoopState *node)
{
	AioLookupLoop *loop = AioNewLoop(&node->js.ps, outerPlanState(node),
									 AIO_LOOKUP_OUTER);
	InnerWalk	walk = {.loop = loop,.lookups = lookups};

	/* single_match is not set for anti joins, which stop at a match, too */
	walk.first_only = walk.stops = node->js.single_match ||
		node->js.jointype == JOIN_ANTI;
	(void) find_targets(innerPlanState(node), &walk);
	if (loop->targets == NIL)
		return;
	foreach_node(NestLoopParam, one, ((NestLoop *) node->js.ps.plan)->nestParams)
	{
		AioLoopParam *param = palloc0(sizeof(AioLoopParam));

		param->paramno = one->paramno;
		param->attno = one->paramval->varattno;
		loop->params = lappend(loop->params, param);
	}
	lookups->loops = lappend(lookups->loops, loop);
}

/*
 * Subqueries, or values, in the target list or the conditions of a node.  One
 * that has to go back may not be ahead.
 */
static void
add_projection(AioLookups *lookups, PlanState *node)
{
	AioLookupLoop *loop;
	AioLookupProjection *projection;

	if ((node->state->es_top_eflags & EXEC_FLAG_BACKWARD) != 0 ||
		list_member_ptr(lookups->marked, node))
		return;
	projection = AioFindProjectedLookups(node);
	if (projection == NULL)
		return;
	loop = AioNewLoop(node, node, AIO_LOOKUP_PROJECTION);
	loop->projection = projection;
	loop->params = projection->params;
	if (projection->values != NIL)
		loop->toast = AioMakeToast(NIL);

	/* a target list is evaluated later by one only */
	foreach_ptr(AioLookupLoop, other, lookups->loops)
	{
		if (other->node == node && other->projection != NULL)
			return;
	}
	foreach_node(SubPlan, subplan, projection->subplans)
	{
		InnerWalk	walk = {.loop = loop,.lookups = lookups};

		walk.stops = subplan->subLinkType == EXISTS_SUBLINK;
		walk.first_only = walk.stops || subplan->subLinkType == EXPR_SUBLINK;
		(void) find_targets(list_nth(node->state->es_subplanstates,
									 subplan->plan_id - 1), &walk);
	}
	if (loop->targets != NIL || loop->toast != NULL)
		lookups->loops = lappend(lookups->loops, loop);
}

/*
 * Rows of this node are given to somebody who fetches their values.  If it is
 * 'rescanned', its expression context has to tell that.
 */
static void
add_values(AioLookups *lookups, PlanState *node, bool rescanned)
{
	AioLookupLoop *loop;
	List	   *columns = NIL;

	if (rescanned)
	{
		switch (nodeTag(node))
		{
			case T_SeqScanState:
			case T_IndexScanState:
			case T_BitmapHeapScanState:
			case T_SubqueryScanState:
			case T_CteScanState:
			case T_NestLoopState:
			case T_MergeJoinState:
			case T_HashJoinState:
			case T_ResultState:
				break;
			default:
				return;
		}
	}
	if (node->ps_ResultTupleDesc != NULL)
		columns = AioToastColumns(node->ps_ResultTupleDesc);
	if (columns == NIL)
		return;
	loop = AioNewLoop(node, node, AIO_LOOKUP_VALUES);
	loop->toast = AioMakeToast(columns);
	loop->is_top = !rescanned;
	lookups->loops = lappend(lookups->loops, loop);
}

/*
 * The rows that a statement returns, or inserts.  What is deleted, or updated,
 * is not asked for its values in most cases.
 */
static void
add_top(AioLookups *lookups, const QueryDesc *query)
{
	PlanState  *top = query->planstate;

	if (query->operation == CMD_SELECT)
		add_values(lookups, top, false);
	else if (IsA(top, ModifyTableState) &&
			 castNode(ModifyTableState, top)->operation == CMD_INSERT)
		add_values(lookups, outerPlanState(top), false);
}

/* Does a scan have array keys, and may it be probed for their elements? */
static bool
searches(AioLookupTarget *target)
{
	bool		has_arrays = false;

	if (target->ops->upcoming_search == NULL || !AioMayProbe(target))
		return false;
	for (int i = 0; i < target->nkeys; i++)
	{
		has_arrays |= (target->keys[i].sk_flags & SK_SEARCHARRAY) != 0;
		if ((target->keys[i].sk_flags & SK_ROW_HEADER) != 0)
			return false;
	}
	return has_arrays;
}

/*
 * Does a scan compare all columns of a unique key for equality?  Then each of
 * its searches finds at most one row.
 */
static bool
matches_once(const AioLookupTarget *target)
{
	const FormData_pg_index *index = target->index->rd_index;
	Bitmapset  *columns = NULL;

	if (!index->indisunique || !index->indimmediate)
		return false;
	for (int i = 0; i < target->nkeys; i++)
	{
		const ScanKeyData *key = &target->keys[i];

		if ((key->sk_flags & (SK_ROW_HEADER | SK_SEARCHNULL | SK_SEARCHNOTNULL)) == 0 &&
			key->sk_strategy == BTEqualStrategyNumber)
			columns = bms_add_member(columns, key->sk_attno);
	}
	return bms_num_members(columns) == index->indnkeyatts;
}

/* A node that inserts rows, unless they conflict with others, or match them. */
static void
add_insert(AioLookups *lookups, ModifyTableState *node)
{
	PlanState  *outer = outerPlanState(node);
	bool		later;
	AioLookupInsert *insert = AioFindInsertLookups(node, lookups->top, &later);
	AioLookupProjection *projection = NULL;
	AioLookupLoop *loop;

	if (insert == NULL)
		return;
	if (later)
	{
		projection = AioFindProjection(outer);
		if (projection == NULL)
			return;
		loop = AioNewLoop(outer, outer, AIO_LOOKUP_PROJECTION);
	}
	else
		loop = AioNewLoop(&node->ps, outer, AIO_LOOKUP_OUTER);
	loop->insert = insert;
	loop->projection = projection;
	lookups->loops = lappend(lookups->loops, loop);
}

static void
add_scan(AioLookups *lookups, PlanState *node, Relation bitmap_heap)
{
	AioLookupScan *scan = palloc0(sizeof(AioLookupScan));

	if (!describe(node, bitmap_heap, &scan->target))
		return;
	scan->search = PG_INT32_MIN;
	scan->searches = searches(&scan->target);
	scan->matches_once = scan->searches && matches_once(&scan->target);
	scan->next = InvalidBlockNumber;
	scan->target.leaf_only = bitmap_heap != NULL;
	scan->target.first_only = list_member_ptr(lookups->stopped, node);
	if (scan->searches ||
		(bitmap_heap == NULL && !scan->target.first_only &&
		 scan->target.ops->upcoming != NULL))
		lookups->scans = lappend(lookups->scans, scan);
}

/* A scan that may have many TIDs. */
static void
add_tid_scan(AioLookups *lookups, TidScanState *node)
{
	AioLookupTids *tids;

	if (!AioTidsMayBeRead(node->ss.ss_currentRelation))
		return;
	foreach_ptr(Expr, qual, castNode(TidScan, node->ss.ps.plan)->tidquals)
	{
		if (!IsA(qual, ScalarArrayOpExpr))
			continue;
		tids = palloc0(sizeof(AioLookupTids));
		tids->node = node;
		lookups->tid_scans = lappend(lookups->tid_scans, tids);
		return;
	}
}

/* Those below a bitmap heap scan. */
static void
add_bitmap_scans(AioLookups *lookups, PlanState *node, Relation heap)
{
	PlanState **children = NULL;
	int			n = 0;

	switch (nodeTag(node))
	{
		case T_BitmapIndexScanState:
			add_scan(lookups, node, heap);
			break;
		case T_BitmapAndState:
			children = castNode(BitmapAndState, node)->bitmapplans;
			n = castNode(BitmapAndState, node)->nplans;
			break;
		case T_BitmapOrState:
			children = castNode(BitmapOrState, node)->bitmapplans;
			n = castNode(BitmapOrState, node)->nplans;
			break;
		default:
			break;
	}
	for (int i = 0; i < n; i++)
		add_bitmap_scans(lookups, children[i], heap);
}

/* PlanState walker */
static bool
find_lookups(PlanState *node, void *context)
{
	AioLookups *lookups = context;

	/* several expressions of a node may execute the same one */
	if (list_member_ptr(node->state->es_subplanstates, node))
	{
		if (list_member_ptr(lookups->subplans, node))
			return false;
		lookups->subplans = lappend(lookups->subplans, node);
	}
	switch (nodeTag(node))
	{
		case T_NestLoopState:
			add_nested_loop(lookups, castNode(NestLoopState, node));
			break;
		case T_IndexScanState:
		case T_IndexOnlyScanState:
			add_scan(lookups, node, NULL);
			break;
		case T_BitmapHeapScanState:
			add_bitmap_scans(lookups, outerPlanState(node),
							 castNode(BitmapHeapScanState, node)->ss.ss_currentRelation);
			break;
		case T_TidScanState:
			add_tid_scan(lookups, castNode(TidScanState, node));
			break;
		case T_ModifyTableState:
			add_insert(lookups, castNode(ModifyTableState, node));
			break;
		case T_AggState:
		case T_SortState:
			/* aggregates are given whole rows, and keys are compared */
			add_values(lookups, outerPlanState(node), true);
			break;
		case T_MergeJoinState:
			lookups->marked = lappend(lookups->marked, innerPlanState(node));
			break;
		case T_ResultState:
			if (list_member_ptr(lookups->marked, node))
				lookups->marked = lappend(lookups->marked, outerPlanState(node));
			break;
		default:
			break;
	}
	add_projection(lookups, node);
	return planstate_tree_walker(node, find_lookups, lookups);
}

/*
 * Find the lookups of a plan that has been initialised.  Allocates in the
 * current memory context.
 */
void
AioFindLookups(AioLookups *lookups, const QueryDesc *query)
{
	lookups->top = query->planstate;
	add_top(lookups, query);
	(void) find_lookups(query->planstate, lookups);
}
