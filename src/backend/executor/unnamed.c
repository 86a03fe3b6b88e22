/*-------------------------------------------------------------------------
 *
 * unnamed.c
 *	  Which functions are called that no expression names.
 *
 * INVARIANT-103: an expression names the function of a call, or an operator.
 * check_functions_in_node() finds these, and whoever asks about an expression
 * asks about them.  Much else is called: what a sort, a hash table or a
 * comparison of rows takes from an operator family, what PostgreSQL's own
 * functions call for the values of a type, what makes a value of its text.
 * Anybody may have written that, also for a type of PostgreSQL.
 *
 * There are two tables here, of the nodes of expressions and of plans, and what
 * is not in one is taken for code of users.  So a node that PostgreSQL gets in
 * a later release is left alone until somebody has looked at what it calls.
 * What a node evaluates is not asked about here, but by whoever walks it.
 *
 * Nothing is kept between calls.
 *
 * Tests: src/test/aio/lookup/t/007_when.pl, src/test/aio/sql/sql/user_code.sql.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "aio/executor_run.h"
#include "aio/index_policy.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "executor/execPartition.h"
#include "executor/executor.h"
#include "guard.h"
#include "nodes/nodeFuncs.h"
#include "parser/parsetree.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

/*
 * How many types of nodes there are in primnodes.h, and from the first to the
 * last one of plans.  If there are more, look at what the new ones call, and
 * also at new fields of those that are known.
 */
StaticAssertDecl(T_OnConflictExpr - T_Alias == 64 && T_Limit - T_Result == 42,
				 "all nodes of expressions and plans have been looked at");

/* ------------------------------------------------------------------------
 * Operators
 * ------------------------------------------------------------------------
 */

/* Does hashing by this operator, which may be InvalidOid? */
static bool
hashing_is_anybodys(Oid operator)
{
	Oid			hash[2];

	return OidIsValid(operator) &&
		(AioSupportIsAnybodys(get_opcode(operator)) ||
		 (get_op_hash_functions(operator, &hash[0], &hash[1]) &&
		  (AioSupportIsAnybodys(hash[0]) || AioSupportIsAnybodys(hash[1]))));
}

/*
 * Does comparing by this operator, which may be InvalidOid?  Sorts and hash
 * tables call functions of an operator family that has it, which may be
 * anybody's though the operator is not.
 */
static bool
operator_is_anybodys(Oid operator)
{
	Oid			left;
	Oid			right;
	Oid			family;
	Oid			type;
	CompareType kind;

	if (!OidIsValid(operator))
		return false;
	if (hashing_is_anybodys(operator))
		return true;

	/* of an operator for two types, a hash table has those of each */
	if (get_compatible_hash_operators(operator, &left, &right) &&
		(hashing_is_anybodys(left) || hashing_is_anybodys(right)))
		return true;

	/* a sort compares, and finds out what is equal */
	return get_ordering_op_properties(operator, &family, &type, &kind) &&
		AioFamilyHas(family, AioSupportIsAnybodys);
}

static bool
any_operator_is_anybodys(List *operators)
{
	foreach_oid(operator, operators)
	{
		if (operator_is_anybodys(operator))
			return true;
	}
	return false;
}

static bool
any_family_is_anybodys(const Oid *families, int n)
{
	for (int i = 0; i < n; i++)
	{
		if (AioFamilyHas(families[i], AioSupportIsAnybodys))
			return true;
	}
	return false;
}

/* expression_tree_walker: does hashing by any operator? */
static bool
hashes_by_anybodys(Node *node, void *context)
{
	if (node == NULL)
		return false;
	if (IsA(node, OpExpr) && operator_is_anybodys(((OpExpr *) node)->opno))
		return true;
	return expression_tree_walker(node, hashes_by_anybodys, NULL);
}

/* ------------------------------------------------------------------------
 * Expressions
 * ------------------------------------------------------------------------
 */

/* Does making a value of any of these types? */
static bool
any_input_is_anybodys(List *types)
{
	foreach_oid(type, types)
	{
		if (AioInputRunsUserCode(type))
			return true;
	}
	return false;
}

