/*-------------------------------------------------------------------------
 *
 * lookup_insert.c
 *	  INSERT and MERGE: what is looked for with a row that will be inserted.
 *
 * With ON CONFLICT, before a row is inserted, its keys are searched in the
 * indexes that arbitrate, and the row is read with which it conflicts;
 * afterwards, they are put into all unique indexes.  Without it, a row is
 * inserted first; but then an exclusion constraint is checked before the next
 * row comes, and so is whether a unique key that is enforced later may be a
 * duplicate.  The rows that the statement's plan gives are taken ahead, as
 * those of a loop (lookup_loop.c), and their keys are probed.
 *
 * Of a row that is ahead, the columns of the table are needed.  If producing
 * some of them has side effects, such as that a sequence is advanced, the
 * plan's topmost node evaluates its target list later (lookup_projection.c),
 * and keys with such columns are not looked up.
 *
 * MERGE knows that a row is new when its plan has found no row of the table to
 * go with it.  If there is a single action for such rows, what it will insert
 * is computed ahead, and its keys are looked up in all unique indexes, whose
 * entries do not wait.  All is computed again when the row is inserted, and an
 * error is raised then.
 *
 * In a partitioned table, the row's partition is found without anything being
 * opened.  A partition into which nothing has been inserted yet is not known.
 *
 * A trigger may still change the row: probes are a forecast.
 *
 * Tests: src/test/aio/lookup/t/003_conflicts.pl.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/sysattr.h"
#include "aio/error_point.h"
#include "aio/executor_partition.h"
#include "aio/executor_run.h"
#include "aio/index_policy.h"
#include "catalog/index.h"
#include "executor/executor.h"
#include "guard.h"
#include "lookup.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "rewrite/rewriteManip.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/partcache.h"
#include "utils/rel.h"

struct AioLookupInsert
{
	ModifyTableState *mtstate;
	List	   *tables;			/* of InsertTable: those that are known */

	/* if the plan evaluates its target list later */
	Bitmapset  *missing;		/* columns that cannot be had ahead */
	ProjectionInfo *columns;	/* gives the others, of a row that is ahead */

	/* of MERGE, whose action also has missing columns */
	MergeAction *action;
	ExprState  *condition;		/* NULL: none */
	bool		has_failed;		/* evaluating them has */
};

/* A table, or a partition, that rows go to. */
typedef struct InsertTable
{
	ResultRelInfo *rri;
	List	   *targets;		/* of AioLookupTarget, with keys in terms of
								 * the columns of the statement's table */
} InsertTable;

/*
 * Columns of the statement's table that an expression about rows of the table
 * refers to, with those of a partition translated; NULL if it cannot be
 * evaluated for a row that is ahead.
 */
static Expr *
of_columns(const AioLookupInsert *insert, ResultRelInfo *rri, Node *expr)
{
	TupleConversionMap *map = rri == insert->mtstate->rootResultRelInfo ? NULL :
		ExecGetRootToChildMap(rri, insert->mtstate->ps.state);
	TupleDesc	desc = RelationGetDescr(rri->ri_RelationDesc);
	Bitmapset  *attrs = NULL;
	bool		whole_row = false;
	int			i = -1;

	pull_varattnos(expr, 1, &attrs);
	while ((i = bms_next_member(attrs, i)) >= 0)
	{
		AttrNumber	attnum = i + FirstLowInvalidHeapAttributeNumber;

		/* generated columns are computed when the row is inserted */
		if (attnum <= 0 ||
			TupleDescAttr(desc, attnum - 1)->attgenerated != '\0')
			return NULL;
		if (map != NULL)
			attnum = map->attrMap->attnums[attnum - 1];
		if (attnum == 0 || bms_is_member(attnum, insert->missing))
			return NULL;
	}
	if (map != NULL)
		expr = map_variable_attnos(expr, 1, 0, map->attrMap, InvalidOid,
								   &whole_row);
	return whole_row ? NULL : (Expr *) expr;
}

