/*-------------------------------------------------------------------------
 *
 * lookup_projection.c
 *	  Correlated subqueries in a target list or in conditions, and functions of
 *	  values that may be stored out of line: produce rows without these, and
 *	  evaluate them when a row is returned.
 *
 * While rows are taken ahead, a node does not test the first condition that has
 * a subquery, or looks at such a value, nor those after it, and gives the
 * columns that these and its target list refer to.  Both are compiled once
 * more, in terms of these columns.  They are evaluated row by row and in order,
 * as upstream does, so functions and subqueries in them may have side effects.
 * The subqueries run the same plans, with parameters that are set in the same
 * way.
 *
 * What a function keeps in its FmgrInfo (fn_extra) is not shared by both.
 * PostgreSQL's functions, and procedural languages, keep there what they can
 * find out anew.  A function in C that a user has written could count its calls
 * there, if it is volatile; what calls one is not compiled again.  Functions
 * that return sets are no part of what is compiled here.
 *
 * A scan that does not project returns rows of its table.  Then the conditions
 * are compiled in terms of these, and there is no target list to evaluate.
 *
 * Tests: src/test/aio/lookup, src/test/aio/toast.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/transam.h"
#include "aio/error_point.h"
#include "catalog/objectaccess.h"
#include "catalog/pg_language_d.h"
#include "catalog/pg_proc.h"
#include "executor/executor.h"
#include "guard.h"
#include "lookup.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

/* What compiles expressions, and what it is called with. */
typedef struct Compilation
{
	void		(*compile) (void *arg);
	void	   *arg;
} Compilation;

static void
compile_silently(void *arg)
{
	Compilation *compilation = arg;
	object_access_hook_type hook = object_access_hook;

	PG_TRY();
	{
		object_access_hook = NULL;
		compilation->compile(compilation->arg);
	}
	PG_FINALLY();
	{
		object_access_hook = hook;
	}
	PG_END_TRY();
}

/*
 * Have a function compile expressions of a statement that runs, as whoever the
 * user is by now.  INVARIANT-85: extensions have been told of their functions
 * when the statement began, or will be by upstream, and are not told again.  It
 * fails no statement in PostgreSQL if that user may not call these, because it
 * is another one or he may not do so any more: then nothing is compiled, and
 * false is returned.
 *
 * Nobody's code may run here.  So what would load the constraints of a domain,
 * which calls functions to fold constants, is not compiled again: see
 * cannot_be_compiled_again() and AioExpressionHasSideEffects().
 */
bool
AioCompileAgain(void (*compile) (void *), void *arg)
{
	Compilation compilation = {.compile = compile,.arg = arg};

	return AioTry(compile_silently, &compilation, NULL, NULL);
}

/* Does this kind of node only test and project its rows, one by one? */
static bool
can_be_split(PlanState *node)
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
			return node->ps_ProjInfo != NULL || node->qual != NULL;
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

/* check_functions_in_node(): may one call depend on those before? */
static bool
may_keep_state(Oid funcid, void *context)
{
	HeapTuple	tuple;
	Form_pg_proc proc;
	bool		result;

	if (funcid < FirstGenbkiObjectId)
		return false;
	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(funcid));
	if (!HeapTupleIsValid(tuple))
		return true;
	proc = (Form_pg_proc) GETSTRUCT(tuple);
	result = proc->prolang == ClanguageId &&
		proc->provolatile == PROVOLATILE_VOLATILE;
	ReleaseSysCache(tuple);
	return result;
}

/*
 * expression_tree_walker: a subplan that cannot be evaluated by two compiled
 * expressions in turn, because the expression keeps something of it, a
 * function of which the same may be true, or a reference to more than one
 * column.  Nor can domains: to compile them is to load their constraints as
 * they are by now, which calls functions to fold constants, and to have others
 * called that the statement would not call.
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
	if (IsA(node, AlternativeSubPlan) || IsA(node, CoerceToDomain) ||
		IsA(node, JsonExpr) ||
		(IsA(node, Var) && ((Var *) node)->varattno == 0) ||
		check_functions_in_node(node, may_keep_state, NULL))
		return true;
	return expression_tree_walker(node, cannot_be_compiled_again, context);
}

/* AioIsTrueOrUnknown() */
static bool
cannot_be_compiled(void *expression)
{
	return cannot_be_compiled_again(expression, NULL);
}