/* Does making text of this value? */
static bool
output_is_anybodys(Node *value)
{
	Oid			type = exprType(value);
	Oid			element = get_element_type(type);
	Oid			output;
	bool		is_varlena;

	if (OidIsValid(element))
		type = element;
	if (type < FirstGenbkiObjectId)
		return false;
	getTypeOutputInfo(type, &output, &is_varlena);
	return AioSupportIsAnybodys(output);
}

static bool
any_output_is_anybodys(List *values)
{
	foreach_ptr(Node, value, values)
	{
		if (output_is_anybodys(value))
			return true;
	}
	return false;
}

static Oid
type_of_argument(Node *arg)
{
	return exprType(IsA(arg, TargetEntry) ?
					(Node *) ((TargetEntry *) arg)->expr : arg);
}

/* Does comparing any of these arguments? */
static bool
comparing_arguments_is_anybodys(List *args)
{
	foreach_ptr(Node, arg, args)
	{
		if (AioComparingRunsUserCode(type_of_argument(arg)))
			return true;
	}
	return false;
}

/* Are values of this type made JSON by a function that somebody has written? */
static bool
has_cast_to_json(Oid type)
{
	Oid			element = get_element_type(type);

	return type == RECORDOID || type == RECORDARRAYOID ||
		(OidIsValid(element) ? element : type) >= FirstGenbkiObjectId;
}

/* Of any of these arguments? */
static bool
any_has_cast_to_json(List *args)
{
	foreach_ptr(Node, arg, args)
	{
		if (has_cast_to_json(type_of_argument(arg)))
			return true;
	}
	return false;
}

/* check_functions_in_node(): does it make JSON, or is it made of JSON there? */
static bool
makes_json(Oid funcid, void *context)
{
	Oid			type = OidIsValid(funcid) ? get_func_rettype(funcid) : InvalidOid;

	if (type == JSONOID || type == JSONBOID)
		return true;
	if (funcid >= FirstGenbkiObjectId &&
		get_func_prokind(funcid) == PROKIND_AGGREGATE)
	{
		foreach_oid(function, AioFunctionsOfAggregate(funcid))
		{
			if (makes_json(function, NULL))
				return true;
		}
	}
	return false;
}

/*
 * Does a call of one function with these arguments, which may be PostgreSQL's
 * own, or consist of such functions?
 */
static bool
call_is_anybodys(Node *node, List *args)
{
	return comparing_arguments_is_anybodys(args) ||
		(any_has_cast_to_json(args) &&
		 check_functions_in_node(node, makes_json, NULL));
}

/*
 * Does comparing with each element of an array?  They are found in a hash table
 * if there are many; then 'negfuncid' is that of the operator that the one for
 * <> ALL is the negator of.
 */
static bool
array_operator_is_anybodys(ScalarArrayOpExpr *node)
{
	Oid			element = get_base_element_type(exprType(lsecond(node->args)));

	/* elements are compared with the value, but not with each other */
	return !OidIsValid(element) || AioComparingRunsUserCode(element) ||
		AioComparingRunsUserCode(exprType(linitial(node->args))) ||
		AioSupportIsAnybodys(node->hashfuncid) ||
		AioSupportIsAnybodys(node->negfuncid);
}

/*
 * May an aggregate collect its arguments in an array, and compare them there?
 * A state that a worker sends is read as values of the arguments' types are.
 */
static bool
aggregate_is_anybodys(Aggref *node)
{
	foreach_oid(type, node->aggargtypes)
	{
		if (AioClassesRunUserCode(type))
			return true;
	}
	return AioComparingRunsUserCode(node->aggtranstype) ||
		(DO_AGGSPLIT_DESERIALIZE(node->aggsplit) &&
		 any_input_is_anybodys(node->aggargtypes)) ||
		call_is_anybodys((Node *) node, node->args);
}

static bool
window_function_is_anybodys(WindowFunc *node)
{
	foreach_ptr(Node, arg, node->args)
	{
		if (AioClassesRunUserCode(exprType(arg)))
			return true;
	}
	return call_is_anybodys((Node *) node, node->args);
}

static bool
row_comparison_is_anybodys(const RowCompareExpr *node)
{
	foreach_oid(family, node->opfamilies)
	{
		if (AioFamilyHas(family, AioSupportIsAnybodys))
			return true;
	}
	return comparing_arguments_is_anybodys(node->largs) ||
		comparing_arguments_is_anybodys(node->rargs);
}

