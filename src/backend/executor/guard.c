/*-------------------------------------------------------------------------
 *
 * guard.c
 *	  The first row that fails decides, also if its keys are still waiting.
 *
 * A backlog may hold keys whose uniqueness is not established yet, and INSERT
 * may have kept back rows (row_buffer.c).  If a later
 * row of the statement fails meanwhile, for whatever reason that is about its
 * data, inserting row by row would have met a duplicate among the earlier ones
 * first.  So the statement runs in a guard, which catches the error, drains
 * the backlog, and raises the error of that instead, if there is one.
 *
 * What has been caught is an error about data, raised by code that evaluates
 * expressions, parses input or checks constraints, perhaps with locks held;
 * these are released as the transaction's abort would release them.  No row is
 * produced any more, and the transaction is rolled back in any case.  If what
 * cannot be restored here has changed, the error goes on as it is.
 *
 * INVARIANT-36: rows, and keys that are enforced, wait only in statements in
 * which the rows after a failing one have no effect that would remain or be
 * seen: no sequence is advanced, no user code runs, no notice is sent.
 *
 * Tests: src/test/aio/sql/sql/errors.sql, src/test/aio/t/008_random.pl.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "aio/backlog.h"
#include "aio/index_insert.h"
#include "aio/task_port.h"
#include "backlog.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_trigger.h"
#include "catalog/pg_type.h"
#include "commands/copyfrom_internal.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "parser/parsetree.h"
#include "storage/ipc.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/partcache.h"
#include "utils/rel.h"
#include "utils/syscache.h"

/* A statement that runs in a guard.  Lives on the stack. */
typedef struct AioGuard
{
	struct AioGuard *outer;
	QueryDesc  *query;			/* that is executed; or */
	CopyFromState cstate;		/* that is read from */
	EState	   *backlog_of;		/* whose rows or enforced keys wait */

	/* what held when it began */
	MemoryContext memory_context;
	ResourceOwner owner;
	int			nest_level;
	Oid			userid;
	int			sec_context;
	uint32		holdoff;
	uint32		cancel_holdoff;
	AioScope   *scope;
} AioGuard;

static AioGuard *innermost = NULL;

static void
guard_begin(AioGuard *guard, QueryDesc *query, CopyFromState cstate)
{
	guard->outer = innermost;
	guard->query = query;
	guard->cstate = cstate;
	guard->backlog_of = query != NULL ? query->estate : NULL;
	guard->memory_context = CurrentMemoryContext;
	guard->owner = CurrentResourceOwner;
	guard->nest_level = GetCurrentTransactionNestLevel();
	GetUserIdAndSecContext(&guard->userid, &guard->sec_context);
	guard->holdoff = InterruptHoldoffCount;
	guard->cancel_holdoff = QueryCancelHoldoffCount;
	guard->scope = aio_current_scope;
	innermost = guard;
}

/*
 * Could this error be about a row?  Unlike AioIsDataError(), which has to
 * be right about errors of index inserts only, this says yes if in doubt.
 */
static bool
may_be_about_row(int sqlerrcode)
{
	/* such as too large a result */
	if (sqlerrcode == ERRCODE_INTERNAL_ERROR)
		return true;
	switch (ERRCODE_TO_CATEGORY(sqlerrcode))
	{
		case ERRCODE_CONNECTION_EXCEPTION:
		case ERRCODE_INVALID_TRANSACTION_STATE:
		case ERRCODE_TRANSACTION_ROLLBACK:
		case ERRCODE_INSUFFICIENT_RESOURCES:
		case ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE:
		case ERRCODE_OPERATOR_INTERVENTION:
		case ERRCODE_SYSTEM_ERROR:
		case ERRCODE_INTERNAL_ERROR:
			return false;
		default:
			return true;
	}
}

/*
 * The guarded statement has failed: raise the error of an earlier row instead,
 * if there is one.
 */
static void
settle(AioGuard *guard)
{
	ErrorContextCallback callback;

	if (guard->backlog_of == NULL || proc_exit_inprogress ||
		!AioBacklogIsChecked(guard->backlog_of) ||
		GetCurrentTransactionNestLevel() != guard->nest_level ||
		!may_be_about_row(geterrcode()))
		return;

	PG_TRY();
	{
		ErrorData  *error;

		MemoryContextSwitchTo(guard->memory_context);
		error = CopyErrorData();
		FlushErrorState();

		AioCleanUpAfterError();
		InterruptHoldoffCount = guard->holdoff;
		QueryCancelHoldoffCount = guard->cancel_holdoff;
		aio_current_scope = guard->scope;
		CurrentResourceOwner = guard->owner;
		SetUserIdAndSecContext(guard->userid, guard->sec_context);

		if (guard->cstate != NULL)
		{
			callback.callback = CopyFromErrorCallback;
			callback.arg = guard->cstate;
			callback.previous = error_context_stack;
			error_context_stack = &callback;
		}
		AioDrainStatement(guard->backlog_of);

		/* no earlier row fails; as errfinish() leaves it */
		InterruptHoldoffCount = 0;
		QueryCancelHoldoffCount = 0;
		guard->backlog_of = NULL;
		ReThrowError(error);
	}
	PG_CATCH();
	{
		/* a row that was kept back: keys of those before it may still wait */
		settle(guard);
		PG_RE_THROW();
	}
	PG_END_TRY();
}

