/*-------------------------------------------------------------------------
 *
 * side_effects.c
 *	  What a row does besides being inserted.
 *
 * INVARIANT-36: rows, and keys that are enforced, wait only in statements in
 * which the rows after a failing one have no effect that would remain or be
 * seen: no sequence is advanced, no user code runs, no notice is sent.  The
 * functions here decide that for a table, an input of COPY or a plan.
 * Anything that is not known to be harmless counts as a side effect.
 *
 * Nothing is kept between calls, and nothing is changed.
 *
 * Tests: src/test/aio/sql/sql/errors.sql, src/test/aio/index/t/001_backlog.pl,
 *		  src/test/aio/index/t/002_random.pl.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/transam.h"
#include "aio/error_point.h"
#include "aio/executor_run.h"
#include "aio/index_policy.h"
#include "catalog/pg_language_d.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_trigger.h"
#include "catalog/pg_type.h"
#include "commands/copyapi.h"
#include "commands/copyfrom_internal.h"
#include "executor/executor.h"
#include "guard.h"
#include "nodes/nodeFuncs.h"
#include "parser/parsetree.h"
#include "rewrite/rewriteHandler.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/partcache.h"
#include "utils/rel.h"
#include "utils/syscache.h"

/*
 * Is this function not volatile, and not written in SQL?  One in SQL has a
 * query executed, if the planner has not replaced the call.
 */
static bool
is_stable_code(Oid funcid)
{
	HeapTuple	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(funcid));
	Form_pg_proc proc;
	bool		result;

	if (!HeapTupleIsValid(tuple))
		return false;
	proc = (Form_pg_proc) GETSTRUCT(tuple);
	result = proc->provolatile != PROVOLATILE_VOLATILE &&
		(proc->prokind != PROKIND_FUNCTION ||
		 proc->prolang != SQLlanguageId);
	ReleaseSysCache(tuple);
	return result;
}

/*
 * A function without side effects.  (random() leaves the state
 * of the session's generator.)
 */
static bool
function_leaves_nothing(Oid funcid)
{
	switch (funcid)
	{
			/* volatile, but harmless */
		case F_GEN_RANDOM_UUID:
		case F_UUIDV4:
		case F_UUIDV7_:
		case F_UUIDV7_INTERVAL:
		case F_CLOCK_TIMESTAMP:
		case F_TIMEOFDAY:
			return true;

			/*
			 * not volatile, but they call functions of the types that they
			 * make, or fold those of a partition key
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
			/* begin a transaction, or tell whether a row has been inserted */
		case F_PG_CURRENT_XACT_ID:
		case F_PG_CURRENT_XACT_ID_IF_ASSIGNED:
		case F_TXID_CURRENT:
		case F_TXID_CURRENT_IF_ASSIGNED:
			/* send notices */
		case F_TS_MATCH_TT:
		case F_TS_MATCH_TQ:
		case F_TO_REGTYPE:
		case F_TO_REGTYPEMOD:
		case F_TO_REGPROCEDURE:
		case F_TO_REGOPERATOR:
		case F_HAS_TYPE_PRIVILEGE_NAME_TEXT_TEXT:
		case F_HAS_TYPE_PRIVILEGE_OID_TEXT_TEXT:
		case F_HAS_TYPE_PRIVILEGE_TEXT_TEXT:
		case F_HAS_FUNCTION_PRIVILEGE_NAME_TEXT_TEXT:
		case F_HAS_FUNCTION_PRIVILEGE_OID_TEXT_TEXT:
		case F_HAS_FUNCTION_PRIVILEGE_TEXT_TEXT:
		case F_PG_GET_OBJECT_ADDRESS:
		case F_XML_IS_WELL_FORMED:
		case F_XML_IS_WELL_FORMED_DOCUMENT:
		case F_XML_IS_WELL_FORMED_CONTENT:
			/* or run queries */
		case F_TABLE_TO_XML:
		case F_TABLE_TO_XML_AND_XMLSCHEMA:
		case F_SCHEMA_TO_XML:
		case F_SCHEMA_TO_XML_AND_XMLSCHEMA:
		case F_DATABASE_TO_XML:
		case F_DATABASE_TO_XML_AND_XMLSCHEMA:
		case F_PG_GET_RULEDEF_OID:
		case F_PG_GET_RULEDEF_OID_BOOL:
		case F_PG_GET_VIEWDEF_OID:
		case F_PG_GET_VIEWDEF_OID_BOOL:
		case F_PG_GET_VIEWDEF_OID_INT4:
		case F_PG_GET_VIEWDEF_TEXT:
		case F_PG_GET_VIEWDEF_TEXT_BOOL:
			return false;

		default:
			return funcid < FirstGenbkiObjectId && is_stable_code(funcid);
	}
}