/* The expression of an index's column in terms of rows of its table. */
static Node *
index_column(Relation heap, const IndexInfo *info, int column)
{
	AttrNumber	attnum = info->ii_IndexAttrNumbers[column];
	ListCell   *expression = list_head(info->ii_Expressions);
	Form_pg_attribute att;

	if (attnum == 0)
	{
		for (int i = 0; i < column; i++)
		{
			if (info->ii_IndexAttrNumbers[i] == 0)
				expression = lnext(info->ii_Expressions, expression);
		}
		return lfirst(expression);
	}
	if (attnum < 0)
		return NULL;
	att = TupleDescAttr(RelationGetDescr(heap), attnum - 1);
	return (Node *) makeVar(1, attnum, att->atttypid, att->atttypmod,
							att->attcollation, 0);
}

/* Set a key of a scan, whose value is that of an index's column. */
static bool
set_key(const AioLookupInsert *insert, ResultRelInfo *rri,
		AioLookupTarget *target, const IndexInfo *info, int i)
{
	IndexRuntimeKeyInfo *runtime = &target->runtime_keys[i];
	bool		exclusion = info->ii_ExclusionOps != NULL;
	Node	   *column = index_column(target->heap, info, i);
	Expr	   *value = column == NULL ? NULL : of_columns(insert, rri, column);

	if (value == NULL || AioExpressionHasSideEffects((Node *) value, 0))
		return false;
	ScanKeyEntryInitialize(&target->keys[i], 0, i + 1,
						   exclusion ? info->ii_ExclusionStrats[i] : info->ii_UniqueStrats[i],
						   InvalidOid, target->index->rd_indcollation[i],
						   exclusion ? info->ii_ExclusionProcs[i] : info->ii_UniqueProcs[i],
						   (Datum) 0);
	runtime->scan_key = &target->keys[i];
	runtime->key_expr = ExecInitExpr(value, NULL);
	runtime->key_toastable = TypeIsToastable(target->index->rd_opcintype[i]);
	target->may_fail |= info->ii_IndexAttrNumbers[i] == 0;
	return true;
}

/* Does the statement say what to do about conflicts? */
static bool
on_conflict(const AioLookupInsert *insert)
{
	return castNode(ModifyTable, insert->mtstate->ps.plan)->onConflictAction !=
		ONCONFLICT_NONE;
}

/* The table whose columns rows have, before they go to a partition. */
static ResultRelInfo *
table_of(const AioLookupInsert *insert)
{
	return insert->action != NULL ? insert->mtstate->rootResultRelInfo :
		insert->mtstate->resultRelInfo;
}

/* Are rows of the table read when this index is looked at? */
static bool
has_rows_read(const AioLookupInsert *insert, const ResultRelInfo *rri, int position)
{
	const IndexInfo *info = rri->ri_IndexRelationInfo[position];

	return info->ii_ExclusionOps != NULL || on_conflict(insert) ||
		!rri->ri_IndexRelationDescs[position]->rd_index->indimmediate;
}

/* Is this index looked at whenever a row is inserted? */
static bool
is_looked_at(const AioLookupInsert *insert, const ResultRelInfo *rri, int position)
{
	const IndexInfo *info = rri->ri_IndexRelationInfo[position];

	return info->ii_ExclusionOps != NULL ||
		(info->ii_Unique &&
		 (insert->action != NULL || has_rows_read(insert, rri, position)));
}

/*
 * What is looked for in one of the table's indexes; NULL if nothing is, or if
 * it cannot be looked up.
 */