/*
 * Does this node of an expression, without those below, call code of users that
 * it does not name?
 */
bool
AioNodeCallsUnnamedCode(Node *node)
{
	switch (nodeTag(node))
	{
			/* values, and what chooses between them, or takes them apart */
		case T_Var:
		case T_Const:
		case T_Param:
		case T_CaseTestExpr:
		case T_CoerceToDomainValue:
		case T_SetToDefault:
		case T_CurrentOfExpr:
		case T_NextValueExpr:
		case T_SQLValueFunction:
		case T_GroupingFunc:
		case T_MergeSupportFunc:
		case T_BoolExpr:
		case T_CaseExpr:
		case T_CaseWhen:
		case T_CoalesceExpr:
		case T_NullTest:
		case T_BooleanTest:
		case T_ArrayExpr:
		case T_RowExpr:
		case T_FieldSelect:
		case T_FieldStore:
		case T_RelabelType:
		case T_CollateExpr:
		case T_ConvertRowtypeExpr:
		case T_ReturningExpr:
		case T_JsonValueExpr:
		case T_JsonIsPredicate:
			/* call what is an expression below */
		case T_ArrayCoerceExpr:
		case T_AlternativeSubPlan:
		case T_WindowFuncRunCondition:
		case T_NamedArgExpr:
		case T_InferenceElem:
			/* a handler can be in C only */
		case T_SubscriptingRef:
			/* not expressions, but what leads to them */
		case T_List:
		case T_TargetEntry:
		case T_RangeTblFunction:
		case T_TableSampleClause:
		case T_MergeAction:
			return false;

		case T_CoerceToDomain:
		case T_JsonExpr:
			return true;
		case T_JsonConstructorExpr:
			/* whatever it returns, it makes JSON first */
			return any_has_cast_to_json(((JsonConstructorExpr *) node)->args);
		case T_XmlExpr:
			return any_output_is_anybodys(((XmlExpr *) node)->named_args) ||
				any_output_is_anybodys(((XmlExpr *) node)->args);
		case T_CoerceViaIO:
			return output_is_anybodys((Node *) ((CoerceViaIO *) node)->arg) ||
				AioInputRunsUserCode(((CoerceViaIO *) node)->resulttype);
		case T_TableFunc:
			return any_input_is_anybodys(((TableFunc *) node)->coltypes);
		case T_MinMaxExpr:
			/* compares as a sort does */
			return AioClassesRunUserCode(((MinMaxExpr *) node)->minmaxtype);
		case T_SortGroupClause:
			return operator_is_anybodys(((SortGroupClause *) node)->eqop) ||
				operator_is_anybodys(((SortGroupClause *) node)->sortop);
		case T_FuncExpr:
			/* of a range, what it is made of is compared */
			return ((type_is_range(((FuncExpr *) node)->funcresulttype) ||
					 type_is_multirange(((FuncExpr *) node)->funcresulttype)) &&
					AioComparingRunsUserCode(((FuncExpr *) node)->funcresulttype)) ||
				call_is_anybodys(node, ((FuncExpr *) node)->args);
		case T_OpExpr:
		case T_DistinctExpr:
		case T_NullIfExpr:
			return call_is_anybodys(node, ((OpExpr *) node)->args);
		case T_ScalarArrayOpExpr:
			return array_operator_is_anybodys((ScalarArrayOpExpr *) node);
		case T_RowCompareExpr:
			return row_comparison_is_anybodys((RowCompareExpr *) node);
		case T_SubPlan:
			return ((SubPlan *) node)->useHashTable &&
				hashes_by_anybodys(((SubPlan *) node)->testexpr, NULL);
		case T_Aggref:
			return aggregate_is_anybodys((Aggref *) node);
		case T_WindowFunc:
			return window_function_is_anybodys((WindowFunc *) node);
		default:
			/* nobody has looked at it */
			return true;
	}
}

/* ------------------------------------------------------------------------
 * Plans
 * ------------------------------------------------------------------------
 */

