/*-------------------------------------------------------------------------
 *
 * type_code.c
 *	  Which functions are user code, or else trusted, what PostgreSQL's own call
 *	  for the values of a type, and what is called of an operator family.
 *
 * Those that compare or hash arrays, records and ranges call functions of the
 * operator classes of what these consist of, and input functions those of
 * columns, elements and bounds, and constraints of domains.  No expression
 * names these.  A domain may be anybody's; a superuser can make an operator
 * class of any type that has none, be it one of PostgreSQL's own.
 *
 * Nothing is locked, no type's columns or constraints are loaded, and nothing
 * is kept between calls, except for what the type cache keeps.
 *
 * Tests: src/test/aio/lookup/t/007_when.pl, src/test/aio/sql/sql/user_code.sql.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "aio/index_policy.h"
#include "catalog/pg_aggregate.h"
#include "catalog/pg_am_d.h"
#include "catalog/pg_amop.h"
#include "catalog/pg_amproc.h"
#include "catalog/pg_language.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "nodes/nodeFuncs.h"
#include "utils/builtins.h"
#include "utils/catcache.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/syscache.h"
#include "utils/typcache.h"

/* The functions that an aggregate consists of, or NIL if there is none. */
List *
AioFunctionsOfAggregate(Oid funcid)
{
	HeapTuple	tuple = SearchSysCache1(AGGFNOID, ObjectIdGetDatum(funcid));
	Form_pg_aggregate aggregate;
	List	   *result;

	if (!HeapTupleIsValid(tuple))
		return NIL;
	aggregate = (Form_pg_aggregate) GETSTRUCT(tuple);
	result = list_make5_oid(aggregate->aggtransfn, aggregate->aggfinalfn,
							aggregate->aggcombinefn, aggregate->aggserialfn,
							aggregate->aggdeserialfn);
	result = lappend_oid(result, aggregate->aggmtransfn);
	result = lappend_oid(result, aggregate->aggminvtransfn);
	result = lappend_oid(result, aggregate->aggmfinalfn);
	ReleaseSysCache(tuple);
	return result;
}

static bool
aggregate_is_user_code(Oid funcid)
{
	List	   *functions = AioFunctionsOfAggregate(funcid);

	foreach_oid(function, functions)
	{
		if (AioFunctionIsUserCode(function))
			return true;
	}
	return functions == NIL;
}

/*
 * Is this function, which may be InvalidOid, user code, which is neither built
 * in nor written in C?
 */
bool
AioFunctionIsUserCode(Oid funcid)
{
	HeapTuple	tuple;
	Form_pg_proc proc;
	bool		result;

	/* initdb's functions: those in SQL consist of others of their kind */
	if (funcid < FirstGenbkiObjectId)
		return false;

	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(funcid));
	if (!HeapTupleIsValid(tuple))
		return true;
	proc = (Form_pg_proc) GETSTRUCT(tuple);
	result = (proc->prolang != INTERNALlanguageId &&
			  proc->prolang != ClanguageId) ||
		proc->prosecdef ||
		!heap_attisnull(tuple, Anum_pg_proc_proconfig, NULL);
	if (proc->prokind == PROKIND_AGGREGATE)
		result = aggregate_is_user_code(funcid);
	ReleaseSysCache(tuple);
	return result;
}

/* Modules that come with PostgreSQL and have types or operator classes */
static const char *const modules[] = {
	"bloom", "btree_gin", "btree_gist", "citext", "cube", "dict_int",
	"dict_xsyn", "fuzzystrmatch", "hstore", "intarray", "isn", "ltree",
	"pg_trgm", "pgcrypto", "seg", "unaccent", "uuid-ossp"
};

/* Does this function in C belong to one of them? */
static bool
is_of_module(HeapTuple function)
{
	bool		isnull;
	Datum		value = SysCacheGetAttr(PROCOID, function, Anum_pg_proc_probin,
										&isnull);
	const char *prefix = "$libdir/";
	bool		result = false;
	char	   *library;

	if (isnull)
		return false;
	library = TextDatumGetCString(value);
	for (int i = 0; i < lengthof(modules) && !result; i++)
		result = strncmp(library, prefix, strlen(prefix)) == 0 &&
			strcmp(library + strlen(prefix), modules[i]) == 0;
	pfree(library);
	return result;
}

/*
 * May it be called in the midst of anything: where entries are collected, and
 * on the small stack of a task that may be suspended?  A library of others may
 * run queries in functions that an index calls, and have whatever it likes on
 * the stack.  The function may be InvalidOid.
 */
bool
AioFunctionIsTrusted(Oid funcid)
{
	HeapTuple	tuple;
	bool		result;

	if (funcid < FirstGenbkiObjectId)
		return true;
	if (AioFunctionIsUserCode(funcid))
		return false;
	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(funcid));
	if (!HeapTupleIsValid(tuple))
		return false;
	result = ((Form_pg_proc) GETSTRUCT(tuple))->prolang != ClanguageId ||
		is_of_module(tuple);
	ReleaseSysCache(tuple);
	return result;
}

