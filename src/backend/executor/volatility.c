/*-------------------------------------------------------------------------
 *
 * volatility.c
 *	  What depends on when it is evaluated, and what could change it meanwhile.
 *
 * INVARIANT-96: a value is taken ahead of its turn only if it cannot depend on
 * when.  There are two ways to be sure.  Either it is fixed: by the snapshot of
 * the statement, as columns of tables are, or because nothing that can be
 * changed while the statement runs goes into it.  A STABLE function may look at
 * a setting, CURRENT_USER at who runs the statement now, and a system column at
 * what is changed in place.  Or nothing happens meanwhile that could change it:
 * the statement calls no function that may, by what it evaluates or by what a
 * table does with a row, and its rows do not go to anybody who may do something
 * before he asks for the next one.  Time passes in any case.
 *
 * A user's function may do anything, whatever it has been declared.  Those in C
 * are believed if they are declared IMMUTABLE.
 *
 * Keys of lookups, partitions that are pruned, and other things that only tell
 * which pages to read, decide nothing, and may be wrong.
 *
 * Nothing is kept between calls.
 *
 * Tests: src/test/aio/lookup/t/007_when.pl, src/test/aio/foreign/t/002_scan.pl.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "aio/executor_run.h"
#include "aio/foreign.h"
#include "aio/index_policy.h"
#include "catalog/catalog.h"
#include "catalog/pg_am_d.h"
#include "catalog/pg_class.h"
#include "catalog/pg_index.h"
#include "catalog/pg_language_d.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_trigger.h"
#include "catalog/pg_type.h"
#include "executor/executor.h"
#include "guard.h"
#include "nodes/nodeFuncs.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/partcache.h"
#include "utils/rel.h"
#include "utils/relcache.h"
#include "utils/syscache.h"

/* ------------------------------------------------------------------------
 * What is fixed
 * ------------------------------------------------------------------------
 */

/*
 * Does what this function of PostgreSQL gives depend on nothing but its
 * arguments, and on what stays the same while a statement runs?
 */
static bool
function_is_fixed(Oid funcid)
{
	switch (funcid)
	{
		case F_NOW:
		case F_TRANSACTION_TIMESTAMP:
		case F_CURRENT_DATABASE:
		case F_PG_BACKEND_PID:
			/* one random value is as good as another */
		case F_GEN_RANDOM_UUID:
		case F_UUIDV4:
			return true;
		default:
			return func_volatile(funcid) == PROVOLATILE_IMMUTABLE;
	}
}

/* check_functions_in_node() */
static bool
function_is_not_fixed(Oid funcid, void *context)
{
	return !function_is_fixed(funcid);
}

/* check_functions_in_node(): does what it gives depend on the time of day? */
static bool
function_tells_time(Oid funcid, void *context)
{
	switch (funcid)
	{
		case F_CLOCK_TIMESTAMP:
		case F_TIMEOFDAY:
		case F_UUIDV7_:
		case F_UUIDV7_INTERVAL:
			return true;
		default:
			return false;
	}
}

/*
 * Is the text of values of this type the same with all settings?  That of
 * numbers with a floating point, and of bytea, is not, although the functions
 * are declared IMMUTABLE.
 */
static bool
text_is_fixed(Oid type)
{
	switch (type)
	{
		case BOOLOID:
		case CHAROID:
		case NAMEOID:
		case INT2OID:
		case INT4OID:
		case INT8OID:
		case NUMERICOID:
		case OIDOID:
		case TEXTOID:
		case VARCHAROID:
		case BPCHAROID:
		case UUIDOID:
			return true;
		default:
			return false;
	}
}

/* These are changed in place, by whoever locks, updates or deletes the row. */
static bool
is_changed_in_place(const Var *var)
{
	return var->varattno == MaxTransactionIdAttributeNumber ||
		var->varattno == MinCommandIdAttributeNumber ||
		var->varattno == MaxCommandIdAttributeNumber;
}

/*
 * May this node of an expression, without those below, be evaluated ahead?
 * With 'fixed' it has to be fixed, else time is all that passes meanwhile.
 */