/* Of some expressions, the part that is evaluated for each row; else NULL. */
static Node *
first_part(Node *node)
{
	switch (nodeTag(node))
	{
		case T_CaseExpr:
			if (((CaseExpr *) node)->arg != NULL)
				return (Node *) ((CaseExpr *) node)->arg;
			return (Node *) linitial_node(CaseWhen, ((CaseExpr *) node)->args)->expr;
		case T_CoalesceExpr:
			return linitial(((CoalesceExpr *) node)->args);
		case T_BoolExpr:
			return linitial(((BoolExpr *) node)->args);
		default:
			return NULL;
	}
}

/* expression_tree_walker: subplans that are executed for each row. */
static bool
find_subplans(Node *node, void *context)
{
	List	  **subplans = context;

	if (node == NULL)
		return false;
	if (first_part(node) != NULL)
		return find_subplans(first_part(node), context);
	if (!IsA(node, SubPlan))
		return expression_tree_walker(node, find_subplans, context);
	if (castNode(SubPlan, node)->args != NIL)
		*subplans = lappend(*subplans, node);
	return false;
}

/*
 * expression_tree_walker: columns whose values are looked at for each row, and
 * may be stored out of line.  Those that are only passed on are not.
 */
static bool
find_values(Node *node, void *context)
{
	List	  **values = context;
	Node	   *arg = NULL;

	if (node == NULL)
		return false;
	if (IsA(node, Var))
	{
		if (((Var *) node)->varattno > 0 && get_typlen(((Var *) node)->vartype) == -1)
			*values = list_append_unique(*values, node);
		return false;
	}
	if (IsA(node, TargetEntry))
		arg = (Node *) ((TargetEntry *) node)->expr;
	else if (IsA(node, NullTest))
		arg = (Node *) ((NullTest *) node)->arg;
	while (arg != NULL && IsA(arg, RelabelType))
		arg = (Node *) ((RelabelType *) arg)->arg;
	if (arg != NULL && IsA(arg, Var))
		return false;
	if (first_part(node) != NULL)
		return find_values(first_part(node), context);
	return expression_tree_walker(node, find_values, context);
}

/*
 * The lists of conditions that a node tests, in order, if each row is tested on
 * its own.  Returns how many.
 */
static int
get_quals(PlanState *node, AioLookupQuals *quals)
{
	JoinState  *join;

	switch (nodeTag(node))
	{
		case T_NestLoopState:
		case T_MergeJoinState:
		case T_HashJoinState:
			join = (JoinState *) node;
			if (join->jointype != JOIN_INNER || join->single_match)
				return 0;
			quals[0].early = ((Join *) node->plan)->joinqual;
			quals[0].place = &join->joinqual;
			quals[1].early = node->plan->qual;
			quals[1].place = &node->qual;
			return 2;
		default:
			quals[0].early = node->plan->qual;
			quals[0].place = &node->qual;
			return 1;
	}
}

/* Is anything in this looked at that may be stored out of line? */
static bool
has_value(Node *node, void *context)
{
	List	   *values = NIL;

	(void) find_values(node, &values);
	return values != NIL;
}

/* expression_tree_walker */
static bool
has_subplan(Node *node, void *context)
{
	if (node == NULL)
		return false;
	return IsA(node, SubPlan) ||
		expression_tree_walker(node, has_subplan, context);
}

/*
 * Split the conditions of a node before the first one that 'is_later' says is
 * to be evaluated later.  Returns how many lists of them there are: 0 if none
 * is.
 */
static int
split_quals(PlanState *node, bool (*is_later) (Node *, void *),
			AioLookupQuals *quals)
{
	int			n = get_quals(node, quals);
	bool		found = false;

	for (int i = 0; i < n; i++)
	{
		List	   *all = quals[i].early;
		int			first = 0;

		while (!found && first < list_length(all))
		{
			found = is_later(list_nth(all, first), NULL);
			first += !found;
		}
		quals[i].early = list_copy_head(all, first);
		quals[i].later = list_copy_tail(all, first);
	}
	return found ? n : 0;
}