static bool
is_not_trusted(Oid funcid)
{
	return !AioFunctionIsTrusted(funcid);
}

/*
 * Could it do anything but compute a value?  It may be InvalidOid.  Functions
 * in C are believed if they are declared IMMUTABLE.
 */
bool
AioFunctionIsAnybodys(Oid funcid)
{
	return funcid >= FirstGenbkiObjectId &&
		(func_volatile(funcid) != PROVOLATILE_IMMUTABLE ||
		 AioFunctionIsUserCode(funcid));
}

/*
 * Is 'test' true of any function of this operator family that is not built in?
 * A family is asked as a whole, although most who use it call some functions of
 * it only: which ones depends on the types of keys, of arrays and of what is
 * redundant, and each access method has its own rules.  Operators are called in
 * place of support functions, and the other way round.  A superuser can add
 * either to any family, be it one of PostgreSQL's own.
 */
bool
AioFamilyHas(Oid family, bool (*test) (Oid funcid))
{
	CatCList   *members;
	bool		result = false;

	members = SearchSysCacheList1(AMPROCNUM, ObjectIdGetDatum(family));
	for (int i = 0; i < members->n_members && !result; i++)
	{
		Oid			funcid = ((Form_pg_amproc) GETSTRUCT(&members->members[i]->tuple))->amproc;

		result = funcid >= FirstGenbkiObjectId && test(funcid);
	}
	ReleaseSysCacheList(members);
	if (result)
		return true;
	members = SearchSysCacheList1(AMOPSTRATEGY, ObjectIdGetDatum(family));
	for (int i = 0; i < members->n_members && !result; i++)
	{
		Oid			operator = ((Form_pg_amop) GETSTRUCT(&members->members[i]->tuple))->amopopr;

		result = operator >= FirstGenbkiObjectId && test(get_opcode(operator));
	}
	ReleaseSysCacheList(members);
	return result;
}

/*
 * Could this function, which is called in the midst of another one of
 * PostgreSQL's and named by nothing, do anything but compute a value?
 */
bool
AioSupportIsAnybodys(Oid funcid)
{
	return AioFunctionIsAnybodys(funcid) || !AioFunctionIsTrusted(funcid);
}

static bool
operator_is_anybodys(Oid operator)
{
	return operator >= FirstGenbkiObjectId && AioSupportIsAnybodys(get_opcode(operator));
}

/* Likewise, any function that comparing or making a range may call. */
static bool
range_is_anybodys(Oid type)
{
	Oid			subtype = get_range_subtype(type);
	const TypeCacheEntry *entry;

	if (!OidIsValid(subtype) || AioClassesRunUserCode(subtype))
		return true;
	entry = lookup_type_cache(type, TYPECACHE_RANGE_INFO);
	return entry->rngelemtype == NULL ||
		AioSupportIsAnybodys(entry->rng_cmp_proc_finfo.fn_oid) ||
		AioSupportIsAnybodys(entry->rng_canonical_finfo.fn_oid) ||
		AioSupportIsAnybodys(entry->rng_subdiff_finfo.fn_oid);
}

/*
 * Does comparing or hashing values of this type, by functions of PostgreSQL,
 * run user code?
 */
bool
AioComparingRunsUserCode(Oid type)
{
	Oid			element;

	if (type >= FirstGenbkiObjectId)
		type = getBaseType(type);
	if (type == RECORDOID || type == RECORDARRAYOID || type == ANYARRAYOID)
		return true;
	element = get_element_type(type);
	if (OidIsValid(element))
		return AioClassesRunUserCode(element);

	/* rows of some catalogs have such a type */
	if (type < FirstGenbkiObjectId)
		return get_typtype(type) == TYPTYPE_COMPOSITE;
	switch (get_typtype(type))
	{
		case TYPTYPE_BASE:
		case TYPTYPE_ENUM:
			return false;
		case TYPTYPE_RANGE:
			return range_is_anybodys(type);
		case TYPTYPE_MULTIRANGE:
			return range_is_anybodys(get_multirange_range(type));
		default:
			/* columns are not looked at, as the type would be locked */
			return true;
	}
}

/* Does comparing or hashing them by default operator classes of the type? */
bool
AioClassesRunUserCode(Oid type)
{
	const TypeCacheEntry *entry;

	type = getBaseType(type);
	if (AioComparingRunsUserCode(type))
		return true;
	entry = lookup_type_cache(type,
							  TYPECACHE_EQ_OPR | TYPECACHE_LT_OPR |
							  TYPECACHE_GT_OPR | TYPECACHE_CMP_PROC |
							  TYPECACHE_HASH_PROC |
							  TYPECACHE_HASH_EXTENDED_PROC);
	return operator_is_anybodys(entry->eq_opr) ||
		operator_is_anybodys(entry->lt_opr) ||
		operator_is_anybodys(entry->gt_opr) ||
		AioSupportIsAnybodys(entry->cmp_proc) ||
		AioSupportIsAnybodys(entry->hash_proc) ||
		AioSupportIsAnybodys(entry->hash_extended_proc);
}

