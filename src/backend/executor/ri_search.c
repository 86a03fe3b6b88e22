/*-------------------------------------------------------------------------
 *
 * ri_search.c
 *	  Where the triggers of a foreign key will search for rows.
 *
 * The server searches by queries whose plans are not known here.  They are
 * expected to scan the index that has most of the key's columns in front, of
 * the table or of the partition to which the rows belong.  If there is no such
 * index, or if the rows may be in any of many partitions, nothing is looked up.
 * A check without a query (ri_check.c) scans the same index.  Logical
 * replication says which index it scans (apply_key.c).
 *
 * Relations are opened under locks for which nobody has to wait, and which are
 * given back at once.  Those of a target are open while probes run; so VACUUM
 * and DDL do not have to wait for us.
 *
 * Tests: src/test/aio/ri.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/stratnum.h"
#include "access/relation.h"
#include "aio/executor_partition.h"
#include "aio/index_policy.h"
#include "catalog/pg_am_d.h"
#include "catalog/pg_index.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_partitioned_table.h"
#include "catalog/pg_proc_d.h"
#include "common/hashfn.h"
#include "parser/parse_coerce.h"
#include "replication/logicalrelation.h"
#include "ri.h"
#include "utils/datum.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/partcache.h"
#include "utils/rel.h"
#include "utils/syscache.h"

/* partitions of a table that are searched if it is not known which is meant */
#define PARTITIONS_MAX	16

/* keys that are remembered of a search, a power of 2 */
#define SEEN_KEYS		1024

/*
 * The search for the row of the referenced table, if of_parent, that rows of
 * rel refer to; otherwise for rows of the referencing table that refer to those
 * of rel.  Allocated in the current memory context.
 */
AioRiSearch *
AioRiMakeSearch(const AioRiConstraint *constraint, bool of_parent, Relation rel)
{
	AioRiSearch *search = palloc0(sizeof(AioRiSearch));

	search->table = of_parent ? constraint->pk_relid : constraint->fk_relid;
	search->partitioned =
		get_rel_relkind(search->table) == RELKIND_PARTITIONED_TABLE;
	search->nkeys = constraint->nkeys;
	for (int i = 0; i < constraint->nkeys; i++)
	{
		AttrNumber	pk_attnum = constraint->pk_attnums[i];
		AttrNumber	fk_attnum = constraint->fk_attnums[i];
		Oid			operator = constraint->pf_eq_oprs[i];

		search->attnums[i] = of_parent ? pk_attnum : fk_attnum;
		search->row_attnums[i] = of_parent ? fk_attnum : pk_attnum;
		search->operators[i] = of_parent ? operator : get_commutator(operator);
		search->row_types[i] = TupleDescAttr(RelationGetDescr(rel),
											 search->row_attnums[i] - 1)->atttypid;
	}
	return search;
}

/* The i-th column of the key in the table that is searched, or a partition. */
static AttrNumber
column_in(const AioRiSearch *search, Oid relid, int i)
{
	char	   *name;

	if (relid == search->table)
		return search->attnums[i];


	/* it may be altered meanwhile, if its rows are not changed yet */
	name = get_attname(search->table, search->attnums[i], true);
	return name == NULL ? InvalidAttrNumber : get_attnum(relid, name);
}

/*
 * Can this column of the index be searched for the i-th column of the key?
 * Not if that depends on a setting, as comparing dates with times does: a
 * trigger may change it between two rows, and what was found, and is locked,
 * would be another row then.
 */