bool
AioFunctionHasSideEffects(Oid funcid)
{
	return !function_leaves_nothing(funcid);
}

/* How much is asked of what is evaluated. */
typedef struct Demand
{
	bool		no_errors;		/* that depend on values, either */
	bool		ahead;			/* it is evaluated before its turn, */
	bool		fixed;			/* and things may be changed meanwhile */
	const Plan *partly;			/* of this node, only 'quals' are evaluated */
	List	   *quals;
} Demand;

static bool
leaves_something_checker(Oid funcid, void *context)
{
	return !function_leaves_nothing(funcid) ||
		(((const Demand *) context)->no_errors && !get_func_leakproof(funcid));
}

/*
 * Built-in functions that take values of many types call those of the type at
 * hand, which may be a domain, or contain one, or have a cast to json; input
 * functions are among them.  Those of text search and XML send notices, and so
 * does whoever parses the name of a type, a number of digits in it, or in a
 * path for json.
 */
static bool
type_is_plain(Oid type)
{
	switch (type)
	{
		case RECORDOID:
		case RECORDARRAYOID:
		case ANYARRAYOID:
		case CSTRINGOID:
		case CSTRINGARRAYOID:
		case INTERNALOID:
		case REGTYPEOID:
		case REGTYPEARRAYOID:
		case REGPROCEDUREOID:
		case REGPROCEDUREARRAYOID:
		case REGOPERATOROID:
		case REGOPERATORARRAYOID:
		case JSONPATHOID:
		case JSONPATHARRAYOID:
		case TSVECTOROID:
		case TSVECTORARRAYOID:
		case TSQUERYOID:
		case TSQUERYARRAYOID:
		case XMLOID:
		case XMLARRAYOID:
			return false;
		default:
			return type < FirstGenbkiObjectId && !AioComparingRunsUserCode(type);
	}
}

static bool
all_plain(List *args)
{
	foreach_ptr(Node, arg, args)
	{
		if (!type_is_plain(exprType(arg)))
			return false;
	}
	return true;
}

/*
 * Does evaluating this do anything besides giving a value?
 */
static bool
leaves_something(Node *node, void *context)
{
	Demand	   *demand = context;

	if (node == NULL)
		return false;
	if (demand->ahead && !AioNodeMayBeAhead(node, demand->fixed))
		return true;
	switch (nodeTag(node))
	{
		case T_Var:
		case T_Const:
		case T_Param:
		case T_CaseTestExpr:
		case T_SQLValueFunction:
		case T_List:
		case T_TargetEntry:
		case T_RangeTblFunction:
		case T_BoolExpr:
		case T_CaseExpr:
		case T_CaseWhen:
		case T_CoalesceExpr:
		case T_NullTest:
		case T_BooleanTest:
		case T_RelabelType:
		case T_ArrayExpr:
		case T_RowExpr:
		case T_FieldSelect:
			break;
		case T_SubscriptingRef:
			if (demand->no_errors)
				return true;
			break;
		case T_FuncExpr:
			if (!type_is_plain(((FuncExpr *) node)->funcresulttype) ||
				!all_plain(((FuncExpr *) node)->args))
				return true;
			break;
		case T_OpExpr:
		case T_DistinctExpr:
		case T_NullIfExpr:
			if (!all_plain(((OpExpr *) node)->args))
				return true;
			break;
		case T_ScalarArrayOpExpr:
			if (!all_plain(((ScalarArrayOpExpr *) node)->args))
				return true;
			break;
		case T_Aggref:
			foreach_oid(type, ((Aggref *) node)->aggargtypes)
			{
				if (!type_is_plain(type))
					return true;
			}
			break;
		case T_CoerceViaIO:
			if (demand->no_errors ||
				!type_is_plain(exprType((Node *) ((CoerceViaIO *) node)->arg)) ||
				!type_is_plain(((CoerceViaIO *) node)->resulttype))
				return true;
			break;
		default:
			/* domains, sequences, subqueries, XML and JSON constructors, ... */
			return true;
	}
	if (AioNodeCallsUnnamedCode(node) ||
		check_functions_in_node(node, leaves_something_checker, demand))
		return true;
	return expression_tree_walker(node, leaves_something, demand);
}

