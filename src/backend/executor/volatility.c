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
 * are believed if they are declared IMMUTABLE.  Whether a statement runs any is
 * also asked for its own sake: it may use what the statement is using.
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
#include "parser/parsetree.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/relcache.h"
#include "utils/syscache.h"

/* ------------------------------------------------------------------------
 * What is fixed
 * ------------------------------------------------------------------------
 */

/*
 * Is this function declared IMMUTABLE, and depends on a setting all the same?
 * These are all whose code leads to the variable of one, of those in C, but for
 * what takes or gives a type that nothing is evaluated ahead of; 007_when.pl
 * notices when PostgreSQL has got others.
 */
static bool
depends_on_setting(Oid funcid)
{
	switch (funcid)
	{
			/* quote_all_identifiers */
		case F_QUOTE_IDENT:
			/* timezone_abbreviations, and the time zone's own ones */
		case F_TIMEZONE_TEXT_TIMESTAMP:
		case F_TIMEZONE_TEXT_TIMESTAMPTZ:
		case F_DATE_TRUNC_TEXT_TIMESTAMPTZ_TEXT:
		case F_DATE_ADD_TIMESTAMPTZ_INTERVAL_TEXT:
		case F_DATE_SUBTRACT_TIMESTAMPTZ_INTERVAL_TEXT:
		case F_GENERATE_SERIES_TIMESTAMPTZ_TIMESTAMPTZ_INTERVAL_TEXT:
		case F_JSONB_PATH_EXISTS:
		case F_JSONB_PATH_EXISTS_OPR:
		case F_JSONB_PATH_MATCH:
		case F_JSONB_PATH_MATCH_OPR:
		case F_JSONB_PATH_QUERY:
		case F_JSONB_PATH_QUERY_ARRAY:
		case F_JSONB_PATH_QUERY_FIRST:
			/* timezone */
		case F_AGE_TIMESTAMPTZ_TIMESTAMPTZ:
			/* client_encoding */
		case F_JSON_SEND:
		case F_JSONB_SEND:
		case F_JSONPATH_SEND:
		case F_UNKNOWNSEND:
			/* search_path, in which conversions are searched for */
		case F_XML_IS_WELL_FORMED_CONTENT:
		case F_XML_IS_WELL_FORMED_DOCUMENT:
			/* none, but what somebody may alter */
		case F_TS_LEXIZE:
			return true;

		default:
			/* extra_float_digits, bytea_output, intervalstyle, datestyle */
			return get_func_rettype(funcid) == CSTRINGOID;
	}
}

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
			return func_volatile(funcid) == PROVOLATILE_IMMUTABLE &&
				!depends_on_setting(funcid);
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

/* What is asked about that happens meanwhile. */
typedef enum Effect
{
	ANY_CHANGE,					/* of what functions give, or of tables */
	USER_CODE,					/* code that somebody has written is run */
} Effect;

/*
 * May one of PostgreSQL's own functions change what others give?  Or run a
 * query, or a function that somebody has written?
 */