/* All conditions that a node tests. */
static List *
all_quals(PlanState *node)
{
	List	   *quals = list_copy(node->plan->qual);

	if (IsA(node, NestLoopState) || IsA(node, MergeJoinState) ||
		IsA(node, HashJoinState))
		quals = list_concat(quals, ((Join *) node->plan)->joinqual);
	return quals;
}

/*
 * The parameters that are set for the subplans.  Returns false if their values
 * cannot be had ahead.
 */
static bool
find_params(AioLookupProjection *projection)
{
	foreach_node(SubPlan, subplan, projection->subplans)
	{
		ListCell   *arg;
		ListCell   *paramno;

		forboth(arg, subplan->args, paramno, subplan->parParam)
		{
			AioLoopParam *param;

			if (AioExpressionHasSideEffects(lfirst(arg), AIO_NO_ERRORS))
				return false;
			param = palloc0(sizeof(AioLoopParam));
			param->paramno = lfirst_int(paramno);
			param->arg = lfirst(arg);
			projection->params = lappend(projection->params, param);
		}
	}
	return true;
}

/*
 * What a node evaluates later, if that is what 'is_later' says of its
 * conditions, or its target list.  *first is set to the part that is evaluated
 * for each row.  Returns NULL if that cannot be done.
 */
static AioLookupProjection *
split(PlanState *node, bool (*is_later) (Node *, void *), Node **first)
{
	AioLookupProjection *projection;
	List	   *later = NIL;

	*first = NULL;
	if (!can_be_split(node) ||
		AioIsTrueOrUnknown(cannot_be_compiled, node->plan->targetlist))
		return NULL;

	projection = palloc0(sizeof(AioLookupProjection));
	projection->nquals = split_quals(node, is_later, projection->quals);
	for (int i = 0; i < projection->nquals; i++)
	{
		projection->early_quals = list_concat(projection->early_quals,
											  projection->quals[i].early);
		later = list_concat(later, projection->quals[i].later);
	}
	if (AioIsTrueOrUnknown(cannot_be_compiled, projection->early_quals) ||
		AioIsTrueOrUnknown(cannot_be_compiled, later))
		return NULL;

	/* what comes after the first condition is not evaluated for each row */
	if (later != NIL)
		*first = linitial(later);
	else if (node->ps_ProjInfo != NULL)
	{
		*first = (Node *) node->plan->targetlist;
		projection->early_quals = all_quals(node);
	}
	return projection;
}

/*
 * Find the correlated subqueries that a node evaluates for each row that it
 * returns, or tests; or else, if it has no subqueries at all, the values that
 * it looks at.  Returns NULL if there are none, or if what has them cannot be
 * evaluated later.  Allocates in the current memory context.
 */
AioLookupProjection *
AioFindProjectedLookups(PlanState *node)
{
	AioLookupProjection *projection;
	Node	   *first;

	projection = split(node, node->subPlan != NIL ? has_subplan : has_value, &first);
	if (projection == NULL)
		return NULL;
	if (node->subPlan == NIL)
	{
		(void) find_values(first, &projection->values);
		return projection->values != NIL ? projection : NULL;
	}
	(void) find_subplans(first, &projection->subplans);
	return projection->subplans != NIL && find_params(projection) ?
		projection : NULL;
}

/*
 * Likewise, to evaluate all of the node's target list later.
 */
AioLookupProjection *
AioFindProjection(PlanState *node)
{
	AioLookupProjection *projection;

	if (!can_be_split(node) || node->ps_ProjInfo == NULL ||
		AioIsTrueOrUnknown(cannot_be_compiled, node->plan->targetlist))
		return NULL;
	projection = palloc0(sizeof(AioLookupProjection));
	projection->early_quals = all_quals(node);
	return projection;
}

