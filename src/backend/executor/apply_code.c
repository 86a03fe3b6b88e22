/*-------------------------------------------------------------------------
 *
 * apply_code.c
 *	  Which tables have rows that run code of somebody's when logical
 *	  replication applies them.
 *
 * A function may take any time, and may ask another session for something, in
 * a way that the deadlock detector does not see.  What it waits for may wait
 * for an index that the worker has locked for rows of other tables, which
 * upstream would have given back (INVARIANT-92).  So it is found out, once per
 * table, what a row may run besides triggers, whose functions are called at a
 * place of their own:
 * - early, before upstream locks the table's indexes: input functions of types
 *	 and checks of domains, defaults of columns that the publisher does not
 *	 send, and what tells the partition of a row;
 * - late, while it has them locked: generated columns, checks, conditions of
 *	 triggers, and what is in indexes, or compares that.
 *
 * PostgreSQL's own functions count unless they are known to do nothing but give
 * a value, or to wait only for locks, before which the worker gives its own
 * back.  Those of others do unless they are written in C and not volatile:
 * operators of types, and the like.
 *
 * All is read from the catalogs as it is stored: to have it loaded would run
 * what is constant in it, and lock parents of partitions.
 *
 * Suspends:  nothing here does.
 * Errors:    of look-ups in catalogs.
 * Tests:     src/test/aio/index/t/003_apply.pl.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/transam.h"
#include "aio/apply_ahead.h"
#include "aio/index_policy.h"
#include "apply_code.h"
#include "catalog/partition.h"
#include "catalog/pg_constraint.h"
#include "catalog/pg_index.h"
#include "catalog/pg_opclass.h"
#include "catalog/pg_partitioned_table.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_trigger.h"
#include "catalog/pg_type.h"
#include "commands/trigger.h"
#include "guard.h"
#include "nodes/bitmapset.h"
#include "nodes/nodeFuncs.h"
#include "storage/lock.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/hsearch.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/reltrigger.h"
#include "utils/syscache.h"

typedef struct TableCode
{
	Oid			relid;			/* hash key */
	AioRowCode	code;			/* but for defaults */
	Bitmapset  *defaults;		/* numbers of columns whose default runs code */
} TableCode;

/* what is known, in memory of the process, until it is out of date */
static MemoryContext code_context = NULL;
static HTAB *tables = NULL;
static TableCode *last_table = NULL;

/* what is known may be out of date */
static bool stale = false;

/* the table that is being found out about */
static Oid	asked_about = InvalidOid;

static bool type_runs_code(Oid type);

static void
relcache_changed(Datum arg, Oid relid)
{
	if (!OidIsValid(relid) || relid == asked_about ||
		(tables != NULL && hash_search(tables, &relid, HASH_FIND, NULL) != NULL))
		stale = true;
}

static void
catalog_changed(Datum arg, int cacheid, uint32 hashvalue)
{
	stale = true;
}