static bool
set_key(const AioRiSearch *search, Relation table, Relation index, int column,
		int i, ScanKey key)
{
	Oid			operator = search->operators[i];
	Oid			collation = index->rd_indcollation[column];
	int			attno = index->rd_index->indkey.values[column] - 1;
	int			strategy;
	Oid			lefttype;
	Oid			righttype;

	if (!OidIsValid(operator) ||
		!op_in_opfamily(operator, index->rd_opfamily[column]))
		return false;
	get_op_opfamily_properties(operator, index->rd_opfamily[column], false,
							   &strategy, &lefttype, &righttype);
	if (strategy != (index->rd_rel->relam == BTREE_AM_OID ?
					 BTEqualStrategyNumber : HTEqualStrategyNumber) ||
		collation != TupleDescAttr(RelationGetDescr(table), attno)->attcollation ||
		!IsBinaryCoercible(search->row_types[i], righttype) ||
		func_volatile(get_opcode(operator)) != PROVOLATILE_IMMUTABLE ||
		!AioFunctionIsTrusted(get_opcode(operator)) ||
		AioComparingRunsUserCode(search->row_types[i]))
		return false;
	ScanKeyEntryInitialize(key, 0, column + 1, strategy, righttype, collation,
						   get_opcode(operator), (Datum) 0);
	return true;
}

/*
 * Set the keys of a scan of this index.  Returns how many there are: so many of
 * its first columns are the key's.
 */
static int
set_keys(const AioRiSearch *search, Relation table, Relation index,
		 AioRiTarget *target)
{
	int			n = 0;

	if ((index->rd_rel->relam != BTREE_AM_OID &&
		 index->rd_rel->relam != HASH_AM_OID) ||
		!index->rd_index->indisvalid || index->rd_index->indcheckxmin ||
		!heap_attisnull(index->rd_indextuple, Anum_pg_index_indpred, NULL))
		return 0;
	target->lookup.keys = palloc_array(ScanKeyData, search->nkeys);
	target->key_of = palloc_array(int, search->nkeys);
	while (n < search->nkeys &&
		   n < IndexRelationGetNumberOfKeyAttributes(index))
	{
		AttrNumber	attnum = index->rd_index->indkey.values[n];
		int			i = 0;

		if (!AttributeNumberIsValid(attnum))
			break;
		while (i < search->nkeys &&
			   column_in(search, RelationGetRelid(table), i) != attnum)
			i++;
		if (i == search->nkeys ||
			!set_key(search, table, index, n, i, &target->lookup.keys[n]))
			break;
		target->key_of[n++] = i;
	}
	return n;
}

/* Indexes of this table, one of which is going to be scanned. */
static List *
indexes_of(const AioRiSearch *search, Relation table)
{
	if (OidIsValid(search->index))
		return list_make1_oid(search->index);
	if (search->by_identity)
		return list_make1_oid(GetRelationIdentityOrPK(table));
	return RelationGetIndexList(table);
}

/*
 * Find the index of this table that is going to be scanned.  Of those that have
 * as many of the columns, a unique one leads to the row.  The order of the list
 * does not count: REINDEX CONCURRENTLY moves an index behind the others.
 */
static void
choose_index(AioRiSearch *search, Relation table, AioRiTarget *target)
{
	bool		target_is_unique = false;

	foreach_oid(indexid, indexes_of(search, table))
	{
		AioRiTarget candidate = {.table = target->table,.index = indexid};
		Relation	index;
		bool		is_unique;

		if (!OidIsValid(indexid))
			continue;
		index = AioOpenIfFree(indexid);
		if (index == NULL)
		{
			search->incomplete = true;
			continue;
		}
		candidate.lookup.index = index;
		candidate.lookup.heap = table;
		candidate.lookup.ops = AioLookupAm(index, table);
		if (candidate.lookup.ops != NULL)
			candidate.lookup.nkeys = set_keys(search, table, index, &candidate);
		is_unique = index->rd_index->indisunique &&
			candidate.lookup.nkeys == IndexRelationGetNumberOfKeyAttributes(index);
		if ((candidate.lookup.nkeys > target->lookup.nkeys ||
			 (candidate.lookup.nkeys == target->lookup.nkeys &&
			  is_unique && !target_is_unique)) &&
			AioMayProbe(&candidate.lookup))
		{
			*target = candidate;
			target_is_unique = is_unique;
		}
		relation_close(index, AccessShareLock);
	}
}

/*
 * What is looked up in this table, or in this partition of it.  Allocated in
 * the context of the search.
 */