/* Does comparing these columns of a plan's rows? */
static bool
comparing_leaves_something(Plan *plan, int n, const AttrNumber *columns,
						   const Oid *operators)
{
	Assert(plan != NULL);
	Assert(n == 0 || (columns != NULL && operators != NULL));

	for (int i = 0; i < n; i++)
	{
		TargetEntry *column = get_tle_by_resno(plan->targetlist, columns[i]);

		if (operators[i] >= FirstGenbkiObjectId || column == NULL ||
			!type_is_plain(exprType((Node *) column->expr)))
			return true;
	}
	return false;
}

static bool
is_join(const Plan *plan)
{
	return IsA(plan, NestLoop) || IsA(plan, MergeJoin) || IsA(plan, HashJoin);
}

/* PlanState walker: likewise, for what a plan evaluates. */
static bool
plan_leaves_something(PlanState *state, void *context)
{
	const Demand *demand = context;
	Plan	   *plan;
	bool		partly;

	if (state == NULL)
		return false;
	plan = state->plan;
	Assert(plan != NULL);
	partly = plan == demand->partly;
	if (demand->ahead && !AioScanMayBeAhead(state, demand->fixed))
		return true;
	if (partly)
	{
		/* what is evaluated later is made of columns that are had ahead */
		if (demand->ahead && !AioColumnsMayBeAhead(plan))
			return true;
		if (leaves_something((Node *) demand->quals, context))
			return true;
	}
	else if (leaves_something((Node *) plan->targetlist, context) ||
			 leaves_something((Node *) plan->qual, context) ||
			 (is_join(plan) &&
			  leaves_something((Node *) ((Join *) plan)->joinqual, context)))
		return true;
	if (plan->initPlan != NIL || AioPlanNodeCallsUnnamedCode(state) ||
		!AioScansHeap(state))
		return true;
	switch (nodeTag(plan))
	{
		case T_ModifyTable:
			/* rows that are returned may be seen at once */
			if (((ModifyTable *) plan)->withCheckOptionLists != NIL ||
				((ModifyTable *) plan)->returningLists != NIL)
				return true;
			break;
		case T_Result:
			if (leaves_something(((Result *) plan)->resconstantqual, context))
				return true;
			break;
		case T_FunctionScan:
			if (leaves_something((Node *) ((FunctionScan *) plan)->functions, context))
				return true;
			break;
		case T_ValuesScan:
			if (leaves_something((Node *) ((ValuesScan *) plan)->values_lists, context))
				return true;
			break;
		case T_MergeJoin:
			if (leaves_something((Node *) ((MergeJoin *) plan)->mergeclauses, context))
				return true;
			break;
		case T_HashJoin:
			if (leaves_something((Node *) ((HashJoin *) plan)->hashclauses, context))
				return true;
			break;
		case T_NestLoop:
			break;
		case T_Sort:
			if (comparing_leaves_something(plan, ((Sort *) plan)->numCols,
										   ((Sort *) plan)->sortColIdx,
										   ((Sort *) plan)->sortOperators))
				return true;
			break;
		case T_Unique:
			if (comparing_leaves_something(outerPlan(plan), ((Unique *) plan)->numCols,
										   ((Unique *) plan)->uniqColIdx,
										   ((Unique *) plan)->uniqOperators))
				return true;
			break;
		case T_Group:
			if (comparing_leaves_something(outerPlan(plan), ((Group *) plan)->numCols,
										   ((Group *) plan)->grpColIdx,
										   ((Group *) plan)->grpOperators))
				return true;
			break;
		case T_Agg:
			if (((Agg *) plan)->chain != NIL ||
				comparing_leaves_something(outerPlan(plan), ((Agg *) plan)->numCols,
										   ((Agg *) plan)->grpColIdx,
										   ((Agg *) plan)->grpOperators))
				return true;
			break;
		case T_IndexScan:
			if (leaves_something((Node *) ((IndexScan *) plan)->indexqualorig, context) ||
				leaves_something((Node *) ((IndexScan *) plan)->indexorderbyorig, context))
				return true;
			break;
		case T_IndexOnlyScan:
			if (leaves_something((Node *) ((IndexOnlyScan *) plan)->indexqual, context) ||
				leaves_something((Node *) ((IndexOnlyScan *) plan)->indexorderby, context))
				return true;
			break;
		case T_BitmapIndexScan:
			if (leaves_something((Node *) ((BitmapIndexScan *) plan)->indexqualorig, context))
				return true;
			break;
		case T_BitmapHeapScan:
			if (leaves_something((Node *) ((BitmapHeapScan *) plan)->bitmapqualorig, context))
				return true;
			break;
		case T_Limit:
			if (leaves_something(((Limit *) plan)->limitOffset, context) ||
				leaves_something(((Limit *) plan)->limitCount, context))
				return true;
			break;
		case T_Memoize:
			if (leaves_something((Node *) ((Memoize *) plan)->param_exprs, context))
				return true;
			break;
		case T_Append:
			if (leaves_something((Node *) AioPruningExpressions(state), context))
				return true;
			break;
		case T_ProjectSet:
		case T_SeqScan:
		case T_Hash:
		case T_Material:
		case T_BitmapAnd:
		case T_BitmapOr:
		case T_WorkTableScan:
		case T_SubqueryScan:
			break;
		default:
			/* whatever else there is */
			return true;
	}
	if (partly)
	{
		/* its subplans are executed by what is not evaluated */
		return plan_leaves_something(outerPlanState(state), context) ||
			plan_leaves_something(innerPlanState(state), context) ||
			(IsA(state, SubqueryScanState) &&
			 plan_leaves_something(castNode(SubqueryScanState, state)->subplan,
								   context));
	}
	return planstate_tree_walker(state, plan_leaves_something, context);
}