/* Does making a value of a base type of its text, or of what a worker sends? */
static bool
base_input_is_anybodys(Oid type)
{
	HeapTuple	tuple = SearchSysCache1(TYPEOID, ObjectIdGetDatum(type));
	Oid			receive;
	bool		result;

	if (!HeapTupleIsValid(tuple))
		return true;
	receive = ((Form_pg_type) GETSTRUCT(tuple))->typreceive;

	/* citext's is STABLE */
	result = AioFunctionIsAnybodys(((Form_pg_type) GETSTRUCT(tuple))->typinput) ||
		(receive >= FirstGenbkiObjectId &&
		 (func_volatile(receive) == PROVOLATILE_VOLATILE ||
		  AioFunctionIsUserCode(receive)));
	ReleaseSysCache(tuple);
	return result;
}

/*
 * Likewise, a value of any type?  That of an array, a range or a composite
 * type is made of values of others, and constraints of a domain are checked.
 */
bool
AioInputRunsUserCode(Oid type)
{
	Oid			element = get_element_type(type);

	if (OidIsValid(element))
		return AioInputRunsUserCode(element);
	switch (get_typtype(type))
	{
		case TYPTYPE_BASE:
			return type >= FirstGenbkiObjectId && base_input_is_anybodys(type);
		case TYPTYPE_ENUM:
			return false;
		case TYPTYPE_MULTIRANGE:
			type = get_multirange_range(type);
			/* FALLTHROUGH */
		case TYPTYPE_RANGE:
			return type >= FirstGenbkiObjectId &&
				(range_is_anybodys(type) ||
				 AioInputRunsUserCode(get_range_subtype(type)));
		default:
			return true;
	}
}

/* Does making a row of what a foreign server sends? */
bool
AioInputOfRowRunsUserCode(const TupleDesc row)
{
	for (int i = 0; i < row->natts; i++)
	{
		if (!TupleDescAttr(row, i)->attisdropped &&
			AioInputRunsUserCode(TupleDescAttr(row, i)->atttypid))
			return true;
	}
	return false;
}

/* Or is comparing or hashing its values an error? */
static bool
has_support(Oid type, bool hashes)
{
	const TypeCacheEntry *entry =
		lookup_type_cache(type, hashes ? TYPECACHE_HASH_PROC : TYPECACHE_CMP_PROC);

	return OidIsValid(hashes ? entry->hash_proc : entry->cmp_proc);
}

/*
 * Built-in support functions for polymorphic types call those of the element
 * type, which may be anybody's, even that of a type of PostgreSQL, or none.
 */
static bool
type_is_opaque(Oid opcintype, Oid type, bool hashes)
{
	switch (opcintype)
	{
		case RECORDOID:
			return true;
		case ANYARRAYOID:
		case ANYCOMPATIBLEARRAYOID:
			return type >= FirstGenbkiObjectId || !has_support(type, hashes) ||
				AioComparingRunsUserCode(type);
		case ANYRANGEOID:
		case ANYMULTIRANGEOID:
			return type >= FirstGenbkiObjectId;
		default:
			return false;
	}
}

/*
 * The type of a key column of an index.  A GiST index keeps multiranges as
 * ranges of any type: then it is that of what is put into it.
 */
static Oid
column_type(Relation index, int column)
{
	Oid			type = TupleDescAttr(RelationGetDescr(index), column)->atttypid;
	AttrNumber	attnum = index->rd_index->indkey.values[column];
	int			nexpressions = 0;

	if (type != ANYRANGEOID)
		return type;
	if (attnum > 0)
		return get_atttype(index->rd_index->indrelid, attnum);
	for (int i = 0; i < column; i++)
		nexpressions += index->rd_index->indkey.values[i] == 0;
	return exprType(list_nth(RelationGetDummyIndexExpressions(index), nexpressions));
}

/* Is 'test' true of a function that this index calls, or is one user code? */
static bool
index_calls(Relation index, bool (*test) (Oid funcid))
{
	int			nkeys = IndexRelationGetNumberOfKeyAttributes(index);

	Assert(nkeys > 0 && nkeys <= INDEX_MAX_KEYS);
	for (int i = 0; i < nkeys; i++)
	{
		if (AioFamilyHas(index->rd_opfamily[i], test) ||
			(index->rd_rel->relam == GIN_AM_OID &&
			 AioClassesRunUserCode(column_type(index, i))) ||
			type_is_opaque(index->rd_opcintype[i], column_type(index, i),
						   index->rd_rel->relam == HASH_AM_OID))
			return true;
	}
	return false;
}

/*
 * Does putting something into this index, or searching it, run user code?  BRIN
 * calls operators, and a search for another type support functions for that.
 * GIN compares what it takes out of a value, such as elements of arrays, and by
 * the type of these if the operator class does not say how.
 */
bool
AioIndexRunsUserCode(Relation index)
{
	return index_calls(index, AioFunctionIsUserCode);
}

/* May all that it calls be called in the midst of anything? */
bool
AioIndexIsTrusted(Relation index)
{
	return !index_calls(index, is_not_trusted);
}
