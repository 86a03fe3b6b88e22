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
 * are believed if they are declared IMMUTABLE.  It need not be named by an
 * expression: that is asked in unnamed.c, whoever has made the function,
 * operator or aggregate that is named.  Whether a statement runs any is also
 * asked for its own sake: it may use what the statement is using.
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
#include "aio/error_point.h"
#include "aio/executor_run.h"
#include "aio/foreign.h"
#include "aio/index_policy.h"
#include "catalog/catalog.h"
#include "catalog/pg_class.h"
#include "catalog/pg_index.h"
#include "catalog/pg_language_d.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_trigger.h"
#include "catalog/pg_type.h"
#include "executor/executor.h"
#include "guard.h"
#include "nodes/nodeFuncs.h"
#include "rewrite/rewriteHandler.h"
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
					  AioIsHeap(rel));
}

/* Does this node scan no table, or one that is a heap? */
bool
AioScansHeap(PlanState *state)
{
	Relation	rel;

	switch (nodeTag(state->plan))
	{
		case T_SeqScan:
		case T_SampleScan:
		case T_IndexScan:
		case T_IndexOnlyScan:
		case T_BitmapHeapScan:
		case T_TidScan:
		case T_TidRangeScan:
			rel = ((ScanState *) state)->ss_currentRelation;
			return rel == NULL || AioIsHeap(rel);
		default:
			return true;
	}
}

/* ------------------------------------------------------------------------
 * What changes something
 * ------------------------------------------------------------------------
 */

/*
 * Does it make a value of a type of which it is told when it is called?  These
 * are input functions.  CoerceViaIO has them called for a type that is known.
 */
static bool
makes_any_type(Oid funcid)
{
	Oid		   *types;
	int			n;
	bool		takes_text = false;
	bool		takes_oid = false;

	(void) get_func_signature(funcid, &types, &n);
	for (int i = 0; i < n; i++)
	{
		takes_text |= types[i] == CSTRINGOID || types[i] == INTERNALOID;
		takes_oid |= types[i] == OIDOID;
	}
	return takes_text && takes_oid;
}

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

			/*
			 * call functions of the types that they make, or fold those of a
			 * partition key, or run queries; 007_when.pl notices when there
			 * are others
			 */
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
		case F_PG_GET_PARTITION_CONSTRAINTDEF:
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
			return func_volatile(funcid) == PROVOLATILE_VOLATILE ||
				makes_any_type(funcid);
	}
}

/*
 * check_functions_in_node(), whose context is an Effect.  Without one it is any
 * change, as for what types and operators call: no such function of
 * PostgreSQL's own has one of the effects, and not the other.  A function may
 * be InvalidOid.  An aggregate is declared IMMUTABLE, whatever it consists of.
 */
static bool
function_may_change(Oid funcid, void *context)
{
	if (!OidIsValid(funcid))
		return false;
	if (funcid < FirstGenbkiObjectId)
		return builtin_may_change(funcid, context == NULL ? ANY_CHANGE :
								  *(const Effect *) context);

	/* whatever it is declared, it may call another that is VOLATILE */
	if (func_volatile(funcid) != PROVOLATILE_IMMUTABLE ||
		AioFunctionIsUserCode(funcid))
		return true;
	if (get_func_prokind(funcid) == PROKIND_AGGREGATE)
	{
		foreach_oid(function, AioFunctionsOfAggregate(funcid))
		{
			if (function_may_change(function, context))
				return true;
		}
	}
	return false;
}

/*
 * expression_tree_walker, whose context is an Effect: may evaluating this have
 * it?
 */
