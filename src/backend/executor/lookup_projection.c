/*-------------------------------------------------------------------------
 *
 * lookup_projection.c
 *	  Correlated subqueries in a target list: produce rows without it, and
 *	  evaluate it when a row is returned.
 *
 * A node that projects gives, while rows are taken ahead, the columns that its
 * target list refers to.  The target list is compiled once more, in terms of
 * these columns.  It is evaluated row by row and in order, as upstream does, so
 * functions and subqueries in it may do anything.  Its subqueries run the same
 * plans, with parameters that are set in the same way.
 *
 * Tests: src/test/aio/lookup.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "executor/executor.h"
#include "guard.h"
#include "lookup.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"

/* Does this kind of node return what it projects, with nothing else to it? */
static bool
only_projects(PlanState *node)
{
	switch (nodeTag(node))
	{
		case T_SeqScanState:
		case T_IndexScanState:
		case T_IndexOnlyScanState:
		case T_BitmapHeapScanState:
		case T_SubqueryScanState:
		case T_ValuesScanState:
		case T_CteScanState:
		case T_NestLoopState:
		case T_MergeJoinState:
		case T_HashJoinState:
			return node->ps_ProjInfo != NULL;
		case T_ResultState:
			return node->ps_ProjInfo != NULL && outerPlanState(node) != NULL;
		default:
			return false;
	}
}

/*
 * expression_tree_walker: a subplan that cannot be evaluated by two compiled
 * expressions in turn, because the expression keeps something of it, or a
 * reference to more than one column.
 */
static bool
cannot_be_compiled_again(Node *node, void *context)
{
	if (node == NULL)
		return false;
	if (IsA(node, SubPlan) &&
		(castNode(SubPlan, node)->useHashTable ||
		 castNode(SubPlan, node)->subLinkType == MULTIEXPR_SUBLINK ||
		 castNode(SubPlan, node)->setParam != NIL))
		return true;
	if (IsA(node, AlternativeSubPlan) ||
		(IsA(node, Var) && ((Var *) node)->varattno == 0))
		return true;
	return expression_tree_walker(node, cannot_be_compiled_again, context);
}

/* expression_tree_walker: subplans that are executed for each row. */
static bool
find_subplans(Node *node, void *context)
{
	List	  **subplans = context;

	if (node == NULL)
		return false;
	switch (nodeTag(node))
	{
		case T_CaseExpr:
		case T_CoalesceExpr:
		case T_BoolExpr:
			/* perhaps not for each */
			return false;
		case T_SubPlan:
			if (castNode(SubPlan, node)->args != NIL)
				*subplans = lappend(*subplans, node);
			return false;
		default:
			return expression_tree_walker(node, find_subplans, context);
	}
}

/*
 * Find the correlated subqueries that a node evaluates for each row that it
 * returns: their SubPlans, and the parameters that are set for them, a list of
 * AioLoopParam.  Returns false if there are none, or if the target list cannot
 * be evaluated later.  Allocates in the current memory context.
 */
bool
AioFindProjectedLookups(PlanState *node, List **subplans, List **params)
{
	*subplans = NIL;
	*params = NIL;
	if (node->subPlan == NIL || !only_projects(node) ||
		cannot_be_compiled_again((Node *) node->plan->targetlist, NULL))
		return false;
	(void) find_subplans((Node *) node->plan->targetlist, subplans);
	foreach_node(SubPlan, subplan, *subplans)
	{
		ListCell   *arg;
		ListCell   *paramno;

		forboth(arg, subplan->args, paramno, subplan->parParam)
		{
			AioLoopParam *param;

			if (AioExpressionHasSideEffects(lfirst(arg), true))
				return false;
			param = palloc0(sizeof(AioLoopParam));
			param->paramno = lfirst_int(paramno);
			param->arg = lfirst(arg);
			*params = lappend(*params, param);
		}
	}
	return *subplans != NIL;
}

/* expression_tree_mutator: refer to columns of rows that are ahead. */
static Node *
refer_to_rows(Node *node, void *context)
{
	AioLookupProjection *projection = context;

	if (node == NULL)
		return NULL;
	if (IsA(node, Var))
	{
		Var		   *var = (Var *) node;
		int			i = 0;

		while (!equal(list_nth(projection->vars, i), var))
			i++;
		return (Node *) makeVar(OUTER_VAR, i + 1, var->vartype, var->vartypmod,
								var->varcollid, 0);
	}
	return expression_tree_mutator(node, refer_to_rows, context);
}

/*
 * Prepare to have a node evaluate its target list later, and to evaluate these
 * parameters for rows that are ahead.  Allocates in the current memory context.
 */
AioLookupProjection *
AioMakeProjection(PlanState *node, List *params)
{
	AioLookupProjection *projection = palloc0(sizeof(AioLookupProjection));
	List	   *columns = NIL;
	int			nsubplans = list_length(node->subPlan);

	foreach_node(Var, var, pull_var_clause((Node *) node->plan->targetlist, 0))
	{
		if (list_member(projection->vars, var))
			continue;
		projection->vars = lappend(projection->vars, var);
		columns = lappend(columns,
						  makeTargetEntry((Expr *) var, list_length(projection->vars),
										  NULL, false));
	}
	projection->desc = ExecTypeFromTL(columns);
	projection->econtext = CreateExprContext(node->state);
	projection->original = node->ps_ProjInfo;
	projection->rows =
		ExecBuildProjectionInfo(columns, node->ps_ExprContext,
								MakeSingleTupleTableSlot(projection->desc,
														 &TTSOpsVirtual),
								node, NULL);
	projection->output =
		ExecBuildProjectionInfo((List *) refer_to_rows((Node *) node->plan->targetlist,
													   projection),
								projection->econtext, node->ps_ResultTupleSlot,
								node, NULL);
	foreach_ptr(AioLoopParam, param, params)
		param->value = ExecInitExpr((Expr *) refer_to_rows((Node *) param->arg,
														   projection),
									node);

	/* the same plans again, which whoever walks over the node knows already */
	node->subPlan = list_truncate(node->subPlan, nsubplans);
	return projection;
}

/* From its next execution on, a node's target list is evaluated later. */
void
AioProjectLater(PlanState *node, AioLookupProjection *projection, bool later)
{
	node->ps_ProjInfo = later ? projection->rows : projection->original;
}

/* What the node returns for a row of which only columns have been produced. */
TupleTableSlot *
AioProject(AioLookupProjection *projection, TupleTableSlot *row)
{
	ResetExprContext(projection->econtext);
	projection->econtext->ecxt_outertuple = row;
	return ExecProject(projection->output);
}