/* Does comparing these columns of a plan's rows? */
static bool
columns_are_anybodys(const Plan *plan, int n, const AttrNumber *columns,
					 const Oid *operators)
{
	Assert(n == 0 || (plan != NULL && columns != NULL && operators != NULL));
	for (int i = 0; i < n; i++)
	{
		TargetEntry *column = get_tle_by_resno(plan->targetlist, columns[i]);

		if (column == NULL || operator_is_anybodys(operators[i]) ||
			AioComparingRunsUserCode(exprType((Node *) column->expr)))
			return true;
	}
	return false;
}

/* Does making groups? */
static bool
grouping_is_anybodys(const Plan *input, const Agg *agg)
{
	if (columns_are_anybodys(input, agg->numCols, agg->grpColIdx,
							 agg->grpOperators))
		return true;
	foreach_node(Agg, other, agg->chain)
	{
		const Sort *sort = (const Sort *) other->plan.lefttree;

		if (columns_are_anybodys(input, other->numCols, other->grpColIdx,
								 other->grpOperators) ||
			(sort != NULL &&
			 columns_are_anybodys(input, sort->numCols, sort->sortColIdx,
								  sort->sortOperators)))
			return true;
	}
	return false;
}

static bool
window_is_anybodys(const Plan *input, const WindowAgg *window)
{
	return columns_are_anybodys(input, window->partNumCols, window->partColIdx,
								window->partOperators) ||
		columns_are_anybodys(input, window->ordNumCols, window->ordColIdx,
							 window->ordOperators) ||
		AioSupportIsAnybodys(window->startInRangeFunc) ||
		AioSupportIsAnybodys(window->endInRangeFunc);
}

/* Does looking up the keys of a Memoize node?  Bytes are not a type's. */
static bool
memoizing_is_anybodys(const MemoizeState *state)
{
	const Memoize *plan = castNode(Memoize, state->ss.ps.plan);

	for (int i = 0; !state->binary_mode && i < plan->numKeys; i++)
	{
		if (operator_is_anybodys(plan->hashOperators[i]) ||
			AioComparingRunsUserCode(exprType(list_nth(plan->param_exprs, i))))
			return true;
	}
	return false;
}

/* Does searching this index, or NULL? */
static bool
search_is_anybodys(Relation index)
{
	return index != NULL && AioIndexRunsUserCode(index);
}

/* The steps by which partitions are pruned while a plan runs. */
static List *
pruning_steps(const PartitionPruneState *prune)
{
	List	   *result = NIL;

	for (int i = 0; prune != NULL && i < prune->num_partprunedata; i++)
	{
		const PartitionPruningData *hierarchy = prune->partprunedata[i];

		for (int j = 0; j < hierarchy->num_partrelprunedata; j++)
		{
			foreach_ptr(PartitionPruneStep, step,
						hierarchy->partrelprunedata[j].exec_pruning_steps)
			{
				if (IsA(step, PartitionPruneStepOp))
					result = lappend(result, step);
			}
		}
	}
	return result;
}

static PartitionPruneState *
pruning_of(PlanState *state)
{
	if (IsA(state, AppendState))
		return castNode(AppendState, state)->as_prune_state;
	if (IsA(state, MergeAppendState))
		return castNode(MergeAppendState, state)->ms_prune_state;
	return NULL;
}

/* What this node evaluates to prune partitions. */
List *
AioPruningExpressions(PlanState *state)
{
	List	   *result = NIL;

	foreach_node(PartitionPruneStepOp, step, pruning_steps(pruning_of(state)))
		result = list_concat(result, step->exprs);
	return result;
}

/* Does pruning partitions? */
static bool
pruning_is_anybodys(PlanState *state)
{
	foreach_node(PartitionPruneStepOp, step, pruning_steps(pruning_of(state)))
	{
		foreach_oid(function, step->cmpfns)
		{
			if (AioSupportIsAnybodys(function))
				return true;
		}
		if (comparing_arguments_is_anybodys(step->exprs))
			return true;
	}
	return false;
}

/*
 * Does this node of a plan, without those below, and without what it evaluates,
 * call code of users?  Of tables, it is for whoever asks to look at indexes and
 * constraints.
 */