static Demand
make_demand(int demands)
{
	Demand		demand = {
		.no_errors = (demands & AIO_NO_ERRORS) != 0,
		.ahead = (demands & AIO_AHEAD) != 0,
		.fixed = (demands & AIO_FIXED) == AIO_FIXED,
	};

	return demand;
}

/* What is asked about: an expression, or else a plan. */
typedef struct DemandAsked
{
	Node	   *node;
	PlanState  *planstate;
	Demand		demand;
} DemandAsked;

/* AioIsTrueOrUnknown() */
static bool
asked_leaves_something(void *arg)
{
	DemandAsked *asked = arg;

	return asked->planstate != NULL ?
		plan_leaves_something(asked->planstate, &asked->demand) :
		leaves_something(asked->node, &asked->demand);
}

/*
 * Does evaluating an expression do anything besides giving a value?  'demands'
 * tells what else is something: AIO_NO_ERRORS and others.
 */
bool
AioExpressionHasSideEffects(Node *node, int demands)
{
	DemandAsked asked = {node, NULL, make_demand(demands)};

	return AioIsTrueOrUnknown(asked_leaves_something, &asked);
}

/*
 * Likewise, does producing the rows of a plan?
 */
bool
AioRowsHaveSideEffects(PlanState *planstate, int demands)
{
	DemandAsked asked = {NULL, planstate, make_demand(demands)};

	return AioIsTrueOrUnknown(asked_leaves_something, &asked);
}

/*
 * Likewise, if of its topmost node neither the target list is evaluated nor any
 * condition on its rows but these.
 */
bool
AioPartialRowsHaveSideEffects(PlanState *planstate, List *quals, int demands)
{
	DemandAsked asked = {NULL, planstate, make_demand(demands)};

	asked.demand.partly = planstate->plan;
	asked.demand.quals = quals;
	return AioIsTrueOrUnknown(asked_leaves_something, &asked);
}

/*
 * Does checking a row of this table, or computing its generated columns, or
 * what is in its indexes?  Looks up catalogs, and so may raise.
 */
