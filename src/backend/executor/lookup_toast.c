/*-------------------------------------------------------------------------
 *
 * lookup_toast.c
 *	  Values stored out of line, of rows that are ahead.
 *
 * A row has a pointer to such a value, and its chunks are found by the index of
 * a TOAST table, one after the other, when somebody wants to know the value.
 * If it is known that rows to come will be asked for their values, as those are
 * that are sent to a client, the chunks are looked up like the inner rows of a
 * nested loop (lookup_loop.c).
 *
 * INVARIANT-69: of a row that is ahead, nothing but the pointer is looked at.
 * No value is put together before it is wanted, so what is wrong with it is
 * found out when it is, by upstream, in the order of the rows.
 *
 * A TOAST table is opened for as long as probes run, if nobody is in the way:
 * neither VACUUM nor DDL has to wait for us longer than for who wants a value.
 *
 * Tests: src/test/aio/toast.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/detoast.h"
#include "access/relation.h"
#include "access/stratnum.h"
#include "catalog/catalog.h"
#include "lookup.h"
#include "utils/fmgroids.h"
#include "utils/memutils.h"
#include "utils/rel.h"

/* A TOAST table in which there are values. */
typedef struct ToastTable
{
	Oid			relid;
	bool		open;
	ScanKeyData key;			/* chunk_id = ? */
	AioLookupTarget target;
} ToastTable;

/* What is looked up for rows that are ahead. */
struct AioToast
{
	List	   *columns;		/* of AttrNumber: where there may be values */
	List	   *tables;			/* of ToastTable, as far as rows have had any */
};

/* Columns of these rows whose values may be stored out of line. */
List *
AioToastColumns(TupleDesc desc)
{
	List	   *columns = NIL;

	for (int i = 0; i < desc->natts; i++)
	{
		const CompactAttribute *column = TupleDescCompactAttr(desc, i);

		if (column->attlen == -1 && !column->attisdropped)
			columns = lappend_int(columns, i + 1);
	}
	return columns;
}

/*
 * Values of these columns are going to be looked up.  Allocated in the current
 * memory context.
 */
AioToast *
AioMakeToast(List *columns)
{
	AioToast   *toast = palloc0(sizeof(AioToast));

	toast->columns = columns;
	return toast;
}

/* They are these, which has not been known when it was made. */
void
AioSetToastColumns(AioToast *toast, List *columns)
{
	Assert(toast->columns == NIL);
	toast->columns = columns;
}

int
AioToastSize(const AioToast *toast)
{
	return list_length(toast->columns);
}

/* The table whose rows a node scans, if it does nothing else. */
static Relation
scanned_table(const PlanState *node)
{
	switch (nodeTag(node))
	{
		case T_SeqScanState:
		case T_IndexScanState:
		case T_BitmapHeapScanState:
			return ((const ScanState *) node)->ss_currentRelation;
		default:
			return NULL;
	}
}

/*
 * A relation in the tablespace of the values of this node's rows, if this is
 * the TOAST table, or its index, of the table that it scans, or of any table of
 * the statement if it is no scan; or if rel is NULL, and any table that the
 * statement reads has values out of line.  NULL if not.
 */
Relation
AioToastReads(const PlanState *node, Relation rel)
{
	const EState *estate = node->state;
	const Relation scanned = scanned_table(node);
	Oid			relid = InvalidOid;

	if (rel != NULL && !IsToastRelation(rel))
		return NULL;
	if (rel != NULL)
		relid = rel->rd_index != NULL ? rel->rd_index->indrelid :
			RelationGetRelid(rel);
	if (scanned != NULL && rel != NULL)
		return scanned->rd_rel->reltoastrelid == relid ? scanned : NULL;
	for (Index i = 0; i < estate->es_range_table_size; i++)
	{
		const Relation table = estate->es_relations[i];

		/* what is inserted is nothing to be read ahead */
		if (table == NULL || !OidIsValid(table->rd_rel->reltoastrelid) ||
			(estate->es_plannedstmt->commandType == CMD_INSERT &&
			 estate->es_result_relations != NULL &&
			 estate->es_result_relations[i] != NULL))
			continue;
		if (rel == NULL || table->rd_rel->reltoastrelid == relid)
			return table;
	}
	return NULL;
}