/*
 * CopyFrom(), in a guard.
 */
uint64
AioCopyFrom(CopyFromState cstate)
{
	AioGuard	guard;
	uint64		processed = 0;

	if (aio_index_batch_memory == 0 || !aio_await_index_inserts)
		return CopyFrom(cstate);

	guard_begin(&guard, NULL, cstate);
	PG_TRY();
	{
		processed = CopyFrom(cstate);
	}
	PG_CATCH();
	{
		innermost = guard.outer;
		settle(&guard);
		PG_RE_THROW();
	}
	PG_END_TRY();
	innermost = guard.outer;
	return processed;
}

/*
 * run(arg), which runs the plan of query, in a guard.
 */
void
AioRunGuarded(QueryDesc *query, void (*run) (void *arg), void *arg)
{
	AioGuard	guard;

	guard_begin(&guard, query, NULL);
	PG_TRY();
	{
		run(arg);
	}
	PG_CATCH();
	{
		innermost = guard.outer;
		settle(&guard);
		PG_RE_THROW();
	}
	PG_END_TRY();
	innermost = guard.outer;
}

/* ------------------------------------------------------------------------
 * What rows after a failing one may do
 * ------------------------------------------------------------------------
 */

/*
 * A function that leaves nothing and tells nobody.  (random() leaves the state
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
			 * make
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
		case F_PG_INPUT_IS_VALID:
		case F_PG_INPUT_ERROR_INFO:
			/* send notices */
		case F_TS_MATCH_TT:
		case F_TS_MATCH_TQ:
			/* or run queries */
		case F_TABLE_TO_XML:
		case F_TABLE_TO_XML_AND_XMLSCHEMA:
		case F_SCHEMA_TO_XML:
		case F_SCHEMA_TO_XML_AND_XMLSCHEMA:
		case F_DATABASE_TO_XML:
		case F_DATABASE_TO_XML_AND_XMLSCHEMA:
			return false;

		default:
			return funcid < FirstGenbkiObjectId &&
				func_volatile(funcid) != PROVOLATILE_VOLATILE;
	}
}

static bool
leaves_something_checker(Oid funcid, void *context)
{
	return !function_leaves_nothing(funcid);
}

/*
 * Built-in functions that take values of many types call those of the type at
 * hand, which may be a domain, or contain one, or have a cast to json; input
 * functions are among them.  Those of text search and XML send notices.
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
		case INTERNALOID:
		case TSVECTOROID:
		case TSVECTORARRAYOID:
		case TSQUERYOID:
		case TSQUERYARRAYOID:
		case XMLOID:
		case XMLARRAYOID:
			return false;
		default:
			return type < FirstGenbkiObjectId;
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
	if (node == NULL)
		return false;
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
		case T_SubscriptingRef:
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
			if (!type_is_plain(exprType((Node *) ((CoerceViaIO *) node)->arg)) ||
				!type_is_plain(((CoerceViaIO *) node)->resulttype))
				return true;
			break;
		default:
			/* domains, sequences, subqueries, XML and JSON constructors, ... */
			return true;
	}
	if (check_functions_in_node(node, leaves_something_checker, NULL))
		return true;
	return expression_tree_walker(node, leaves_something, NULL);
}

/* Does comparing these columns of a plan's rows? */
static bool
comparing_leaves_something(Plan *plan, int n, const AttrNumber *columns,
						   const Oid *operators)
{
	for (int i = 0; i < n; i++)
	{
		TargetEntry *column = get_tle_by_resno(plan->targetlist, columns[i]);

		if (operators[i] >= FirstGenbkiObjectId || column == NULL ||
			!type_is_plain(exprType((Node *) column->expr)))
			return true;
	}
	return false;
}