/* Where the values are, in rows that are ahead, when that is compiled. */
List *
AioProjectedColumns(const AioLookupProjection *projection)
{
	List	   *columns = NIL;

	foreach_node(Var, var, projection->values)
	{
		int			i = 0;

		while (projection->rows != NULL && !equal(list_nth(projection->vars, i), var))
			i++;
		columns = lappend_int(columns, projection->rows != NULL ? i + 1 : var->varattno);
	}
	return columns;
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

/* The same in terms of rows that are ahead. */
static Node *
of_rows(void *expression, AioLookupProjection *projection)
{
	/* those are what the node's expressions are about */
	if (projection->rows == NULL)
		return expression;
	return refer_to_rows(expression, projection);
}

/*
 * The projections of a node that has one.  Returns what rows that are ahead
 * consist of.
 */
static TupleDesc
compile_projections(PlanState *node, AioLookupProjection *projection)
{
	List	   *columns = NIL;
	List	   *evaluated = list_make1(node->plan->targetlist);
	TupleDesc	desc;

	for (int i = 0; i < projection->nquals; i++)
		evaluated = lappend(evaluated, projection->quals[i].later);
	foreach_node(Var, var, pull_var_clause((Node *) evaluated, 0))
	{
		if (list_member(projection->vars, var))
			continue;
		projection->vars = lappend(projection->vars, var);
		columns = lappend(columns,
						  makeTargetEntry((Expr *) var, list_length(projection->vars),
										  NULL, false));
	}
	desc = ExecTypeFromTL(columns);
	projection->original = node->ps_ProjInfo;
	projection->rows =
		ExecBuildProjectionInfo(columns, node->ps_ExprContext,
								MakeSingleTupleTableSlot(desc, &TTSOpsVirtual),
								node, NULL);
	projection->output =
		ExecBuildProjectionInfo((List *) of_rows(node->plan->targetlist, projection),
								projection->econtext, node->ps_ResultTupleSlot,
								node, NULL);
	return desc;
}

/*
 * Prepare to have a node evaluate its target list and conditions later, and to
 * evaluate parameters for rows that are ahead.  Allocates in the current memory
 * context, and adds to the node's list of subplans.
 */
void
AioCompileProjection(PlanState *node, AioLookupProjection *projection)
{
	TupleDesc	desc;

	projection->econtext = CreateExprContext(node->state);
	desc = node->ps_ProjInfo != NULL ? compile_projections(node, projection) :
		ExecGetResultType(node);
	for (int i = 0; i < projection->nquals; i++)
	{
		AioLookupQuals *quals = &projection->quals[i];

		/* some nodes rely on it that there is a condition */
		if (quals->early == NIL)
			quals->early = list_make1(makeBoolConst(true, false));
		quals->original = *quals->place;
		quals->producing = ExecInitQual(quals->early, node);
		quals->returning = ExecInitQual((List *) of_rows(quals->later, projection),
										node);
	}
	foreach_ptr(AioLoopParam, param, projection->params)
		param->value = ExecInitExpr((Expr *) of_rows(param->arg, projection), node);

	/* from here on, the node may be executed in both ways */
	projection->desc = desc;
}

/*
 * A projection of rows that are ahead, with this target list in terms of the
 * node, which has been prepared to evaluate its own later.
 */
ProjectionInfo *
AioProjectAhead(AioLookupProjection *projection, List *targetlist)
{
	List	   *ahead = (List *) of_rows(targetlist, projection);

	return ExecBuildProjectionInfo(ahead, projection->econtext,
								   MakeSingleTupleTableSlot(ExecTypeFromTL(ahead),
															&TTSOpsVirtual),
								   NULL, NULL);
}

/* From its next execution on, does a node evaluate all at once, or later? */
void
AioProjectLater(PlanState *node, AioLookupProjection *projection, bool later)
{
	if (projection->desc == NULL)
		return;
	if (projection->rows != NULL)
		node->ps_ProjInfo = later ? projection->rows : projection->original;
	for (int i = 0; i < projection->nquals; i++)
	{
		AioLookupQuals *quals = &projection->quals[i];

		*quals->place = later ? quals->producing : quals->original;
	}
}

/*
 * What the node returns for a row that has been produced ahead, or NULL if a
 * condition removes it.
 */
TupleTableSlot *
AioProject(PlanState *node, AioLookupProjection *projection,
		   TupleTableSlot *row)
{
	ExprContext *econtext = projection->econtext;

	ResetExprContext(econtext);
	econtext->ecxt_outertuple = row;
	econtext->ecxt_scantuple = row;
	for (int i = 0; i < projection->nquals; i++)
	{
		if (ExecQual(projection->quals[i].returning, econtext))
			continue;
		if (i == 0)
			InstrCountFiltered1(node, 1);
		else
			InstrCountFiltered2(node, 1);
		return NULL;
	}
	return projection->output != NULL ? ExecProject(projection->output) : row;
}