static AioLookupTarget *
make_target(const AioLookupInsert *insert, ResultRelInfo *rri, int position)
{
	Relation	index = rri->ri_IndexRelationDescs[position];
	IndexInfo  *info = rri->ri_IndexRelationInfo[position];
	List	   *arbiters = rri->ri_onConflictArbiterIndexes;
	AioLookupTarget *target;
	Expr	   *predicate;

	if (index == NULL || !info->ii_ReadyForInserts ||
		!is_looked_at(insert, rri, position))
		return NULL;
	if (info->ii_ExclusionOps == NULL && info->ii_UniqueProcs == NULL)
	{
		IndexInfo  *copy = palloc_object(IndexInfo);

		*copy = *info;
		BuildSpeculativeIndexInfo(index, copy);
		info = copy;
	}
	target = palloc0(sizeof(AioLookupTarget));
	target->index = index;
	target->heap = rri->ri_RelationDesc;
	target->ops = AioLookupAm(index, target->heap);
	target->direction = ForwardScanDirection;
	target->first_only = true;
	target->leaf_only = arbiters != NIL &&
		!list_member_oid(arbiters, RelationGetRelid(index));
	if (target->ops == NULL)
		return NULL;
	target->nkeys = target->nruntime_keys = info->ii_NumIndexKeyAttrs;
	target->keys = palloc0_array(ScanKeyData, target->nkeys);
	target->runtime_keys = palloc0_array(IndexRuntimeKeyInfo, target->nkeys);
	for (int i = 0; i < target->nkeys; i++)
	{
		if (!set_key(insert, rri, target, info, i))
			return NULL;
	}
	if (!AioMayProbe(target))
		return NULL;
	if (info->ii_Predicate != NIL)
	{
		predicate = of_columns(insert, rri, (Node *) info->ii_Predicate);
		if (predicate == NULL ||
			AioExpressionHasSideEffects((Node *) predicate, 0))
			return NULL;
		target->predicate = ExecInitQual((List *) predicate, NULL);
		target->may_fail = true;
	}
	return target;
}

/* A table whose targets are not known yet. */
typedef struct NewTable
{
	const AioLookupInsert *insert;
	InsertTable *table;
} NewTable;

/* AioCompileAgain(): find the targets of a table. */
static void
find_targets(void *arg)
{
	const NewTable *new_table = arg;
	const AioLookupInsert *insert = new_table->insert;
	InsertTable *table = new_table->table;
	ResultRelInfo *rri = table->rri;

	for (int i = 0; i < rri->ri_NumIndices; i++)
	{
		AioLookupTarget *target = make_target(insert, rri, i);

		if (target != NULL)
			table->targets = lappend(table->targets, target);
	}
}

static InsertTable *
make_table(const AioLookupInsert *insert, ResultRelInfo *rri)
{
	InsertTable *table = palloc0(sizeof(InsertTable));
	NewTable	new_table = {.insert = insert,.table = table};

	table->rri = rri;
	if (!AioGetTablePolicy(rri)->user_code &&
		!AioCompileAgain(find_targets, &new_table))
		table->targets = NIL;
	return table;
}

/*
 * The targets that are probed for a row that is ahead, of which these are the
 * columns; none if it will not be inserted.
 */
List *
AioInsertTargets(AioLookupInsert *insert, TupleTableSlot *columns)
{
	ModifyTableState *mtstate = insert->mtstate;
	ResultRelInfo *rri = table_of(insert);
	InsertTable *made;
	MemoryContext old;

	if (columns == NULL)
		return NIL;
	if (mtstate->mt_partition_tuple_routing != NULL)
		rri = AioFindOpenPartition(mtstate, columns);
	if (rri == NULL || rri->ri_IndexRelationDescs == NULL)
		return NIL;
	foreach_ptr(InsertTable, table, insert->tables)
	{
		if (table->rri == rri)
			return table->targets;
	}
	old = MemoryContextSwitchTo(mtstate->ps.state->es_query_cxt);
	made = make_table(insert, rri);
	insert->tables = lappend(insert->tables, made);
	MemoryContextSwitchTo(old);
	return made->targets;
}

/* Columns that are tried. */
typedef struct TriedColumns
{
	const AioLookupInsert *insert;
	TupleTableSlot *columns;
} TriedColumns;

static void
try_columns(void *arg)
{
	TriedColumns *tried = arg;
	const AioLookupInsert *insert = tried->insert;

	if (insert->condition == NULL ||
		ExecQual(insert->condition, insert->columns->pi_exprContext))
		tried->columns = ExecProject(insert->columns);
}

/*
 * Of a row that MERGE's plan has given, the columns of the row that the action
 * inserts; NULL if there is a row of the table to go with it, or the action has
 * other rows in mind.
 */