/* PlanState walker: likewise, for what a plan evaluates. */
static bool
plan_leaves_something(PlanState *state, void *context)
{
	Plan	   *plan;

	if (state == NULL)
		return false;
	plan = state->plan;
	if (leaves_something((Node *) plan->targetlist, NULL) ||
		leaves_something((Node *) plan->qual, NULL) ||
		plan->initPlan != NIL)
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
			if (leaves_something(((Result *) plan)->resconstantqual, NULL))
				return true;
			break;
		case T_FunctionScan:
			if (leaves_something((Node *) ((FunctionScan *) plan)->functions, NULL))
				return true;
			break;
		case T_ValuesScan:
			if (leaves_something((Node *) ((ValuesScan *) plan)->values_lists, NULL))
				return true;
			break;
		case T_MergeJoin:
			if (leaves_something((Node *) ((MergeJoin *) plan)->mergeclauses, NULL) ||
				leaves_something((Node *) ((Join *) plan)->joinqual, NULL))
				return true;
			break;
		case T_HashJoin:
			if (leaves_something((Node *) ((HashJoin *) plan)->hashclauses, NULL) ||
				leaves_something((Node *) ((Join *) plan)->joinqual, NULL))
				return true;
			break;
		case T_NestLoop:
			if (leaves_something((Node *) ((Join *) plan)->joinqual, NULL))
				return true;
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
			if (leaves_something((Node *) ((IndexScan *) plan)->indexqualorig, NULL) ||
				leaves_something((Node *) ((IndexScan *) plan)->indexorderbyorig, NULL))
				return true;
			break;
		case T_IndexOnlyScan:
			if (leaves_something((Node *) ((IndexOnlyScan *) plan)->indexqual, NULL) ||
				leaves_something((Node *) ((IndexOnlyScan *) plan)->indexorderby, NULL))
				return true;
			break;
		case T_BitmapIndexScan:
			if (leaves_something((Node *) ((BitmapIndexScan *) plan)->indexqualorig, NULL))
				return true;
			break;
		case T_BitmapHeapScan:
			if (leaves_something((Node *) ((BitmapHeapScan *) plan)->bitmapqualorig, NULL))
				return true;
			break;
		case T_Limit:
			if (leaves_something(((Limit *) plan)->limitOffset, NULL) ||
				leaves_something(((Limit *) plan)->limitCount, NULL))
				return true;
			break;
		case T_ProjectSet:
		case T_SeqScan:
		case T_Hash:
		case T_Material:
		case T_SubqueryScan:
		case T_Append:
			break;
		default:
			/* whatever else there is */
			return true;
	}
	return planstate_tree_walker(state, plan_leaves_something, context);
}

/* Does checking a row, or computing its generated columns? */
static bool
table_leaves_something(ResultRelInfo *rri)
{
	TupleConstr *constr = RelationGetDescr(rri->ri_RelationDesc)->constr;
	TriggerDesc *triggers = rri->ri_TrigDesc;

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
			AioGetTablePolicy(rri)->indexes[i].mode == AIO_INDEX_INLINE)
			return true;
	}
	/* so may what is in an expression or a predicate */
	if (rri->ri_NumIndices > 0 && AioGetTablePolicy(rri)->user_code)
		return true;
	if (rri->ri_RelationDesc->rd_rel->relispartition &&
		leaves_something((Node *) RelationGetPartitionQual(rri->ri_RelationDesc), NULL))
		return true;
	if (constr == NULL)
		return false;
	if (constr->has_generated_stored)
		return true;
	for (int i = 0; i < constr->num_check; i++)
	{
		Node	   *check = stringToNode(constr->check[i].ccbin);

		if (leaves_something(check, NULL))
			return true;
	}
	return false;
}

static bool
copy_leaves_something(CopyFromState cstate)
{
	TupleDesc	desc = RelationGetDescr(cstate->rel);

	/* each row that is skipped is reported */
	if (cstate->opts.on_error != COPY_ON_ERROR_STOP &&
		cstate->opts.log_verbosity >= COPY_LOG_VERBOSITY_VERBOSE)
		return true;
	if (leaves_something(cstate->whereClause, NULL))
		return true;
	for (int i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);

		/* has no default expression, not even a null one */
		if (att->attisdropped)
			continue;
		/* input functions may be anybody's, and those of domains call others */
		if (!type_is_plain(att->atttypid))
			return true;
		if (cstate->defexprs[i] != NULL &&
			leaves_something((Node *) cstate->defexprs[i]->expr, NULL))
			return true;
	}
	return false;
}

/*
 * May rows of this table, or keys that are enforced, wait in the statement that
 * is running with this EState?  They may if it runs in a guard and rows that
 * come after a failing one leave nothing.  cstate is COPY's, or NULL.
 *
 * Asked once per statement and table.
 */
bool
AioLaterRowsLeaveNothing(ResultRelInfo *rri, EState *estate, CopyFromState cstate)
{
	AioGuard   *guard = innermost;

	if (guard == NULL || guard->cstate != cstate ||
		(cstate == NULL && guard->query->estate != estate) ||
		GetCurrentTransactionNestLevel() != guard->nest_level)
		return false;

	if (table_leaves_something(rri))
		return false;
	if (cstate != NULL)
	{
		if (copy_leaves_something(cstate))
			return false;
	}
	else
	{
		PlannedStmt *stmt = estate->es_plannedstmt;

		if (stmt->commandType != CMD_INSERT || stmt->hasModifyingCTE ||
			stmt->rowMarks != NIL)
			return false;
		/* user functions, and domains */
		foreach_node(PlanInvalItem, item, stmt->invalItems)
		{
			if (item->cacheId == PROCOID || item->cacheId == TYPEOID)
				return false;
		}
		if (plan_leaves_something(guard->query->planstate, NULL))
			return false;
	}
	guard->backlog_of = estate;
	return true;
}