AioRiTarget *
AioRiGetTarget(AioRiSearch *search, Oid relid)
{
	AioRiTarget *target;
	Relation	table;
	MemoryContext old;

	foreach_ptr(AioRiTarget, known, search->targets)
	{
		if (known->table == relid)
			return known;
	}
	old = MemoryContextSwitchTo(GetMemoryChunkContext(search));
	target = palloc0(sizeof(AioRiTarget));
	target->table = relid;
	table = AioOpenIfFree(relid);
	if (table != NULL)
	{
		if (RELKIND_HAS_TABLE_AM(table->rd_rel->relkind))
			choose_index(search, table, target);
		relation_close(table, AccessShareLock);
	}
	else
		search->incomplete = true;
	target->lookup.direction = ForwardScanDirection;
	search->targets = lappend(search->targets, target);
	MemoryContextSwitchTo(old);
	return target;
}

/*
 * The partition key of a table; NULL if it has expressions.  To load these is
 * to fold their constants, which calls functions of users, as whoever the user
 * is now: INVARIANT-101.
 */
static PartitionKey
key_of_columns(Relation rel)
{
	HeapTuple	tuple;
	bool		plain;

	if (rel->rd_partkey != NULL)
		return rel->rd_partkey;
	tuple = SearchSysCache1(PARTRELID, ObjectIdGetDatum(RelationGetRelid(rel)));
	plain = HeapTupleIsValid(tuple) &&
		heap_attisnull(tuple, Anum_pg_partitioned_table_partexprs, NULL);
	if (HeapTupleIsValid(tuple))
		ReleaseSysCache(tuple);
	return plain ? RelationGetPartitionKey(rel) : NULL;
}

/*
 * The partition that has the row's key, if the partition key is a part of it.
 * Returns InvalidOid if that is not so.
 */
static Oid
find_partition(const AioRiSearch *search, Relation rel, TupleTableSlot *row)
{
	PartitionKey key = key_of_columns(rel);
	Datum		values[PARTITION_MAX_KEYS];
	bool		isnull[PARTITION_MAX_KEYS];

	if (key == NULL)
		return InvalidOid;
	for (int n = 0; n < key->partnatts; n++)
	{
		int			i = 0;

		while (i < search->nkeys &&
			   column_in(search, RelationGetRelid(rel), i) != key->partattrs[n])
			i++;
		if (i == search->nkeys || search->row_types[i] != key->parttypid[n] ||
			AioFunctionIsUserCode(key->partsupfunc[n].fn_oid) ||
			AioComparingRunsUserCode(key->parttypid[n]))
			return InvalidOid;
		values[n] = slot_getattr(row, search->row_attnums[i], &isnull[n]);
	}
	return AioFindPartition(rel, values, isnull);
}

/* All leaf partitions, unless there are too many. */
static List *
leaves_of(AioRiSearch *search)
{
	MemoryContext old;

	if (search->leaves_known)
		return search->leaves;
	old = MemoryContextSwitchTo(GetMemoryChunkContext(search));
	foreach_oid(relid, find_all_inheritors(search->table, NoLock, NULL))
	{
		if (RELKIND_HAS_TABLE_AM(get_rel_relkind(relid)))
			search->leaves = lappend_oid(search->leaves, relid);
	}
	if (list_length(search->leaves) > PARTITIONS_MAX)
		search->leaves = NIL;
	search->leaves_known = true;
	MemoryContextSwitchTo(old);
	return search->leaves;
}

/*
 * What is going to be looked up for a row: a list of AioRiTarget, allocated in
 * the current memory context.  What is found out is kept in that of the search.
 */
List *
AioRiFindTargets(AioRiSearch *search, TupleTableSlot *row)
{
	Oid			relid = search->table;
	bool		is_leaf = !search->partitioned;
	List	   *relids;
	List	   *result = NIL;

	while (!is_leaf && OidIsValid(relid))
	{
		Relation	rel = AioOpenIfFree(relid);

		if (rel == NULL)
			return NIL;
		is_leaf = rel->rd_rel->relkind != RELKIND_PARTITIONED_TABLE;
		if (!is_leaf)
			relid = find_partition(search, rel, row);
		relation_close(rel, AccessShareLock);
	}
	relids = OidIsValid(relid) ? list_make1_oid(relid) : leaves_of(search);
	foreach_oid(one, relids)
	{
		AioRiTarget *target = AioRiGetTarget(search, one);

		if (target->lookup.nkeys > 0)
			result = lappend(result, target);
	}
	return result;
}