bool
AioNodeMayBeAhead(Node *node, bool fixed)
{
	if (IsA(node, Var) && is_changed_in_place((Var *) node))
		return false;
	if (check_functions_in_node(node, function_tells_time, NULL))
		return false;
	if (!fixed)
		return true;
	if (IsA(node, SQLValueFunction))
	{
		SQLValueFunctionOp op = ((SQLValueFunction *) node)->op;

		/* the others depend on the time zone, or on who runs the statement */
		return op == SVFOP_CURRENT_TIMESTAMP || op == SVFOP_CURRENT_TIMESTAMP_N ||
			op == SVFOP_CURRENT_CATALOG;
	}
	if (IsA(node, CoerceViaIO))
		return text_is_fixed(exprType((Node *) ((CoerceViaIO *) node)->arg)) &&
			text_is_fixed(((CoerceViaIO *) node)->resulttype);
	return !check_functions_in_node(node, function_is_not_fixed, NULL);
}

/* expression_tree_walker */
static bool
has_column_changed_in_place(Node *node, void *context)
{
	if (node == NULL)
		return false;
	if (IsA(node, Var))
		return is_changed_in_place((Var *) node);
	return expression_tree_walker(node, has_column_changed_in_place, context);
}

/* Is any column that is changed in place among what a node evaluates? */
bool
AioColumnsMayBeAhead(const Plan *plan)
{
	return !has_column_changed_in_place((Node *) plan->targetlist, NULL) &&
		!has_column_changed_in_place((Node *) plan->qual, NULL);
}

/*
 * May rows that this node scans, if it scans a table, be taken ahead?  The row
 * of a sequence is changed in place, and so are some of catalogs.
 */
bool
AioScanMayBeAhead(PlanState *node, bool fixed)
{
	Relation	rel;

	switch (nodeTag(node))
	{
		case T_SeqScanState:
		case T_IndexScanState:
		case T_IndexOnlyScanState:
		case T_BitmapHeapScanState:
			rel = ((ScanState *) node)->ss_currentRelation;
			break;
		default:
			return true;
	}
	if (rel == NULL)
		return true;
	if (rel->rd_rel->relkind == RELKIND_SEQUENCE)
		return false;
	return !fixed || (!IsCatalogRelation(rel) &&
					  rel->rd_rel->relam == HEAP_TABLE_AM_OID);
}

/* ------------------------------------------------------------------------
 * What changes something
 * ------------------------------------------------------------------------
 */

/* How much users' functions are believed. */
typedef struct Trust
{
	bool		labels;			/* one that is not VOLATILE changes nothing */
} Trust;

/* May one of PostgreSQL's own functions change what others give? */
static bool
builtin_may_change(Oid funcid)
{
	switch (funcid)
	{
			/* volatile, but others do not depend on them */
		case F_CLOCK_TIMESTAMP:
		case F_TIMEOFDAY:
		case F_GEN_RANDOM_UUID:
		case F_UUIDV4:
		case F_UUIDV7_:
		case F_UUIDV7_INTERVAL:
		case F_RANDOM_:
		case F_RANDOM_INT4_INT4:
		case F_RANDOM_INT8_INT8:
		case F_RANDOM_NUMERIC_NUMERIC:
		case F_RANDOM_NORMAL:
		case F_PG_SLEEP:
			return false;

			/* call functions of the types that they make, or run queries */
		case F_JSON_POPULATE_RECORD:
		case F_JSON_POPULATE_RECORDSET:
		case F_JSON_TO_RECORD:
		case F_JSON_TO_RECORDSET:
		case F_JSONB_POPULATE_RECORD:
		case F_JSONB_POPULATE_RECORD_VALID:
		case F_JSONB_POPULATE_RECORDSET:
		case F_JSONB_TO_RECORD:
		case F_JSONB_TO_RECORDSET:
		case F_SATISFIES_HASH_PARTITION:
		case F_PG_INPUT_IS_VALID:
		case F_PG_INPUT_ERROR_INFO:
		case F_TABLE_TO_XML:
		case F_TABLE_TO_XML_AND_XMLSCHEMA:
		case F_SCHEMA_TO_XML:
		case F_SCHEMA_TO_XML_AND_XMLSCHEMA:
		case F_DATABASE_TO_XML:
		case F_DATABASE_TO_XML_AND_XMLSCHEMA:
			return true;

		default:
			return func_volatile(funcid) == PROVOLATILE_VOLATILE;
	}
}