static TupleTableSlot *
merged_columns(AioLookupInsert *insert, TupleTableSlot *row)
{
	ExprContext *econtext = insert->columns->pi_exprContext;
	TriedColumns tried = {.insert = insert};
	bool		is_new;

	(void) slot_getattr(row, insert->mtstate->resultRelInfo->ri_RowIdAttNo, &is_new);
	if (!is_new || insert->has_failed)
		return NULL;
	econtext->ecxt_innertuple = row;
	insert->has_failed = !AioTry(try_columns, &tried, NULL, NULL);
	return insert->has_failed ? NULL : tried.columns;
}

/*
 * Of a row that is ahead, the columns of the statement's table; NULL if it will
 * not be inserted.
 */
TupleTableSlot *
AioInsertColumns(AioLookupInsert *insert, TupleTableSlot *row)
{
	if (insert->action != NULL)
		return merged_columns(insert, row);
	if (insert->columns == NULL)
		return row;
	insert->columns->pi_exprContext->ecxt_outertuple = row;
	return ExecProject(insert->columns);
}

/* The columns that can be had ahead, and nulls for the others. */
static List *
columns_ahead(const AioLookupInsert *insert, List *original)
{
	List	   *targetlist = NIL;

	foreach_node(TargetEntry, entry, original)
	{
		Expr	   *expr = entry->expr;

		if (bms_is_member(entry->resno, insert->missing))
			expr = (Expr *) makeNullConst(exprType((Node *) expr),
										  exprTypmod((Node *) expr),
										  exprCollation((Node *) expr));
		targetlist = lappend(targetlist,
							 makeTargetEntry(expr, entry->resno, NULL, false));
	}
	return targetlist;
}

/* Be ready for rows of this node, which computes its target list later. */
void
AioCompileInsert(AioLookupInsert *insert, PlanState *node,
				 AioLookupProjection *projection)
{
	insert->columns = AioProjectAhead(projection,
									  columns_ahead(insert, node->plan->targetlist));
}

/*
 * Be ready for rows of MERGE's plan.  Values that are computed are in the
 * memory of this expression context.
 */
void
AioCompileMerge(AioLookupInsert *insert, ExprContext *econtext)
{
	PlanState  *node = &insert->mtstate->ps;
	TupleDesc	desc = RelationGetDescr(table_of(insert)->ri_RelationDesc);
	TupleTableSlot *slot;

	if (insert->action == NULL)
		return;
	slot = MakeSingleTupleTableSlot(CreateTupleDescCopy(desc), &TTSOpsVirtual);
	insert->columns =
		ExecBuildProjectionInfo(columns_ahead(insert, insert->action->targetList),
								econtext, slot, node, slot->tts_tupleDescriptor);
	insert->condition = ExecInitQual((List *) insert->action->qual, node);
}

/*
 * Is this one of the indexes that are looked up?  Or for NULL: does any look-up
 * read rows?
 */
static bool
is_searched(const AioLookupInsert *insert, const ResultRelInfo *rri,
			const RelationData *rel)
{
	for (int i = 0; rri->ri_IndexRelationDescs != NULL && i < rri->ri_NumIndices; i++)
	{
		const RelationData *index = rri->ri_IndexRelationDescs[i];

		if (index == NULL || (rel != NULL && index != rel) ||
			!is_looked_at(insert, rri, i))
			continue;
		if (rel != NULL || has_rows_read(insert, rri, i))
			return true;
	}
	return false;
}

/* Does a table have keys that are checked later? */
static bool
checks_later(Relation rel)
{
	for (int i = 0; rel->trigdesc != NULL && i < rel->trigdesc->numtriggers; i++)
	{
		if (rel->trigdesc->triggers[i].tgfoid == F_UNIQUE_KEY_RECHECK)
			return true;
	}
	return false;
}

/*
 * Is this a table that rows go to, or an index in which their keys are
 * searched?  NULL stands for any of them: indexes may not be open yet.
 */