static void
init_tables(void)
{
	HASHCTL		ctl;

	if (code_context == NULL)
	{
		code_context = AllocSetContextCreate(TopMemoryContext, "code of applied rows",
											 ALLOCSET_SMALL_SIZES);
		CacheRegisterRelcacheCallback(relcache_changed, (Datum) 0);
		CacheRegisterSyscacheCallback(PROCOID, catalog_changed, (Datum) 0);
		CacheRegisterSyscacheCallback(TYPEOID, catalog_changed, (Datum) 0);
		CacheRegisterSyscacheCallback(CONSTROID, catalog_changed, (Datum) 0);
		/* operator classes get members, and types their own */
		CacheRegisterSyscacheCallback(CLAOID, catalog_changed, (Datum) 0);
		CacheRegisterSyscacheCallback(AMOPSTRATEGY, catalog_changed, (Datum) 0);
		CacheRegisterSyscacheCallback(AMPROCNUM, catalog_changed, (Datum) 0);
	}
	last_table = NULL;
	tables = NULL;
	MemoryContextReset(code_context);
	stale = false;
	ctl.keysize = sizeof(Oid);
	ctl.entrysize = sizeof(TableCode);
	ctl.hcxt = code_context;
	tables = hash_create("code of applied rows", 16, &ctl,
						 HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
}

/* check_function_callback: may the function take any time? */
static bool
function_runs_code(Oid funcid, void *context)
{
	switch (funcid)
	{
			/* volatile, but wait for nothing, or for locks only */
		case F_NEXTVAL:
		case F_RANDOM_:
			return false;
		default:
			if (funcid < FirstGenbkiObjectId)
				return AioFunctionHasSideEffects(funcid);
			return AioFunctionIsUserCode(funcid) ||
				func_volatile(funcid) == PROVOLATILE_VOLATILE;
	}
}

static bool
is_code(Oid funcid)
{
	return OidIsValid(funcid) && function_runs_code(funcid, NULL);
}

static bool
expression_runs_code(Node *node, void *context)
{
	if (node == NULL)
		return false;
	switch (nodeTag(node))
	{
		case T_List:
		case T_CaseTestExpr:
		case T_SQLValueFunction:
		case T_BoolExpr:
		case T_CaseExpr:
		case T_CaseWhen:
		case T_CoalesceExpr:
		case T_NullTest:
		case T_BooleanTest:
		case T_CollateExpr:
		case T_NamedArgExpr:
		case T_NextValueExpr:
			break;
		case T_Var:
		case T_Const:
		case T_Param:
		case T_FuncExpr:
		case T_OpExpr:
		case T_DistinctExpr:
		case T_NullIfExpr:
		case T_ScalarArrayOpExpr:
		case T_RelabelType:
		case T_CoerceViaIO:
		case T_ArrayCoerceExpr:
		case T_ArrayExpr:
		case T_FieldSelect:
		case T_SubscriptingRef:
		case T_MinMaxExpr:
		case T_CoerceToDomain:
		case T_CoerceToDomainValue:
			/* functions of PostgreSQL call those of the types at hand */
			if (type_runs_code(exprType(node)))
				return true;
			break;
		default:
			/* rows, XML and JSON constructors, ... */
			return true;
	}
	/* checks of domains are looked at where their types are */
	if (!IsA(node, CoerceToDomain) && !IsA(node, CoerceToDomainValue) &&
		AioNodeCallsUnnamedCode(node))
		return true;
	if (check_functions_in_node(node, function_runs_code, NULL))
		return true;
	return expression_tree_walker(node, expression_runs_code, context);
}

/* Likewise, as it is stored in a column of a catalog, or NULL. */
static bool
stored_runs_code(int cacheid, HeapTuple tuple, AttrNumber column)
{
	bool		isnull;
	Datum		stored = SysCacheGetAttr(cacheid, tuple, column, &isnull);

	return !isnull &&
		expression_runs_code(stringToNode(TextDatumGetCString(stored)), NULL);
}

/* Does a check of this domain, apart from those of its base type? */
static bool
domain_runs_code(Oid type)
{
	Relation	catalog = table_open(ConstraintRelationId, AccessShareLock);
	bool		result = false;
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	tuple;

	ScanKeyInit(&key, Anum_pg_constraint_contypid, BTEqualStrategyNumber,
				F_OIDEQ, ObjectIdGetDatum(type));
	scan = systable_beginscan(catalog, ConstraintTypidIndexId, true, NULL, 1, &key);
	while (!result && HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		bool		isnull;
		Datum		check = heap_getattr(tuple, Anum_pg_constraint_conbin,
										 RelationGetDescr(catalog), &isnull);

		result = !isnull &&
			expression_runs_code(stringToNode(TextDatumGetCString(check)), NULL);
	}
	systable_endscan(scan);
	table_close(catalog, AccessShareLock);
	return result;
}

/*
 * Does reading or comparing a value of this type?  Checks of a domain, of which
 * type_code.c does not know, are looked at, also those of an element.
 */
static bool
type_runs_code(Oid type)
{
	Oid			element = get_element_type(type);
	HeapTuple	tuple;
	Oid			base;

	if (OidIsValid(element))
		return type_runs_code(element);
	if (get_typtype(type) != TYPTYPE_DOMAIN)
		return AioInputRunsUserCode(type) || AioClassesRunUserCode(type);

	tuple = SearchSysCache1(TYPEOID, ObjectIdGetDatum(type));
	if (!HeapTupleIsValid(tuple))
		return true;
	base = ((Form_pg_type) GETSTRUCT(tuple))->typbasetype;
	ReleaseSysCache(tuple);
	return domain_runs_code(type) || type_runs_code(base);
}

/* Does a support function or an operator of this operator class? */
static bool
opclass_runs_code(Oid opclass)
{
	HeapTuple	tuple;
	Oid			family;

	tuple = SearchSysCache1(CLAOID, ObjectIdGetDatum(opclass));
	if (!HeapTupleIsValid(tuple))
		return true;
	family = ((Form_pg_opclass) GETSTRUCT(tuple))->opcfamily;
	ReleaseSysCache(tuple);
	return AioFamilyHas(family, is_code);
}

static bool
opclasses_run_code(int cacheid, HeapTuple tuple, AttrNumber column)
{
	oidvector  *opclasses =
		(oidvector *) DatumGetPointer(SysCacheGetAttrNotNull(cacheid, tuple, column));

	for (int i = 0; i < opclasses->dim1; i++)
	{
		if (opclass_runs_code(opclasses->values[i]))
			return true;
	}
	return false;
}

/* Does an entry of this index? */
static bool
index_runs_code(Oid indexid)
{
	HeapTuple	tuple = SearchSysCache1(INDEXRELID, ObjectIdGetDatum(indexid));
	bool		result;

	if (!HeapTupleIsValid(tuple))
		return true;
	result = stored_runs_code(INDEXRELID, tuple, Anum_pg_index_indexprs) ||
		stored_runs_code(INDEXRELID, tuple, Anum_pg_index_indpred) ||
		opclasses_run_code(INDEXRELID, tuple, Anum_pg_index_indclass);
	ReleaseSysCache(tuple);
	return result;
}

/* Does telling to which partition of this table a row belongs? */
static bool
partition_key_runs_code(Oid relid)
{
	HeapTuple	tuple = SearchSysCache1(PARTRELID, ObjectIdGetDatum(relid));
	bool		result;

	if (!HeapTupleIsValid(tuple))
		return true;
	result = stored_runs_code(PARTRELID, tuple, Anum_pg_partitioned_table_partexprs) ||
		opclasses_run_code(PARTRELID, tuple, Anum_pg_partitioned_table_partclass);
	ReleaseSysCache(tuple);
	return result;
}

/* Are conditions of this trigger evaluated in a worker? */
static bool
may_fire(const Trigger *trigger)
{
	return TRIGGER_FOR_ROW(trigger->tgtype) && trigger->tgqual != NULL &&
		(trigger->tgenabled == TRIGGER_FIRES_ALWAYS ||
		 trigger->tgenabled == TRIGGER_FIRES_ON_REPLICA);
}

/* the rest may have the relation cache entry made anew */
typedef struct Expressions
{
	List	   *late;
	List	   *defaults;
	List	   *columns;		/* theirs */
	List	   *types;			/* of all columns */
} Expressions;

static void
collect_expressions(Relation rel, Expressions *found)
{
	TupleDesc	desc = RelationGetDescr(rel);
	const TupleConstr *constr = desc->constr;

	for (int i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute column = TupleDescAttr(desc, i);
		Node	   *node;

		if (column->attisdropped)
			continue;
		found->types = list_append_unique_oid(found->types, column->atttypid);

		/* a domain has one for columns without their own */
		if (!column->atthasdef && get_typtype(column->atttypid) == TYPTYPE_DOMAIN &&
			(node = get_typdefault(column->atttypid)) != NULL)
		{
			found->defaults = lappend(found->defaults, node);
			found->columns = lappend_int(found->columns, column->attnum);
		}
	}
	for (int i = 0; constr != NULL && i < constr->num_defval; i++)
	{
		const AttrDefault *value = &constr->defval[i];
		Node	   *node = stringToNode(value->adbin);

		if (TupleDescAttr(desc, value->adnum - 1)->attgenerated)
			found->late = lappend(found->late, node);
		else
		{
			found->defaults = lappend(found->defaults, node);
			found->columns = lappend_int(found->columns, value->adnum);
		}
	}
	for (int i = 0; constr != NULL && i < constr->num_check; i++)
		found->late = lappend(found->late, stringToNode(constr->check[i].ccbin));
	for (int i = 0; rel->trigdesc != NULL && i < rel->trigdesc->numtriggers; i++)
	{
		if (may_fire(&rel->trigdesc->triggers[i]))
			found->late = lappend(found->late, stringToNode(rel->trigdesc->triggers[i].tgqual));
	}
}

static AioRowCode
find_code(Relation rel, const Expressions *found)
{
	foreach_oid(type, found->types)
	{
		if (type_runs_code(type))
			return AIO_ROW_RUNS_EARLY;
	}
	if (rel->rd_rel->relkind == RELKIND_PARTITIONED_TABLE &&
		partition_key_runs_code(RelationGetRelid(rel)))
		return AIO_ROW_RUNS_EARLY;
	if (expression_runs_code((Node *) found->late, NULL))
		return AIO_ROW_RUNS_LATE;
	foreach_oid(index, RelationGetIndexList(rel))
	{
		if (index_runs_code(index))
			return AIO_ROW_RUNS_LATE;
	}
	if (rel->rd_rel->relispartition)
	{
		foreach_oid(ancestor, get_partition_ancestors(RelationGetRelid(rel)))
		{
			if (partition_key_runs_code(ancestor))
				return AIO_ROW_RUNS_LATE;
		}
	}
	return AIO_ROW_RUNS_NOTHING;
}

static TableCode *
find_out(Relation rel)
{
	Oid			relid = RelationGetRelid(rel);
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext,
												  "what a row runs",
												  ALLOCSET_SMALL_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	Bitmapset  *defaults = NULL;
	Expressions found = {0};
	AioRowCode	code;
	ListCell   *node,
			   *column;
	TableCode  *table;

	if (tables == NULL || stale)
		init_tables();
	asked_about = relid;
	collect_expressions(rel, &found);
	code = find_code(rel, &found);
	forboth(node, found.defaults, column, found.columns)
	{
		if (expression_runs_code(lfirst(node), NULL))
			defaults = bms_add_member(defaults, lfirst_int(column));
	}
	asked_about = InvalidOid;

	MemoryContextSwitchTo(code_context);
	defaults = bms_copy(defaults);
	table = hash_search(tables, &relid, HASH_ENTER, NULL);
	table->code = code;
	table->defaults = defaults;
	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);
	return table;
}

/*
 * When does applying a row of this table run code?  Looks up catalogs, and so
 * may raise.
 */
AioRowCode
AioApplyRowCode(Relation rel)
{
	Oid			relid = RelationGetRelid(rel);
	TableCode  *table = last_table;
	int			column = -1;

	if (unlikely(tables == NULL || stale || table == NULL || table->relid != relid))
	{
#ifdef USE_ASSERT_CHECKING
		long		nlocks = hash_get_num_entries(GetLockMethodLocalHash());
#endif

		table = tables == NULL || stale ? NULL :
			hash_search(tables, &relid, HASH_FIND, NULL);
		if (table == NULL)
			table = find_out(rel);
		last_table = table;

		/*
		 * INVARIANT-102: nothing is locked that upstream would not.  (The
		 * statement may have ended before a lock on a catalog.)
		 */
		Assert(hash_get_num_entries(GetLockMethodLocalHash()) <= nlocks);
	}
	while ((column = bms_next_member(table->defaults, column)) >= 0)
	{
		if (AioAppliedColumnIsMissing(relid, column))
			return AIO_ROW_RUNS_EARLY;
	}
	return table->code;
}