static bool
builtin_may_change(Oid funcid, Effect effect)
{
	switch (funcid)
	{
		case F_NEXTVAL:
		case F_CURRVAL:
		case F_LASTVAL:
		case F_SETVAL_REGCLASS_INT8:
		case F_SETVAL_REGCLASS_INT8_BOOL:
			return effect == ANY_CHANGE;

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

/* check_functions_in_node(), whose context is an Effect */
static bool
function_may_change(Oid funcid, void *context)
{
	if (funcid < FirstGenbkiObjectId)
		return builtin_may_change(funcid, *(const Effect *) context);

	/* whatever it is declared, it may call another that is VOLATILE */
	return func_volatile(funcid) != PROVOLATILE_IMMUTABLE ||
		AioFunctionIsUserCode(funcid);
}

/* No operator of PostgreSQL's own has one of the effects, and not the other. */
static bool
operator_may_change(Oid operator)
{
	Effect		effect = ANY_CHANGE;

	return OidIsValid(operator) &&
		function_may_change(get_opcode(operator), &effect);
}

/*
 * Do PostgreSQL's own functions call functions that somebody has written for
 * values of this type?  Those of records, arrays and ranges compare what these
 * consist of by its own operator class.
 */
static bool
type_may_change(Oid type)
{
	Oid			element = get_element_type(type);

	if (type == RECORDOID || type == RECORDARRAYOID || type == ANYARRAYOID)
		return true;
	if (type < FirstGenbkiObjectId)
		return false;
	if (OidIsValid(element))
		return !type_is_enum(getBaseType(element));
	switch (get_typtype(type))
	{
		case TYPTYPE_BASE:
		case TYPTYPE_ENUM:
			return false;
		case TYPTYPE_DOMAIN:
			return type_may_change(getBaseType(type));
		default:
			return true;
	}
}

/*
 * May reading a value of this type, as a server has sent it?  That checks what
 * a domain is checked for.
 */
static bool
input_may_change(Oid type)
{
	Oid			element = get_element_type(type);
	Effect		effect = ANY_CHANGE;
	Oid			function;
	Oid			ioparam;

	if (type < FirstGenbkiObjectId)
		return false;
	if (OidIsValid(element))
		return input_may_change(element);
	switch (get_typtype(type))
	{
		case TYPTYPE_BASE:
			getTypeInputInfo(type, &function, &ioparam);
			return function_may_change(function, &effect);
		case TYPTYPE_ENUM:
			return false;
		default:
			return true;
	}
}

/* Of any of these arguments, which may be those of an aggregate? */
static bool
any_type_may_change(List *args)
{
	foreach_ptr(Node, arg, args)
	{
		if (IsA(arg, TargetEntry))
			arg = (Node *) ((TargetEntry *) arg)->expr;
		if (type_may_change(exprType(arg)))
			return true;
	}
	return false;
}

/* May comparing these columns of a plan's rows change something? */
static bool
comparing_may_change(const Plan *plan, int n, const AttrNumber *columns,
					 const Oid *operators)
{
	for (int i = 0; i < n; i++)
	{
		TargetEntry *column = get_tle_by_resno(plan->targetlist, columns[i]);

		if (column == NULL || operator_may_change(operators[i]) ||
			(operators[i] < FirstGenbkiObjectId &&
			 type_may_change(exprType((Node *) column->expr))))
			return true;
	}
	return false;
}

/* May making groups? */
static bool
grouping_may_change(const Plan *input, const Agg *agg)
{
	if (comparing_may_change(input, agg->numCols, agg->grpColIdx,
							 agg->grpOperators))
		return true;
	foreach_node(Agg, other, agg->chain)
	{
		const Sort *sort = (const Sort *) other->plan.lefttree;

		if (comparing_may_change(input, other->numCols, other->grpColIdx,
								 other->grpOperators) ||
			(sort != NULL &&
			 comparing_may_change(input, sort->numCols, sort->sortColIdx,
								  sort->sortOperators)))
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

/* The arguments of a call of one function, which may be PostgreSQL's own. */
static List *
arguments_of(const Node *node)
{
	switch (nodeTag(node))
	{
		case T_FuncExpr:
			return ((const FuncExpr *) node)->args;
		case T_OpExpr:
		case T_DistinctExpr:
		case T_NullIfExpr:
			return ((const OpExpr *) node)->args;
		case T_ScalarArrayOpExpr:
			/* of an array, elements are compared */
			return list_make1(linitial(((const ScalarArrayOpExpr *) node)->args));
		case T_Aggref:
			return ((const Aggref *) node)->args;
		case T_WindowFunc:
			return ((const WindowFunc *) node)->args;
		case T_RowCompareExpr:
			return ((const RowCompareExpr *) node)->largs;
		default:
			return NIL;
	}
}

/* check_functions_in_node() */
static bool
is_builtin(Oid funcid, void *context)
{
	return funcid < FirstGenbkiObjectId;
}

/*
 * expression_tree_walker, whose context is an Effect: may evaluating this have
 * it?
 */
static bool
node_of_expression_may_change(Node *node, void *context)
{
	List	   *args;

	if (node == NULL)
		return false;
	switch (nodeTag(node))
	{
		case T_NextValueExpr:
			return *(const Effect *) context == ANY_CHANGE;
		case T_CoerceToDomain:
		case T_JsonExpr:
			return true;
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
		case T_MinMaxExpr:
			/* compares as a sort does */
			if (type_may_change(((MinMaxExpr *) node)->minmaxtype) ||
				(((MinMaxExpr *) node)->minmaxtype >= FirstGenbkiObjectId &&
				 !type_is_enum(((MinMaxExpr *) node)->minmaxtype)))
				return true;
			break;
		case T_SortGroupClause:
			return operator_may_change(((SortGroupClause *) node)->eqop) ||
				operator_may_change(((SortGroupClause *) node)->sortop);
		default:
			break;
	}
	args = arguments_of(node);
	if (args != NIL &&
		(makes_json_by_cast(node, args) ||
		 (check_functions_in_node(node, is_builtin, NULL) &&
		  any_type_may_change(args))))
		return true;
	if (check_functions_in_node(node, function_may_change, context))
		return true;
	return expression_tree_walker(node, node_of_expression_may_change, context);
}

/* Likewise, of an expression or a list of them. */
static bool
may_change(const void *expression, Effect effect)
{
	return node_of_expression_may_change(unconstify(void *, expression), &effect);
}

/*
 * May a trigger do something before the statement ends, and after it has begun?
 * That before the topmost node is the first thing that is done.
 */
static bool
trigger_may_change(const Trigger *trigger, bool is_top)
{
	/* what comes after waits for the end, but not its condition */
	if (TRIGGER_FOR_AFTER(trigger->tgtype))
		return trigger->tgqual != NULL;
	return TRIGGER_FOR_ROW(trigger->tgtype) || !is_top;
}

/* May those of this table?  Of a statement, they are the first table's. */
static bool
triggers_may_change(const ResultRelInfo *rri, bool is_top)
{
	for (int i = 0; rri->ri_TrigDesc != NULL && i < rri->ri_TrigDesc->numtriggers; i++)
	{
		if (trigger_may_change(&rri->ri_TrigDesc->triggers[i], is_top))
			return true;
	}
	return false;
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
			const FormData_pg_index *index = (Form_pg_index) GETSTRUCT(tuple);
			oidvector  *classes = (oidvector *)
				DatumGetPointer(SysCacheGetAttrNotNull(INDEXRELID, tuple,
													   Anum_pg_index_indclass));

			result = !heap_attisnull(tuple, Anum_pg_index_indexprs, NULL) ||
				!heap_attisnull(tuple, Anum_pg_index_indpred, NULL);
			for (int i = 0; i < classes->dim1; i++)
				result = result || classes->values[i] >= FirstGenbkiObjectId ||
					type_may_change(TupleDescAttr(RelationGetDescr(rel),
												  index->indkey.values[i] - 1)->atttypid);
			ReleaseSysCache(tuple);
		}
		if (result)
			return true;
	}
	return false;
}

/*
 * May inserting, changing or deleting rows of this table?  A server changes its
 * tables, and runs no code here.
 */
static bool
table_may_change(ResultRelInfo *rri, CmdType operation, Effect effect)
{
	Relation	rel = rri->ri_RelationDesc;
	TupleConstr *constr = RelationGetDescr(rel)->constr;

	if (rri->ri_FdwRoutine != NULL)
		return effect == ANY_CHANGE || AioFindFdw(rri->ri_FdwRoutine) == NULL ||
			(constr != NULL && constr->has_generated_stored);
	if (rel->rd_rel->relkind == RELKIND_VIEW ||
		rel->rd_rel->relkind == RELKIND_PARTITIONED_TABLE)
		return true;
	if (operation == CMD_DELETE)
		return false;

	/*
	 * INVARIANT-102: what a partition's rows are checked for is had from its
	 * parent, which would have to be locked.
	 */
	if (rel->rd_rel->relispartition || indexes_may_change(rel))
		return true;
	if (constr == NULL)
		return false;
	for (int i = 0; i < constr->num_check; i++)
	{
		if (may_change(stringToNode(constr->check[i].ccbin), effect))
			return true;
	}
	return constr->has_generated_stored;
}

/* May a node that changes tables? */
static bool
modify_may_change(ModifyTableState *node, Effect effect)
{
	const ModifyTable *plan = castNode(ModifyTable, node->ps.plan);
	char		kind = node->rootResultRelInfo->ri_RelationDesc->rd_rel->relkind;
	bool		is_top = &plan->plan == node->ps.state->es_plannedstmt->planTree;

	/* rows may go to partitions that nobody has looked at yet */
	if (plan->withCheckOptionLists != NIL ||
		(kind == RELKIND_PARTITIONED_TABLE && node->operation != CMD_DELETE) ||
		triggers_may_change(node->rootResultRelInfo, is_top))
		return true;
	for (int i = 0; i < node->mt_nrels; i++)
	{
		if (triggers_may_change(&node->resultRelInfo[i], is_top) ||
			table_may_change(&node->resultRelInfo[i], node->operation, effect))
			return true;
	}
	return may_change(plan->returningLists, effect) ||
		may_change(plan->onConflictSet, effect) ||
		may_change(plan->onConflictWhere, effect) ||
		may_change(plan->mergeActionLists, effect) ||
		may_change(plan->mergeJoinConditions, effect);
}

/* May searching this index, or NULL? */
static bool
search_may_change(Relation index)
{
	return index != NULL && AioIndexRunsUserCode(index);
}

/* May looking up the keys of a Memoize node? */
static bool
hashing_may_change(const Memoize *plan)
{
	for (int i = 0; i < plan->numKeys; i++)
	{
		if (operator_may_change(plan->hashOperators[i]) ||
			(plan->hashOperators[i] < FirstGenbkiObjectId &&
			 type_may_change(exprType(list_nth(plan->param_exprs, i)))))
			return true;
	}
	return false;
}

/* May making rows of what a server has sent? */
static bool
received_may_change(const ForeignScanState *node)
{
	TupleDesc	desc = node->ss.ss_ScanTupleSlot->tts_tupleDescriptor;

	for (int i = 0; i < desc->natts; i++)
	{
		if (!TupleDescAttr(desc, i)->attisdropped &&
			input_may_change(TupleDescAttr(desc, i)->atttypid))
			return true;
	}
	return false;
}

/* May what a node does, besides its target list and its conditions? */
static bool
node_may_change(PlanState *state, Effect effect)
{
	Plan	   *plan = state->plan;

	switch (nodeTag(plan))
	{
		case T_ModifyTable:
			return modify_may_change(castNode(ModifyTableState, state), effect);
		case T_Result:
			return may_change(((Result *) plan)->resconstantqual, effect);
		case T_MergeAppend:
			return comparing_may_change(plan, ((MergeAppend *) plan)->numCols,
										((MergeAppend *) plan)->sortColIdx,
										((MergeAppend *) plan)->sortOperators);
		case T_RecursiveUnion:
			return comparing_may_change(plan, ((RecursiveUnion *) plan)->numCols,
										((RecursiveUnion *) plan)->dupColIdx,
										((RecursiveUnion *) plan)->dupOperators);
		case T_SampleScan:
			return may_change(((SampleScan *) plan)->tablesample, effect);
		case T_IndexScan:
			return search_may_change(((IndexScanState *) state)->iss_RelationDesc) ||
				may_change(((IndexScan *) plan)->indexqualorig, effect) ||
				may_change(((IndexScan *) plan)->indexorderbyorig, effect);
		case T_IndexOnlyScan:
			return search_may_change(((IndexOnlyScanState *) state)->ioss_RelationDesc) ||
				may_change(((IndexOnlyScan *) plan)->indexqual, effect) ||
				may_change(((IndexOnlyScan *) plan)->indexorderby, effect);
		case T_BitmapIndexScan:
			return search_may_change(((BitmapIndexScanState *) state)->biss_RelationDesc) ||
				may_change(((BitmapIndexScan *) plan)->indexqualorig, effect);
		case T_BitmapHeapScan:
			return may_change(((BitmapHeapScan *) plan)->bitmapqualorig, effect);
		case T_TidScan:
			return may_change(((TidScan *) plan)->tidquals, effect);
		case T_TidRangeScan:
			return may_change(((TidRangeScan *) plan)->tidrangequals, effect);
		case T_FunctionScan:
			return may_change(((FunctionScan *) plan)->functions, effect);
		case T_ValuesScan:
			return may_change(((ValuesScan *) plan)->values_lists, effect);
		case T_TableFuncScan:
			return may_change(((TableFuncScan *) plan)->tablefunc, effect);
		case T_ForeignScan:
			return ((ForeignScan *) plan)->operation != CMD_SELECT ||
				AioFindFdw(((ForeignScanState *) state)->fdwroutine) == NULL ||
				received_may_change((ForeignScanState *) state) ||
				may_change(((ForeignScan *) plan)->fdw_exprs, effect);
		case T_NestLoop:
			return may_change(((Join *) plan)->joinqual, effect);
		case T_MergeJoin:
			return may_change(((Join *) plan)->joinqual, effect) ||
				may_change(((MergeJoin *) plan)->mergeclauses, effect);
		case T_HashJoin:
			return may_change(((Join *) plan)->joinqual, effect) ||
				may_change(((HashJoin *) plan)->hashclauses, effect);
		case T_Memoize:
			return may_change(((Memoize *) plan)->param_exprs, effect) ||
				hashing_may_change((Memoize *) plan);
		case T_Sort:
		case T_IncrementalSort:
			return comparing_may_change(plan, ((Sort *) plan)->numCols,
										((Sort *) plan)->sortColIdx,
										((Sort *) plan)->sortOperators);
		case T_Group:
			return comparing_may_change(outerPlan(plan), ((Group *) plan)->numCols,
										((Group *) plan)->grpColIdx,
										((Group *) plan)->grpOperators);
		case T_Agg:
			return grouping_may_change(outerPlan(plan), (Agg *) plan);
		case T_WindowAgg:
			return comparing_may_change(outerPlan(plan), ((WindowAgg *) plan)->partNumCols,
										((WindowAgg *) plan)->partColIdx,
										((WindowAgg *) plan)->partOperators) ||
				comparing_may_change(outerPlan(plan), ((WindowAgg *) plan)->ordNumCols,
									 ((WindowAgg *) plan)->ordColIdx,
									 ((WindowAgg *) plan)->ordOperators) ||
				may_change(((WindowAgg *) plan)->runConditionOrig, effect) ||
				may_change(((WindowAgg *) plan)->startOffset, effect) ||
				may_change(((WindowAgg *) plan)->endOffset, effect);
		case T_Unique:
			return comparing_may_change(outerPlan(plan), ((Unique *) plan)->numCols,
										((Unique *) plan)->uniqColIdx,
										((Unique *) plan)->uniqOperators);
		case T_SetOp:
			return comparing_may_change(outerPlan(plan), ((SetOp *) plan)->numCols,
										((SetOp *) plan)->cmpColIdx,
										((SetOp *) plan)->cmpOperators);
		case T_GatherMerge:
			return comparing_may_change(plan, ((GatherMerge *) plan)->numCols,
										((GatherMerge *) plan)->sortColIdx,
										((GatherMerge *) plan)->sortOperators);
		case T_Limit:
			return may_change(((Limit *) plan)->limitOffset, effect) ||
				may_change(((Limit *) plan)->limitCount, effect);
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

/* PlanState walker, whose context is an Effect */
static bool
plan_may_change(PlanState *state, void *context)
{
	Effect		effect;

	if (state == NULL)
		return false;
	effect = *(const Effect *) context;
	return may_change(state->plan->targetlist, effect) ||
		may_change(state->plan->qual, effect) ||
		node_may_change(state, effect) ||
		planstate_tree_walker(state, plan_may_change, context);
}

/*
 * Can nothing that is done while this plan, which is all of a statement's, is
 * executed change what functions give that are not volatile, or what is in a
 * table?
 */
bool
AioPlanChangesNothing(PlanState *root)
{
	Effect		effect = ANY_CHANGE;

	return !plan_may_change(root, &effect);
}

/*
 * Is no code run while it is executed that somebody has written, and that may
 * do anything?
 */
bool
AioPlanRunsNoUserCode(PlanState *root)
{
	Effect		effect = USER_CODE;

	return !plan_may_change(root, &effect);
}