bool
AioPlanNodeCallsUnnamedCode(PlanState *state)
{
	Plan	   *plan = state->plan;

	/* an extension has put itself before the node */
	if (!AioIsOwnFunction(state->ExecProcNode) ||
		!AioIsOwnFunction(state->ExecProcNodeReal))
		return true;

	switch (nodeTag(plan))
	{
			/* evaluate expressions, or nothing */
		case T_Result:
		case T_ProjectSet:
		case T_ModifyTable:
		case T_BitmapAnd:
		case T_BitmapOr:
		case T_SeqScan:
		case T_BitmapHeapScan:
		case T_TidScan:
		case T_TidRangeScan:
		case T_SubqueryScan:
		case T_FunctionScan:
		case T_ValuesScan:
		case T_TableFuncScan:
		case T_CteScan:
		case T_NamedTuplestoreScan:
		case T_WorkTableScan:
		case T_NestLoop:
		case T_Material:
		case T_Gather:
		case T_LockRows:
			/* calls what the join above says */
		case T_Hash:
			/* a method can be in C only */
		case T_SampleScan:
			return false;

		case T_Append:
			return pruning_is_anybodys(state);
		case T_MergeAppend:
			return pruning_is_anybodys(state) ||
				columns_are_anybodys(plan, ((MergeAppend *) plan)->numCols,
									 ((MergeAppend *) plan)->sortColIdx,
									 ((MergeAppend *) plan)->sortOperators);
		case T_RecursiveUnion:
			return columns_are_anybodys(plan, ((RecursiveUnion *) plan)->numCols,
										((RecursiveUnion *) plan)->dupColIdx,
										((RecursiveUnion *) plan)->dupOperators);
		case T_IndexScan:
			return search_is_anybodys(((IndexScanState *) state)->iss_RelationDesc) ||
				any_operator_is_anybodys(((IndexScan *) plan)->indexorderbyops);
		case T_IndexOnlyScan:
			return search_is_anybodys(((IndexOnlyScanState *) state)->ioss_RelationDesc);
		case T_BitmapIndexScan:
			return search_is_anybodys(((BitmapIndexScanState *) state)->biss_RelationDesc);
		case T_ForeignScan:
			return AioInputOfRowRunsUserCode(((ForeignScanState *) state)->ss.ss_ScanTupleSlot->tts_tupleDescriptor);
		case T_MergeJoin:
			return any_family_is_anybodys(((MergeJoin *) plan)->mergeFamilies,
										  list_length(((MergeJoin *) plan)->mergeclauses));
		case T_HashJoin:
			return any_operator_is_anybodys(((HashJoin *) plan)->hashoperators);
		case T_Memoize:
			return memoizing_is_anybodys(castNode(MemoizeState, state));
		case T_Sort:
		case T_IncrementalSort:
			return columns_are_anybodys(plan, ((Sort *) plan)->numCols,
										((Sort *) plan)->sortColIdx,
										((Sort *) plan)->sortOperators);
		case T_Group:
			return columns_are_anybodys(outerPlan(plan), ((Group *) plan)->numCols,
										((Group *) plan)->grpColIdx,
										((Group *) plan)->grpOperators);
		case T_Agg:
			return grouping_is_anybodys(outerPlan(plan), (Agg *) plan);
		case T_WindowAgg:
			return window_is_anybodys(outerPlan(plan), (WindowAgg *) plan);
		case T_Unique:
			return columns_are_anybodys(outerPlan(plan), ((Unique *) plan)->numCols,
										((Unique *) plan)->uniqColIdx,
										((Unique *) plan)->uniqOperators);
		case T_SetOp:
			return columns_are_anybodys(outerPlan(plan), ((SetOp *) plan)->numCols,
										((SetOp *) plan)->cmpColIdx,
										((SetOp *) plan)->cmpOperators);
		case T_GatherMerge:
			return columns_are_anybodys(plan, ((GatherMerge *) plan)->numCols,
										((GatherMerge *) plan)->sortColIdx,
										((GatherMerge *) plan)->sortOperators);
		case T_Limit:
			/* WITH TIES */
			return columns_are_anybodys(outerPlan(plan), ((Limit *) plan)->uniqNumCols,
										((Limit *) plan)->uniqColIdx,
										((Limit *) plan)->uniqOperators);
		default:
			/* nobody has looked at it */
			return true;
	}
}
