/*-------------------------------------------------------------------------
 *
 * unique_recheck.c
 *	  Unique keys and exclusion constraints that are checked later: what a check
 *	  will read.
 *
 * A row whose keys may conflict with those of others is checked by the trigger
 * unique_key_recheck() when its statement, or its transaction, ends.  The check
 * reads the row, searches its keys in the index of the constraint, and reads
 * the rows that it finds there.  Keys are formed here as the trigger will form
 * them, and searched for with the operators that it will use.
 *
 * Expressions, which an exclusion constraint may have, have been evaluated for
 * the row when it was inserted, so evaluating them raises nothing.  Functions
 * of users are not called, neither by that nor to fold constants: an index
 * whose expressions or predicate have any is left alone before anything is made
 * of these.
 *
 * Nothing is kept of an index but copies.  It is open only while probes run, if
 * nobody is in the way.  It cannot be altered while checks are queued; one that
 * has been replaced is not found any more.
 *
 * Tests: src/test/aio/ri/t/003_deferred_keys.pl.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/relation.h"
#include "catalog/index.h"
#include "catalog/pg_index.h"
#include "common/hashfn.h"
#include "executor/executor.h"
#include "guard.h"
#include "nodes/nodeFuncs.h"
#include "ri.h"
#include "utils/builtins.h"
#include "utils/datum.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/syscache.h"

/* keys that are remembered, a power of 2 */
#define SEEN_KEYS	1024

/* The type of a key. */
typedef struct KeyType
{
	int16		length;
	bool		by_value;
} KeyType;

struct AioRecheck
{
	AioRiTarget target;
	IndexInfo  *info;
	EState	   *estate;			/* evaluates expressions */
	KeyType		types[INDEX_MAX_KEYS];
	uint32		seen[SEEN_KEYS];	/* hashes of keys that have been probed */
};

/* Set the types of an index's keys, which are not those that it stores. */
static void
set_types(AioRecheck *recheck, Relation rel)
{
	const IndexInfo *info = recheck->info;
	ListCell   *expression = list_head(info->ii_Expressions);

	for (int i = 0; i < info->ii_NumIndexKeyAttrs; i++)
	{
		AttrNumber	attnum = info->ii_IndexAttrNumbers[i];
		Oid			type;

		if (attnum != 0)
			type = TupleDescAttr(RelationGetDescr(rel), attnum - 1)->atttypid;
		else
		{
			type = exprType(lfirst(expression));
			expression = lnext(info->ii_Expressions, expression);
		}
		get_typlenbyval(type, &recheck->types[i].length,
						&recheck->types[i].by_value);
	}
}

/* Set the keys of a scan, but for their values. */
static void
set_keys(AioRecheck *recheck, Relation index)
{
	AioLookupTarget *lookup = &recheck->target.lookup;
	IndexInfo  *info = recheck->info;
	bool		exclusion = info->ii_ExclusionOps != NULL;

	if (!exclusion)
		BuildSpeculativeIndexInfo(index, info);
	lookup->nkeys = info->ii_NumIndexKeyAttrs;
	lookup->keys = palloc0_array(ScanKeyData, lookup->nkeys);
	for (int i = 0; i < lookup->nkeys; i++)
		ScanKeyEntryInitialize(&lookup->keys[i], 0, i + 1,
							   exclusion ? info->ii_ExclusionStrats[i] : info->ii_UniqueStrats[i],
							   InvalidOid, index->rd_indcollation[i],
							   exclusion ? info->ii_ExclusionProcs[i] : info->ii_UniqueProcs[i],
							   (Datum) 0);
}

/* AioCompileAgain(): the trigger will ask for privileges. */
static void
compile(void *arg)
{
	AioRecheck *recheck = arg;

	recheck->info->ii_ExpressionsState =
		ExecPrepareExprList(recheck->info->ii_Expressions, recheck->estate);
}

/*
 * INVARIANT-101: could anything that is made of an index's expressions
 * and its predicate, as they are in the catalog, call functions of users?
 */
static bool
runs_users_code(Relation index)
{
	static const AttrNumber columns[] = {Anum_pg_index_indexprs, Anum_pg_index_indpred};
	HeapTuple	tuple = SearchSysCache1(INDEXRELID,
										ObjectIdGetDatum(RelationGetRelid(index)));
	bool		result = !HeapTupleIsValid(tuple);

	for (int i = 0; i < lengthof(columns) && !result; i++)
	{
		bool		isnull;
		Datum		tree = SysCacheGetAttr(INDEXRELID, tuple, columns[i], &isnull);

		result = !isnull &&
			AioExpressionHasSideEffects(stringToNode(TextDatumGetCString(tree)), 0);
	}
	if (HeapTupleIsValid(tuple))
		ReleaseSysCache(tuple);
	return result;
}