static bool
is_read(const AioLookupInsert *insert, const ResultRelInfo *rri,
		const RelationData *rel)
{
	Relation	table = rri->ri_RelationDesc;

	if (on_conflict(insert) && (rel == NULL || rel == table))
		return true;
	if (rel == NULL && (insert->action != NULL || checks_later(table)))
		return true;
	return is_searched(insert, rri, rel == table ? NULL : rel);
}

/*
 * Is this one of the tables that rows go to, or an index in which their keys
 * are searched?  Returns the table, or NULL; any one of them if rel is NULL.
 */
Relation
AioInsertReads(const AioLookupInsert *insert, Relation rel)
{
	const PartitionTupleRouting *routing = insert->mtstate->mt_partition_tuple_routing;
	ResultRelInfo *table = table_of(insert);
	ResultRelInfo **partitions = &table;
	int			n = 1;

	if (routing != NULL)
		partitions = AioOpenPartitions(routing, &n);
	for (int i = 0; i < n; i++)
	{
		if (is_read(insert, partitions[i], rel))
			return partitions[i]->ri_RelationDesc;
	}
	return NULL;
}

/* Columns that have side effects, or would have other values. */
static Bitmapset *
find_missing(List *targetlist, int demands)
{
	Bitmapset  *missing = NULL;

	foreach_node(TargetEntry, entry, targetlist)
	{
		if (AioExpressionHasSideEffects((Node *) entry->expr, demands) ||
			contain_volatile_functions((Node *) entry->expr))
			missing = bms_add_member(missing, entry->resno);
	}
	return missing;
}

/*
 * The action by which MERGE inserts new rows, if there is no other one for
 * these, and it can be told ahead what it will insert.
 */
static MergeAction *
find_action(const ModifyTableState *mtstate)
{
	List	   *actions =
		mtstate->resultRelInfo->ri_MergeActions[MERGE_WHEN_NOT_MATCHED_BY_TARGET];
	char		kind = mtstate->rootResultRelInfo->ri_RelationDesc->rd_rel->relkind;
	MergeAction *action;

	/* rows of a view have no place by which they are found */
	if (list_length(actions) != 1 ||
		!AttributeNumberIsValid(mtstate->resultRelInfo->ri_RowIdAttNo) ||
		(kind != RELKIND_RELATION && kind != RELKIND_PARTITIONED_TABLE))
		return NULL;
	action = linitial_node(MergeActionState, actions)->mas_action;
	if (action->commandType != CMD_INSERT ||
		AioExpressionHasSideEffects(action->qual, 0) ||
		contain_volatile_functions(action->qual))
		return NULL;
	return action;
}

/*
 * What is looked for with the rows that a node inserts; NULL if nothing is.
 * If the plan's target list has to be evaluated later, *later is set.
 * Allocates in the current memory context.
 */
AioLookupInsert *
AioFindInsertLookups(ModifyTableState *mtstate, PlanState *root, bool *later)
{
	const ModifyTable *node = castNode(ModifyTable, mtstate->ps.plan);
	const Plan *plan = outerPlan(node);
	AioLookupInsert *insert;

	*later = false;
	if ((mtstate->operation != CMD_INSERT && mtstate->operation != CMD_MERGE) ||
		mtstate->rootResultRelInfo->ri_FdwRoutine != NULL ||
		!mtstate->rootResultRelInfo->ri_RelationDesc->rd_rel->relhasindex)
		return NULL;
	insert = palloc0(sizeof(AioLookupInsert));
	insert->mtstate = mtstate;
	if (mtstate->operation == CMD_MERGE)
	{
		insert->action = find_action(mtstate);
		if (insert->action == NULL)
			return NULL;
		insert->missing = find_missing(insert->action->targetList, 0);
		return insert;
	}
	*later = AioExpressionHasSideEffects((Node *) plan->targetlist, AIO_FIXED) &&
		(AioExpressionHasSideEffects((Node *) plan->targetlist, AIO_AHEAD) ||
		 !AioPlanChangesNothing(root));

	/* a target list can be evaluated later for one purpose only */
	if (*later && !is_read(insert, mtstate->resultRelInfo, NULL))
		return NULL;
	if (*later)
		insert->missing = find_missing(plan->targetlist, AIO_NO_ERRORS);
	return insert;
}