/* Open the index by which values are found, if nobody is in the way. */
static Relation
open_index(Relation table)
{
	foreach_oid(relid, RelationGetIndexList(table))
	{
		Relation	index = AioOpenIfFree(relid);

		if (index == NULL)
			continue;
		if (index->rd_index->indisvalid)
			return index;
		relation_close(index, AccessShareLock);
	}
	return NULL;
}

static void
close_table(ToastTable *table)
{
	if (table->target.index != NULL)
		relation_close(table->target.index, AccessShareLock);
	if (table->target.heap != NULL)
		relation_close(table->target.heap, AccessShareLock);
	table->target.index = NULL;
	table->target.heap = NULL;
	table->open = false;
}

static bool
open_table(ToastTable *table)
{
	AioLookupTarget *target = &table->target;

	if (table->open)
		return true;
	target->index = NULL;
	target->heap = AioOpenIfFree(table->relid);
	if (target->heap != NULL && IsToastRelation(target->heap) &&
		AioLookupLimit(target->heap) > 0)
		target->index = open_index(target->heap);
	target->ops = AioLookupAm(target->index, target->heap);
	table->open = target->ops != NULL && AioMayProbe(target);
	if (!table->open)
		close_table(table);
	return table->open;
}

static ToastTable *
get_table(AioToast *toast, Oid relid)
{
	ToastTable *table;
	MemoryContext old;

	foreach_ptr(ToastTable, known, toast->tables)
	{
		if (known->relid == relid)
			return known;
	}
	old = MemoryContextSwitchTo(GetMemoryChunkContext(toast));
	table = palloc0(sizeof(ToastTable));
	table->relid = relid;
	ScanKeyInit(&table->key, 1, BTEqualStrategyNumber, F_OIDEQ, (Datum) 0);
	table->target.keys = &table->key;
	table->target.nkeys = 1;
	table->target.direction = ForwardScanDirection;
	toast->tables = lappend(toast->tables, table);
	MemoryContextSwitchTo(old);
	return table;
}

/*
 * Add to a list of probes those of a row's values: AioAddProbe().  'begun' has
 * room for AioToastSize() of them.  With 'again' it is those that have a second
 * step to make, and else if 'near', both steps are made at once.
 *
 * Raises what opening a relation raises.
 */
List *
AioAddValues(List *probes, AioToast *toast, TupleTableSlot *row, int ahead,
			 bool *begun, bool again, bool near)
{
	foreach_int(column, toast->columns)
	{
		bool	   *one = &begun[foreach_current_index(column)];
		struct varatt_external pointer;
		ToastTable *table;
		ScanKey		key;
		bool		isnull;
		Datum		value;

		if (again && !*one)
			continue;
		*one = again;
		value = slot_getattr(row, column, &isnull);
		if (isnull || !VARATT_IS_EXTERNAL_ONDISK(DatumGetPointer(value)))
			continue;
		VARATT_EXTERNAL_GET_POINTER(pointer, DatumGetPointer(value));
		table = get_table(toast, pointer.va_toastrelid);
		if (!open_table(table))
			continue;
		key = palloc(sizeof(ScanKeyData));
		*key = table->key;
		key->sk_argument = ObjectIdGetDatum(pointer.va_valueid);
		probes = AioAddProbe(probes, &table->target, key, ahead,
							 near && !again ? NULL : one);
	}
	return probes;
}

/* The probes have been run: close what was opened for them. */
void
AioCloseToast(AioToast *toast)
{
	foreach_ptr(ToastTable, table, toast->tables)
	{
		if (table->open)
			close_table(table);
	}
}