static bool
node_of_expression_may_change(Node *node, void *context)
{
	if (node == NULL)
		return false;
	if (IsA(node, NextValueExpr))
		return *(const Effect *) context == ANY_CHANGE;
	if (AioNodeCallsUnnamedCode(node))
		return true;

	/* of CoerceViaIO, these are those of types, which have been asked about */
	if (!IsA(node, CoerceViaIO) &&
		check_functions_in_node(node, function_may_change, context))
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
				result = result || classes->values[i] >= FirstNormalObjectId ||
					AioFamilyHas(get_opclass_family(classes->values[i]),
								 AioFunctionIsAnybodys) ||
					AioComparingRunsUserCode(TupleDescAttr(RelationGetDescr(rel),
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

	/* values are made of rows that come back, for triggers and RETURNING */
	if (rri->ri_FdwRoutine != NULL)
		return effect == ANY_CHANGE || AioFindFdw(rri->ri_FdwRoutine) == NULL ||
			(constr != NULL && constr->has_generated_stored) ||
			AioInputOfRowRunsUserCode(RelationGetDescr(rel));
	if (rel->rd_rel->relkind == RELKIND_VIEW ||
		rel->rd_rel->relkind == RELKIND_PARTITIONED_TABLE || !AioIsHeap(rel))
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

	/* constraints are about these by their names */
	for (int i = 0; constr->has_generated_virtual &&
		 i < RelationGetNumberOfAttributes(rel); i++)
	{
		Form_pg_attribute att = TupleDescAttr(RelationGetDescr(rel), i);

		if (!att->attisdropped && att->attgenerated == ATTRIBUTE_GENERATED_VIRTUAL &&
			may_change(build_generation_expression(rel, i + 1), effect))
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

/* May a scan of a foreign server? */
static bool
foreign_scan_may_change(ForeignScanState *node, Effect effect)
{
	const ForeignScan *plan = castNode(ForeignScan, node->ss.ps.plan);

	return plan->operation != CMD_SELECT || AioFindFdw(node->fdwroutine) == NULL ||
		may_change(plan->fdw_exprs, effect);
}

/* May what a node evaluates, besides its target list and its conditions? */
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
		case T_SampleScan:
			return may_change(((SampleScan *) plan)->tablesample, effect);
		case T_IndexScan:
			return may_change(((IndexScan *) plan)->indexqualorig, effect) ||
				may_change(((IndexScan *) plan)->indexorderbyorig, effect);
		case T_IndexOnlyScan:
			return may_change(((IndexOnlyScan *) plan)->indexqual, effect) ||
				may_change(((IndexOnlyScan *) plan)->indexorderby, effect);
		case T_BitmapIndexScan:
			return may_change(((BitmapIndexScan *) plan)->indexqualorig, effect);
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
			return foreign_scan_may_change(castNode(ForeignScanState, state), effect);
		case T_NestLoop:
			return may_change(((Join *) plan)->joinqual, effect);
		case T_MergeJoin:
			return may_change(((Join *) plan)->joinqual, effect) ||
				may_change(((MergeJoin *) plan)->mergeclauses, effect);
		case T_HashJoin:
			return may_change(((Join *) plan)->joinqual, effect) ||
				may_change(((HashJoin *) plan)->hashclauses, effect);
		case T_Memoize:
			return may_change(((Memoize *) plan)->param_exprs, effect);
		case T_WindowAgg:
			return may_change(((WindowAgg *) plan)->runConditionOrig, effect) ||
				may_change(((WindowAgg *) plan)->startOffset, effect) ||
				may_change(((WindowAgg *) plan)->endOffset, effect);
		case T_Limit:
			return may_change(((Limit *) plan)->limitOffset, effect) ||
				may_change(((Limit *) plan)->limitCount, effect);
		case T_Append:
		case T_MergeAppend:
			return may_change(AioPruningExpressions(state), effect);
		case T_ProjectSet:
		case T_RecursiveUnion:
		case T_Sort:
		case T_IncrementalSort:
		case T_Group:
		case T_Agg:
		case T_Unique:
		case T_SetOp:
		case T_GatherMerge:
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
	if (!AioScansHeap(state))
		return true;
	return may_change(state->plan->targetlist, effect) ||
		may_change(state->plan->qual, effect) ||
		node_may_change(state, effect) ||
		AioPlanNodeCallsUnnamedCode(state) ||
		planstate_tree_walker(state, plan_may_change, context);
}

/* AioIsTrueOrUnknown() */
static bool
plan_may_change_anything(void *root)
{
	Effect		effect = ANY_CHANGE;

	return plan_may_change(root, &effect);
}

/* AioIsTrueOrUnknown() */
static bool
plan_may_run_user_code(void *root)
{
	Effect		effect = USER_CODE;

	return plan_may_change(root, &effect);
}

/*
 * Can nothing that is done while this plan, which is all of a statement's, is
 * executed change what functions give that are not volatile, or what is in a
 * table?
 */
bool
AioPlanChangesNothing(PlanState *root)
{
	return !AioIsTrueOrUnknown(plan_may_change_anything, root);
}

/*
 * Is no code run while it is executed that somebody has written, and that may
 * do anything?
 */
bool
AioPlanRunsNoUserCode(PlanState *root)
{
	return !AioIsTrueOrUnknown(plan_may_run_user_code, root);
}