/*
 * What checks of this table's rows in one of its indexes read; NULL if that
 * cannot be looked up.  Allocated in the current memory context.
 */
AioRecheck *
AioMakeRecheck(Relation rel, Oid indexid)
{
	Relation	index = AioOpenIfFree(indexid);
	AioRiTarget target = {.table = RelationGetRelid(rel),.index = indexid};
	AioRecheck *recheck = NULL;

	if (index == NULL)
		return NULL;
	target.lookup.index = index;
	target.lookup.heap = rel;
	target.lookup.direction = ForwardScanDirection;
	target.lookup.ops = AioLookupAm(index, rel);
	if (target.lookup.ops != NULL && !runs_users_code(index))
	{
		recheck = palloc0(sizeof(AioRecheck));
		recheck->target = target;
		recheck->info = BuildIndexInfo(index);
		recheck->estate = CreateExecutorState();
		set_types(recheck, rel);
		set_keys(recheck, index);
		if (!AioMayProbe(&recheck->target.lookup) ||
			!AioCompileAgain(compile, recheck))
		{
			FreeExecutorState(recheck->estate);
			recheck = NULL;
		}
	}
	relation_close(index, AccessShareLock);
	return recheck;
}

/*
 * The keys of a row, in the current memory context.  NULL if one of them is
 * null, which most constraints have nothing against, or stored out of line.
 */
static ScanKey
form_keys(AioRecheck *recheck, TupleTableSlot *row)
{
	const AioLookupTarget *lookup = &recheck->target.lookup;
	ExprContext *econtext = GetPerTupleExprContext(recheck->estate);
	ScanKey		keys = palloc_array(ScanKeyData, lookup->nkeys);
	Datum		values[INDEX_MAX_KEYS];
	bool		isnull[INDEX_MAX_KEYS];

	ResetExprContext(econtext);
	econtext->ecxt_scantuple = row;
	FormIndexDatum(recheck->info, row, recheck->estate, values, isnull);
	memcpy(keys, lookup->keys, lookup->nkeys * sizeof(ScanKeyData));
	for (int i = 0; i < lookup->nkeys; i++)
	{
		const KeyType *type = &recheck->types[i];

		if (isnull[i])
			return NULL;
		if (type->length != -1)
			keys[i].sk_argument = datumCopy(values[i], type->by_value, type->length);
		else if (VARATT_IS_EXTERNAL(DatumGetPointer(values[i])))
			return NULL;
		else
			keys[i].sk_argument = PointerGetDatum(PG_DETOAST_DATUM_COPY(values[i]));
	}
	return keys;
}

/* Has a key been asked for before? */
static bool
is_known(AioRecheck *recheck, const ScanKeyData *keys)
{
	uint32		hash = 1;
	uint32	   *seen;

	for (int i = 0; i < recheck->target.lookup.nkeys; i++)
		hash = hash_combine(hash,
							datum_image_hash(keys[i].sk_argument,
											 recheck->types[i].by_value,
											 recheck->types[i].length));
	seen = &recheck->seen[hash % SEEN_KEYS];
	if (*seen == hash)
		return true;
	*seen = hash;
	return false;
}

/* Is this the index in which rows are checked? */
bool
AioRecheckReads(const AioRecheck *recheck, Oid relid)
{
	return recheck->target.index == relid;
}

/*
 * Add the keys of a row that will be checked, as AioRiAddProbes() does.
 */
bool
AioAddRecheckProbe(AioRiProbes *probes, AioRecheck *recheck,
				   TupleTableSlot *row, int ahead, AioRiSteps *steps,
				   bool again, bool near)
{
	bool	   *begun = &steps->begun[0];
	ScanKey		keys;

	if (again && !*begun)
		return false;
	keys = form_keys(recheck, row);
	if (keys == NULL || (!again && is_known(recheck, keys)) ||
		!AioRiOpenForProbes(probes, &recheck->target))
		return false;
	probes->probes = AioAddProbe(probes->probes, &recheck->target.lookup, keys,
								 ahead, near && !again ? NULL : begun);
	return true;
}