/* Is this a relation that is searched, as far as is known? */
bool
AioRiSearchesIn(const AioRiSearch *search, Oid relid)
{
	if (relid == search->table || search->partitioned || search->targets == NIL)
		return true;
	foreach_ptr(AioRiTarget, target, search->targets)
	{
		if (target->index == relid)
			return true;
	}
	return false;
}

/*
 * Has the key of a row been asked for before?  If a part of it is null, it is
 * not searched for, and the others are not looked at, which may be damaged.
 */
bool
AioRiIsKnown(AioRiSearch *search, TupleTableSlot *row)
{
	uint32		hash = 1;
	uint32	   *seen;

	for (int i = 0; i < search->nkeys; i++)
	{
		if (slot_attisnull(row, search->row_attnums[i]))
			return true;
	}
	for (int i = 0; i < search->nkeys; i++)
	{
		CompactAttribute *type =
			TupleDescCompactAttr(row->tts_tupleDescriptor,
								 search->row_attnums[i] - 1);
		bool		isnull;
		Datum		value = slot_getattr(row, search->row_attnums[i], &isnull);

		hash = hash_combine(hash, datum_image_hash(value, type->attbyval,
												   type->attlen));
	}
	if (search->seen == NULL)
		search->seen = MemoryContextAllocZero(GetMemoryChunkContext(search),
											  SEEN_KEYS * sizeof(uint32));
	seen = &search->seen[hash % SEEN_KEYS];
	if (*seen == hash)
		return true;
	*seen = hash;
	return false;
}

/* Keys that have been asked for may be asked for again. */
void
AioRiForgetKeys(AioRiSearch *search)
{
	if (search->seen != NULL)
		MemSet(search->seen, 0, SEEN_KEYS * sizeof(uint32));
}

/*
 * Set the keys of a scan to those of a row.  With 'copy', values are copied to
 * the current memory context; otherwise they may be the row's own.  Returns
 * false if one of them is null, or stored out of line.
 */
bool
AioRiSetKeys(const AioRiSearch *search, const AioRiTarget *target,
			 TupleTableSlot *row, bool copy, ScanKey keys)
{
	const AioLookupTarget *lookup = &target->lookup;

	memcpy(keys, lookup->keys, lookup->nkeys * sizeof(ScanKeyData));
	for (int n = 0; n < lookup->nkeys; n++)
	{
		AttrNumber	attnum = search->row_attnums[target->key_of[n]];
		CompactAttribute *type =
			TupleDescCompactAttr(row->tts_tupleDescriptor, attnum - 1);
		bool		isnull;
		Datum		value = slot_getattr(row, attnum, &isnull);

		if (isnull ||
			(type->attlen == -1 && VARATT_IS_EXTERNAL(DatumGetPointer(value))))
			return false;
		if (type->attlen == -1)
			value = PointerGetDatum(copy ? PG_DETOAST_DATUM_COPY(value) :
									PG_DETOAST_DATUM(value));
		else if (copy)
			value = datumCopy(value, type->attbyval, type->attlen);
		keys[n].sk_argument = value;
	}
	return true;
}

/* Open the relations of a target, if nobody is in the way. */
bool
AioRiOpenTarget(AioRiTarget *target)
{
	target->lookup.heap = AioOpenIfFree(target->table);
	if (target->lookup.heap == NULL)
		return false;
	target->lookup.index = AioOpenIfFree(target->index);
	if (target->lookup.index == NULL)
	{
		relation_close(target->lookup.heap, AccessShareLock);
		return false;
	}
	return true;
}

void
AioRiCloseTarget(AioRiTarget *target)
{
	relation_close(target->lookup.index, AccessShareLock);
	relation_close(target->lookup.heap, AccessShareLock);
}