/* check_functions_in_node() */
static bool
function_may_change(Oid funcid, void *context)
{
	const Trust *trust = context;
	char		volatility;

	if (funcid < FirstGenbkiObjectId)
		return builtin_may_change(funcid);
	volatility = func_volatile(funcid);
	if (trust->labels)
		return volatility == PROVOLATILE_VOLATILE;
	return volatility != PROVOLATILE_IMMUTABLE || AioFunctionIsUserCode(funcid);
}

static bool
operator_may_change(Oid operator, const Trust *trust)
{
	return OidIsValid(operator) &&
		function_may_change(get_opcode(operator), unconstify(Trust *, trust));
}

static bool
any_operator_may_change(const Oid *operators, int n, const Trust *trust)
{
	for (int i = 0; i < n; i++)
	{
		if (operator_may_change(operators[i], trust))
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

/* Does a function make JSON of values that have such a cast, or contain any? */
static bool
makes_json_by_cast(Node *node, List *args)
{
	Oid			type = exprType(node);

	if (type != JSONOID && type != JSONBOID)
		return false;
	foreach_ptr(Node, arg, args)
	{
		if (IsA(arg, TargetEntry))
			arg = (Node *) ((TargetEntry *) arg)->expr;
		if (has_cast_to_json(exprType(arg)))
			return true;
	}
	return false;
}

/* expression_tree_walker: may evaluating this change something? */
static bool
may_change(Node *node, void *context)
{
	const Trust *trust = context;

	if (node == NULL)
		return false;
	switch (nodeTag(node))
	{
		case T_CoerceToDomain:
		case T_NextValueExpr:
		case T_JsonExpr:
			return true;
		case T_FuncExpr:
			if (makes_json_by_cast(node, ((FuncExpr *) node)->args))
				return true;
			break;
		case T_Aggref:
			if (makes_json_by_cast(node, ((Aggref *) node)->args))
				return true;
			break;
		case T_WindowFunc:
			if (makes_json_by_cast(node, ((WindowFunc *) node)->args))
				return true;
			break;
		case T_JsonConstructorExpr:
			if (makes_json_by_cast(node, ((JsonConstructorExpr *) node)->args))
				return true;
			break;
		case T_CoerceViaIO:
			/* input of a composite type is that of its columns */
			if (((CoerceViaIO *) node)->resulttype >= FirstGenbkiObjectId &&
				!type_is_enum(((CoerceViaIO *) node)->resulttype))
				return true;
			break;
		case T_SortGroupClause:
			return operator_may_change(((SortGroupClause *) node)->eqop, trust) ||
				operator_may_change(((SortGroupClause *) node)->sortop, trust);
		default:
			break;
	}
	if (check_functions_in_node(node, function_may_change, context))
		return true;
	return expression_tree_walker(node, may_change, context);
}

/* May a trigger of a row do something before the statement ends? */
static bool
trigger_may_change(const Trigger *trigger)
{
	/* what comes after the row waits for the end, but not its condition */
	return TRIGGER_FOR_ROW(trigger->tgtype) &&
		(!TRIGGER_FOR_AFTER(trigger->tgtype) || trigger->tgqual != NULL);
}

/* May making the entries of a table's indexes? */
static bool
indexes_may_change(Relation rel)
{
	foreach_oid(relid, RelationGetIndexList(rel))
	{
		HeapTuple	tuple = SearchSysCache1(INDEXRELID, ObjectIdGetDatum(relid));
		bool		result = true;

		if (HeapTupleIsValid(tuple))
		{
			oidvector  *classes = (oidvector *)
				DatumGetPointer(SysCacheGetAttrNotNull(INDEXRELID, tuple,
													   Anum_pg_index_indclass));

			result = !heap_attisnull(tuple, Anum_pg_index_indexprs, NULL) ||
				!heap_attisnull(tuple, Anum_pg_index_indpred, NULL);
			for (int i = 0; i < classes->dim1; i++)
				result |= classes->values[i] >= FirstGenbkiObjectId;
			ReleaseSysCache(tuple);
		}
		if (result)
			return true;
	}
	return false;
}

/* May inserting, changing or deleting rows of this table? */
static bool
table_may_change(ResultRelInfo *rri, Trust *trust)
{
	Relation	rel = rri->ri_RelationDesc;
	TupleConstr *constr = RelationGetDescr(rel)->constr;

	if (rri->ri_FdwRoutine != NULL || rel->rd_rel->relkind == RELKIND_VIEW ||
		rel->rd_rel->relkind == RELKIND_PARTITIONED_TABLE ||
		indexes_may_change(rel))
		return true;
	for (int i = 0; rri->ri_TrigDesc != NULL && i < rri->ri_TrigDesc->numtriggers; i++)
	{
		if (trigger_may_change(&rri->ri_TrigDesc->triggers[i]))
			return true;
	}
	if (rel->rd_rel->relispartition &&
		may_change((Node *) RelationGetPartitionQual(rel), trust))
		return true;
	if (constr == NULL)
		return false;
	for (int i = 0; i < constr->num_check; i++)
	{
		if (may_change(stringToNode(constr->check[i].ccbin), trust))
			return true;
	}
	return constr->has_generated_stored;
}

/* May a node that changes tables? */
static bool
modify_may_change(ModifyTableState *node, Trust *trust)
{
	const ModifyTable *plan = castNode(ModifyTable, node->ps.plan);
	char		kind = node->rootResultRelInfo->ri_RelationDesc->rd_rel->relkind;

	/* rows may go to partitions that nobody has looked at yet */
	if (plan->withCheckOptionLists != NIL ||
		(kind == RELKIND_PARTITIONED_TABLE && node->operation != CMD_DELETE))
		return true;
	for (int i = 0; i < node->mt_nrels; i++)
	{
		if (table_may_change(&node->resultRelInfo[i], trust))
			return true;
	}
	return may_change((Node *) plan->returningLists, trust) ||
		may_change((Node *) plan->onConflictSet, trust) ||
		may_change(plan->onConflictWhere, trust) ||
		may_change((Node *) plan->mergeActionLists, trust) ||
		may_change((Node *) plan->mergeJoinConditions, trust);
}

/* May searching this index, or NULL? */
static bool
search_may_change(Relation index)
{
	return index != NULL && AioIndexRunsUserCode(index);
}

/* May what a node does, besides its target list and its conditions? */
static bool
node_may_change(PlanState *state, Trust *trust)
{
	Plan	   *plan = state->plan;

	switch (nodeTag(plan))
	{
		case T_ModifyTable:
			return modify_may_change(castNode(ModifyTableState, state), trust);
		case T_Result:
			return may_change(((Result *) plan)->resconstantqual, trust);
		case T_MergeAppend:
			return any_operator_may_change(((MergeAppend *) plan)->sortOperators,
										   ((MergeAppend *) plan)->numCols, trust);
		case T_RecursiveUnion:
			return any_operator_may_change(((RecursiveUnion *) plan)->dupOperators,
										   ((RecursiveUnion *) plan)->numCols, trust);
		case T_SampleScan:
			return may_change((Node *) ((SampleScan *) plan)->tablesample, trust);
		case T_IndexScan:
			return search_may_change(((IndexScanState *) state)->iss_RelationDesc) ||
				may_change((Node *) ((IndexScan *) plan)->indexqualorig, trust) ||
				may_change((Node *) ((IndexScan *) plan)->indexorderbyorig, trust);
		case T_IndexOnlyScan:
			return search_may_change(((IndexOnlyScanState *) state)->ioss_RelationDesc) ||
				may_change((Node *) ((IndexOnlyScan *) plan)->indexqual, trust) ||
				may_change((Node *) ((IndexOnlyScan *) plan)->indexorderby, trust);
		case T_BitmapIndexScan:
			return search_may_change(((BitmapIndexScanState *) state)->biss_RelationDesc) ||
				may_change((Node *) ((BitmapIndexScan *) plan)->indexqualorig, trust);
		case T_BitmapHeapScan:
			return may_change((Node *) ((BitmapHeapScan *) plan)->bitmapqualorig, trust);
		case T_TidScan:
			return may_change((Node *) ((TidScan *) plan)->tidquals, trust);
		case T_TidRangeScan:
			return may_change((Node *) ((TidRangeScan *) plan)->tidrangequals, trust);
		case T_FunctionScan:
			return may_change((Node *) ((FunctionScan *) plan)->functions, trust);
		case T_ValuesScan:
			return may_change((Node *) ((ValuesScan *) plan)->values_lists, trust);
		case T_TableFuncScan:
			return may_change((Node *) ((TableFuncScan *) plan)->tablefunc, trust);
		case T_ForeignScan:
			return ((ForeignScan *) plan)->operation != CMD_SELECT ||
				AioFindFdw(((ForeignScanState *) state)->fdwroutine) == NULL ||
				may_change((Node *) ((ForeignScan *) plan)->fdw_exprs, trust);
		case T_NestLoop:
			return may_change((Node *) ((Join *) plan)->joinqual, trust);
		case T_MergeJoin:
			return may_change((Node *) ((Join *) plan)->joinqual, trust) ||
				may_change((Node *) ((MergeJoin *) plan)->mergeclauses, trust);
		case T_HashJoin:
			return may_change((Node *) ((Join *) plan)->joinqual, trust) ||
				may_change((Node *) ((HashJoin *) plan)->hashclauses, trust);
		case T_Memoize:
			return may_change((Node *) ((Memoize *) plan)->param_exprs, trust) ||
				any_operator_may_change(((Memoize *) plan)->hashOperators,
										((Memoize *) plan)->numKeys, trust);
		case T_Sort:
		case T_IncrementalSort:
			return any_operator_may_change(((Sort *) plan)->sortOperators,
										   ((Sort *) plan)->numCols, trust);
		case T_Group:
			return any_operator_may_change(((Group *) plan)->grpOperators,
										   ((Group *) plan)->numCols, trust);
		case T_Agg:
			return any_operator_may_change(((Agg *) plan)->grpOperators,
										   ((Agg *) plan)->numCols, trust);
		case T_WindowAgg:
			return any_operator_may_change(((WindowAgg *) plan)->partOperators,
										   ((WindowAgg *) plan)->partNumCols, trust) ||
				any_operator_may_change(((WindowAgg *) plan)->ordOperators,
										((WindowAgg *) plan)->ordNumCols, trust) ||
				may_change((Node *) ((WindowAgg *) plan)->runConditionOrig, trust) ||
				may_change(((WindowAgg *) plan)->startOffset, trust) ||
				may_change(((WindowAgg *) plan)->endOffset, trust);
		case T_Unique:
			return any_operator_may_change(((Unique *) plan)->uniqOperators,
										   ((Unique *) plan)->numCols, trust);
		case T_SetOp:
			return any_operator_may_change(((SetOp *) plan)->cmpOperators,
										   ((SetOp *) plan)->numCols, trust);
		case T_GatherMerge:
			return any_operator_may_change(((GatherMerge *) plan)->sortOperators,
										   ((GatherMerge *) plan)->numCols, trust);
		case T_Limit:
			return may_change(((Limit *) plan)->limitOffset, trust) ||
				may_change(((Limit *) plan)->limitCount, trust);
		case T_ProjectSet:
		case T_Append:
		case T_BitmapAnd:
		case T_BitmapOr:
		case T_SeqScan:
		case T_SubqueryScan:
		case T_CteScan:
		case T_NamedTuplestoreScan:
		case T_WorkTableScan:
		case T_Material:
		case T_Gather:
		case T_Hash:
		case T_LockRows:
			return false;
		default:
			return true;
	}
}

/* PlanState walker */
static bool
plan_may_change(PlanState *state, void *context)
{
	Trust	   *trust = context;

	if (state == NULL)
		return false;
	return may_change((Node *) state->plan->targetlist, trust) ||
		may_change((Node *) state->plan->qual, trust) ||
		node_may_change(state, trust) ||
		planstate_tree_walker(state, plan_may_change, context);
}

/*
 * Can nothing that is done while this plan, which is all of a statement's, is
 * executed change what functions give that are not volatile?  With 'labels',
 * nothing that a user's function may do which is declared so, either: it may
 * still change settings, but it writes to no table.
 */
bool
AioPlanChangesNothing(PlanState *root, bool labels)
{
	Trust		trust = {.labels = labels};

	return !plan_may_change(root, &trust);
}