bool
AioTableLeavesSomething(ResultRelInfo *rri)
{
	TupleConstr *constr = RelationGetDescr(rri->ri_RelationDesc)->constr;
	TriggerDesc *triggers = rri->ri_TrigDesc;

	Assert(rri->ri_NumIndices == 0 || rri->ri_IndexRelationDescs != NULL);

	/* the next row may go to another partition, with other triggers */
	if (rri->ri_RootResultRelInfo != NULL || rri->ri_WithCheckOptions != NIL)
		return true;
	for (int i = 0; triggers != NULL && i < triggers->numtriggers; i++)
	{
		Trigger    *trigger = &triggers->triggers[i];

		/* those after the row wait for the end, but not their conditions */
		if (TRIGGER_FOR_ROW(trigger->tgtype) && TRIGGER_FOR_INSERT(trigger->tgtype) &&
			(!TRIGGER_FOR_AFTER(trigger->tgtype) || trigger->tgqual != NULL))
			return true;
	}
	for (int i = 0; i < rri->ri_NumIndices; i++)
	{
		/* a support function may be anybody's */
		if (rri->ri_IndexRelationDescs[i] != NULL &&
			AioGetTablePolicy(rri)->indexes[i].ops == NULL)
			return true;
	}
	/* so may what is in an expression or a predicate, which may send notices */
	if (rri->ri_NumIndices > 0 && AioGetTablePolicy(rri)->user_code)
		return true;
	for (int i = 0; i < rri->ri_NumIndices; i++)
	{
		const IndexInfo *info = rri->ri_IndexRelationInfo[i];

		if (rri->ri_IndexRelationDescs[i] != NULL &&
			(AioExpressionHasSideEffects((Node *) info->ii_Expressions, false) ||
			 AioExpressionHasSideEffects((Node *) info->ii_Predicate, false)))
			return true;
	}

	/* to have it made anew would lock its parent */
	if (rri->ri_RelationDesc->rd_rel->relispartition &&
		(!rri->ri_RelationDesc->rd_partcheckvalid ||
		 AioExpressionHasSideEffects((Node *) RelationGetPartitionQual(rri->ri_RelationDesc), 0)))
		return true;
	if (constr == NULL)
		return false;
	if (constr->has_generated_stored)
		return true;

	/* constraints are about these by their names */
	for (int i = 0; constr->has_generated_virtual &&
		 i < RelationGetNumberOfAttributes(rri->ri_RelationDesc); i++)
	{
		Form_pg_attribute att =
			TupleDescAttr(RelationGetDescr(rri->ri_RelationDesc), i);

		if (!att->attisdropped && att->attgenerated == ATTRIBUTE_GENERATED_VIRTUAL &&
			AioExpressionHasSideEffects(build_generation_expression(rri->ri_RelationDesc, i + 1),
										false))
			return true;
	}
	for (int i = 0; i < constr->num_check; i++)
	{
		Node	   *check = stringToNode(constr->check[i].ccbin);

		if (AioExpressionHasSideEffects(check, 0))
			return true;
	}
	return false;
}

/* Does reading the rows after a failing one from COPY's input? */
bool
AioCopyLeavesSomething(CopyFromState cstate)
{
	TupleDesc	desc = RelationGetDescr(cstate->rel);

	Assert(cstate->defexprs != NULL || desc->natts == 0);

	/* an extension's code gets its input, takes it apart, or converts it */
	if ((cstate->data_source_cb != NULL && !AioIsOwnFunction(cstate->data_source_cb)) ||
		!AioIsOwnFunction(cstate->routine->CopyFromOneRow) ||
		(cstate->need_transcoding && cstate->conversion_proc >= FirstNormalObjectId))
		return true;

	/* each row that is skipped is reported */
	if (cstate->opts.on_error != COPY_ON_ERROR_STOP &&
		cstate->opts.log_verbosity >= COPY_LOG_VERBOSITY_VERBOSE)
		return true;
	if (AioExpressionHasSideEffects(cstate->whereClause, 0))
		return true;
	for (int i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);

		/* has no default expression, not even a null one */
		if (att->attisdropped)
			continue;
		Assert(OidIsValid(att->atttypid));
		/* input functions may be anybody's, and those of domains call others */
		if (!type_is_plain(att->atttypid))
			return true;
		if (cstate->defexprs[i] != NULL &&
			AioExpressionHasSideEffects((Node *) cstate->defexprs[i]->expr, 0))
			return true;
	}
	return false;
}

/* Does producing and inserting the rows of an INSERT? */
bool
AioInsertLeavesSomething(PlannedStmt *stmt, PlanState *planstate)
{
	Assert(planstate->plan == stmt->planTree);

	if (stmt->commandType != CMD_INSERT || stmt->hasModifyingCTE ||
		stmt->rowMarks != NIL)
		return true;
	/* user functions, and domains */
	foreach_node(PlanInvalItem, item, stmt->invalItems)
	{
		if (item->cacheId == PROCOID || item->cacheId == TYPEOID)
			return true;
	}
	return AioRowsHaveSideEffects(planstate, 0);
}
