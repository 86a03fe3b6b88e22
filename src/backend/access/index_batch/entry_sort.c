/*-------------------------------------------------------------------------
 *
 * entry_sort.c
 *	  Bring the entries of a backlog into the order of their index.
 *
 * A btree's order is that of its columns, by upstream's sort support with
 * abbreviated keys where the type has them, and then of the heap.  Keys that
 * are integers, or are abbreviated to such, are put into buckets first.
 * Upstream's tuplesort would need a second copy of each tuple; here the tuples
 * stay where they are, since the budget for them is tight, and can be looked at
 * in any order, which is needed to look ahead.
 *
 * GiST and SP-GiST have no order.  Where upstream can build the index from
 * sorted input, that order is taken; otherwise that of the type, if it has one.
 *
 * Tests: src/test/aio/sql, src/test/aio/index_am.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/gist.h"
#include "built_in_ams.h"
#include "catalog/pg_am.h"
#include "catalog/pg_collation.h"
#include "catalog/pg_type.h"
#include "commands/defrem.h"
#include "miscadmin.h"
#include "port/pg_bitutils.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/sortsupport.h"
#include "utils/typcache.h"

/* buckets into which keys are put before they are sorted; a power of two */
#define BUCKETS_MAX 2048

/* as many entries as make that worth while */
#define ENTRIES_FOR_BUCKETS (4 * BUCKETS_MAX)

/* the order of an index */
typedef struct EntryOrder
{
	TupleDesc	desc;
	bool		compresses;		/* the first column is compressed first */
	FmgrInfo	compress;		/* by this function of GiST's */
	int			nkeys;
	bool		abbreviated;	/* AioEntry.key is */
	bool		unique;
	bool		nulls_equal;
	SortSupportData keys[INDEX_MAX_KEYS];
} EntryOrder;

static inline bool
first_is_null(const IndexTupleData *tuple)
{
	return IndexTupleHasNulls(tuple) &&
		att_isnull(0, (const bits8 *) tuple + sizeof(IndexTupleData));
}

static void
prepare_order(EntryOrder *order, Relation index, bool unique, bool abbreviate)
{
	memset(order, 0, sizeof(EntryOrder));
	order->desc = RelationGetDescr(index);
	order->nkeys = IndexRelationGetNumberOfKeyAttributes(index);
	order->unique = unique;
	order->nulls_equal = index->rd_index->indnullsnotdistinct;
	Assert(order->nkeys > 0 && order->nkeys <= INDEX_MAX_KEYS);
	for (int i = 0; i < order->nkeys; i++)
	{
		SortSupport key = &order->keys[i];
		int16		option = index->rd_indoption[i];

		key->ssup_cxt = CurrentMemoryContext;
		key->ssup_collation = index->rd_indcollation[i];
		key->ssup_nulls_first = (option & INDOPTION_NULLS_FIRST) != 0;
		key->ssup_attno = i + 1;
		key->abbreviate = abbreviate && i == 0;
		PrepareSortSupportFromIndexRel(index, (option & INDOPTION_DESC) != 0, key);
	}
	order->abbreviated = order->keys[0].abbrev_converter != NULL;
}

/* Begin with an order of the first column of what a batch consists of. */
static SortSupport
begin_neighbours(EntryOrder *order, const AioIndexBatch *batch)
{
	SortSupport key = &order->keys[0];

	memset(order, 0, sizeof(EntryOrder));
	order->desc = batch->desc;
	key->ssup_cxt = CurrentMemoryContext;
	key->ssup_attno = 1;
	key->abbreviate = true;
	return key;
}

/*
 * The order in which upstream builds a GiST index, from what it consists of.
 * Keys of polygons and the like are boxes, as those of points are, and may have
 * the order of these.  Returns false if there is none.
 */
static bool
prepare_gist(EntryOrder *order, const AioIndexBatch *batch)
{
	Relation	index = batch->index;
	SortSupport key = begin_neighbours(order, batch);
	Oid			sortsupport = index_getprocid(index, 1, GIST_SORTSUPPORT_PROC);

	if (!OidIsValid(sortsupport))
	{
		if (TupleDescAttr(batch->desc, 0)->atttypid != BOXOID)
			return false;
		sortsupport = F_GIST_POINT_SORTSUPPORT;
	}
	key->ssup_collation = index->rd_indcollation[0];
	OidFunctionCall1(sortsupport, PointerGetDatum(key));
	order->abbreviated = key->abbrev_converter != NULL;
	return true;
}

/*
 * The order in which upstream builds a GiST index of this operator class, from
 * values that are not compressed yet.  Returns false if there is none, or none
 * with abbreviated keys: to sort by others, ranges for example, takes longer
 * than it saves.
 */
static bool
prepare_opclass(EntryOrder *order, Oid opfamily, Oid opcintype)
{
	SortSupport key = &order->keys[0];
	Oid			sortsupport = get_opfamily_proc(opfamily, opcintype, opcintype,
												GIST_SORTSUPPORT_PROC);
	Oid			compress = get_opfamily_proc(opfamily, opcintype, opcintype,
											 GIST_COMPRESS_PROC);

	if (!OidIsValid(sortsupport) || sortsupport >= FirstGenbkiObjectId)
		return false;
	OidFunctionCall1(sortsupport, PointerGetDatum(key));
	order->abbreviated = key->abbrev_converter != NULL;
	order->compresses = OidIsValid(compress);
	if (order->compresses)
		fmgr_info(compress, &order->compress);
	return order->abbreviated;
}

/* That of the type of the first column, or of its points.  Likewise. */
static bool
prepare_type(EntryOrder *order, const AioIndexBatch *batch)
{
	SortSupport key = begin_neighbours(order, batch);
	Oid			type = getBaseType(TupleDescAttr(batch->desc, 0)->atttypid);
	Oid			less_than = lookup_type_cache(type, TYPECACHE_LT_OPR)->lt_opr;
	Oid			opclass;

	if (OidIsValid(less_than))
	{
		/* a radix tree goes by bytes */
		if (OidIsValid(batch->index->rd_indcollation[0]))
			key->ssup_collation = C_COLLATION_OID;
		PrepareSortSupportFromOrderingOp(less_than, key);
		order->abbreviated = key->abbrev_converter != NULL;
		return order->abbreviated;
	}
	opclass = GetDefaultOpClass(type, GIST_AM_OID);
	return OidIsValid(opclass) &&
		prepare_opclass(order, get_opclass_family(opclass),
						get_opclass_input_type(opclass));
}

static Datum
compress_key(Datum value, EntryOrder *order)
{
	GISTENTRY	entry;

	Assert(order->compresses && OidIsValid(order->compress.fn_oid));
	gistentryinit(entry, value, NULL, NULL, 0, true);
	return ((GISTENTRY *)
			DatumGetPointer(FunctionCall1(&order->compress, PointerGetDatum(&entry))))->key;
}

/*
 * Compare all columns of the key that AioEntry.key does not tell of.  Sets
 * *enforced to whether keys that are equal would be duplicates.
 */
static int
compare_columns(const AioEntry *a, const AioEntry *b, EntryOrder *order,
				bool *enforced)
{
	Assert(!order->abbreviated || order->keys[0].abbrev_full_comparator != NULL);
	*enforced = order->unique &&
		(order->nulls_equal || !first_is_null(a->tuple));
	for (int i = order->abbreviated ? 0 : 1; i < order->nkeys; i++)
	{
		bool		anull;
		bool		bnull;
		Datum		aval = index_getattr(a->tuple, i + 1, order->desc, &anull);
		Datum		bval = index_getattr(b->tuple, i + 1, order->desc, &bnull);
		int			result;

		result = i == 0 && order->abbreviated ?
			ApplySortAbbrevFullComparator(aval, anull, bval, bnull, &order->keys[i]) :
			ApplySortComparator(aval, anull, bval, bnull, &order->keys[i]);
		if (result != 0)
			return result;
		if (anull && !order->nulls_equal)
			*enforced = false;
	}
	return 0;
}

/*
 * Compare by all that AioEntry.key does not tell.  Of equal keys that are
 * enforced, the later row's is the one to be found a duplicate; all others are
 * in the order of the heap.
 */
static pg_noinline int
compare_rest(const AioEntry *a, const AioEntry *b, EntryOrder *order)
{
	bool		enforced;
	int			result = compare_columns(a, b, order, &enforced);

	if (result != 0)
		return result;
	if (enforced)
		return AioGetEntryRow(a->tuple)->number < AioGetEntryRow(b->tuple)->number ? -1 : 1;
	return ItemPointerCompare(&a->tuple->t_tid, &b->tuple->t_tid);
}

static inline int
compare_ordered(const AioEntry *a, const AioEntry *b, EntryOrder *order)
{
	int			result = ApplySortComparator(a->key, first_is_null(a->tuple),
											 b->key, first_is_null(b->tuple),
											 &order->keys[0]);

	return result != 0 ? result : compare_rest(a, b, order);
}

/* For keys that compare as unsigned integers. */
static inline int
compare_unsigned(const AioEntry *a, const AioEntry *b, EntryOrder *order)
{
	if (a->key < b->key)
		return -1;
	if (a->key > b->key)
		return 1;
	return compare_rest(a, b, order);
}

#define ST_SORT sort_ordered
#define ST_ELEMENT_TYPE AioEntry
#define ST_COMPARE(a, b, order) compare_ordered(a, b, order)
#define ST_COMPARE_ARG_TYPE EntryOrder
#define ST_CHECK_FOR_INTERRUPTS
#define ST_SCOPE static
#define ST_DEFINE
#include "lib/sort_template.h"

#define ST_SORT sort_unsigned
#define ST_ELEMENT_TYPE AioEntry
#define ST_COMPARE(a, b, order) compare_unsigned(a, b, order)
#define ST_COMPARE_ARG_TYPE EntryOrder
#define ST_CHECK_FOR_INTERRUPTS
#define ST_SCOPE static
#define ST_DEFINE
#include "lib/sort_template.h"

/* Set the keys of entries that have an order.  Returns whether none is null. */
static bool
set_keys(AioEntry *entries, uint32 n, EntryOrder *order)
{
	SortSupport first = &order->keys[0];
	uint32		next_look = 10;
	bool		no_nulls = true;
	MemoryContext old = CurrentMemoryContext;
	MemoryContext scratch = order->compresses ?
		AllocSetContextCreate(old, "index backlog sort", ALLOCSET_SMALL_SIZES) : NULL;

	Assert(order->abbreviated == (first->abbrev_converter != NULL));
	for (uint32 i = 0; i < n; i++)
	{
		bool		isnull;
		Datum		value = index_getattr(entries[i].tuple, 1, order->desc, &isnull);

		if (isnull)
			no_nulls = false;
		else if (order->compresses)
		{
			MemoryContextReset(scratch);
			MemoryContextSwitchTo(scratch);
			value = first->abbrev_converter(compress_key(value, order), first);
			MemoryContextSwitchTo(old);
		}
		else if (order->abbreviated)
			value = first->abbrev_converter(value, first);
		entries[i].key = value;

		/* are abbreviated keys worth it?  asked as tuplesort asks it */
		if (order->abbreviated && !order->compresses && i == next_look)
		{
			next_look *= 2;
			if (first->abbrev_abort(i, first))
			{
				first->comparator = first->abbrev_full_comparator;
				first->abbrev_converter = NULL;
				order->abbreviated = false;
				return set_keys(entries, n, order);
			}
		}
	}
	return no_nulls;
}

/*
 * Mark sorted entries whose keys are those of earlier rows.
 */
static void
mark_duplicates(AioEntry *entries, uint32 n, EntryOrder *order)
{
	for (uint32 i = 1; i < n; i++)
	{
		bool		enforced;

		if (ApplySortComparator(entries[i - 1].key, first_is_null(entries[i - 1].tuple),
								entries[i].key, first_is_null(entries[i].tuple),
								&order->keys[0]) == 0 &&
			compare_columns(&entries[i - 1], &entries[i], order, &enforced) == 0 &&
			enforced)
		{
			Assert(AioGetEntryRow(entries[i - 1].tuple)->number <
				   AioGetEntryRow(entries[i].tuple)->number);
			AioGetEntryRow(entries[i].tuple)->duplicate = true;
		}
	}
}

/*
 * Have keys compare as unsigned integers.  Returns false if they cannot.  From
 * then on they tell whether values are equal, but no longer the values.
 */
static bool
make_unsigned(AioEntry *entries, uint32 n, EntryOrder *order)
{
	SortSupport first = &order->keys[0];
	Datum		flip = 0;

	if (first->comparator == ssup_datum_int32_cmp ||
		first->comparator == ssup_datum_signed_cmp)
		flip = (Datum) 1 << (SIZEOF_DATUM * BITS_PER_BYTE - 1);
	else if (first->comparator != ssup_datum_unsigned_cmp)
		return false;
	if (first->ssup_reverse)
		flip = ~flip;
	for (uint32 i = 0; flip != 0 && i < n; i++)
		entries[i].key ^= flip;
	return true;
}

/*
 * Put entries whose keys compare as unsigned integers into buckets of equal
 * ranges, in place ("American flag sort"; McIlroy, Bostic, McIlroy: Engineering
 * Radix Sort, 1993), and sort each, which then fits into the processor's cache.
 * If most keys are in one bucket, that is as good as sorting them all.
 */
static void
sort_in_buckets(AioEntry *entries, uint32 n, EntryOrder *order)
{
	uint32		next[BUCKETS_MAX];
	uint32		end[BUCKETS_MAX] = {0};
	Datum		min = entries[0].key;
	Datum		max = entries[0].key;
	int			nbuckets;
	int			shift;

	for (uint32 i = 1; i < n; i++)
	{
		min = Min(min, entries[i].key);
		max = Max(max, entries[i].key);
	}
	shift = max == min ? 0 :
		Max(pg_leftmost_one_pos64(max - min) + 1 - pg_leftmost_one_pos32(BUCKETS_MAX), 0);
	nbuckets = (int) ((max - min) >> shift) + 1;
	Assert(nbuckets <= BUCKETS_MAX);
#define BUCKET_OF(entry) (((entry).key - min) >> shift)

	for (uint32 i = 0; i < n; i++)
		end[BUCKET_OF(entries[i])]++;
	for (int i = 0, begin = 0; i < nbuckets; i++)
	{
		next[i] = begin;
		begin = end[i] += begin;
	}
	Assert(end[nbuckets - 1] == n);

	for (int i = 0; i < nbuckets; i++)
	{
		while (next[i] < end[i])
		{
			AioEntry	entry = entries[next[i]];
			int			bucket;

			while ((bucket = BUCKET_OF(entry)) != i)
			{
				AioEntry	other = entries[next[bucket]];

				entries[next[bucket]++] = entry;
				entry = other;
			}
			entries[next[i]++] = entry;
		}
	}
	for (int i = 0; i < nbuckets; i++)
	{
		uint32		begin = i == 0 ? 0 : end[i - 1];

		sort_unsigned(&entries[begin], end[i] - begin, order);
	}
#undef BUCKET_OF
}

/* AioIndexAmOps.sort, for btrees. */
AioEntry *
AioSortBtree(AioIndexBatch *batch)
{
	AioEntry   *entries = AioListEntries(batch);
	uint32		n = batch->nentries;
	EntryOrder	order;

	prepare_order(&order, batch->index, batch->unique, true);
	if (!set_keys(entries, n, &order) || !make_unsigned(entries, n, &order))
		sort_ordered(entries, n, &order);
	else if (n < ENTRIES_FOR_BUCKETS)
		sort_unsigned(entries, n, &order);
	else
		sort_in_buckets(entries, n, &order);
	if (batch->unique)
		mark_duplicates(entries, n, &order);
	return entries;
}

/*
 * AioIndexAmOps.in_order: do the entries of a btree come in its order, by and
 * large, such that nothing is gained by sorting them?
 */
bool
AioBtreeInOrder(AioIndexBatch *batch)
{
	AioEntry   *entries = AioListEntries(batch);
	EntryOrder	order;
	uint32		ascending = 0;

	prepare_order(&order, batch->index, batch->unique, false);
	set_keys(entries, batch->nentries, &order);
	for (uint32 i = 1; i < batch->nentries; i++)
	{
		if (compare_ordered(&entries[i - 1], &entries[i], &order) < 0)
			ascending++;
	}
	Assert(ascending < batch->nentries);
	pfree(entries);
	return ascending >= batch->nentries - batch->nentries / 10;
}

/* The entries of a batch by an order that has been prepared. */
static AioEntry *
sort_neighbours(AioIndexBatch *batch, EntryOrder *order)
{
	AioEntry   *entries = AioListEntries(batch);

	Assert(!batch->unique);
	set_keys(entries, batch->nentries, order);
	sort_ordered(entries, batch->nentries, order);
	return entries;
}

/* AioIndexAmOps.may_collect: do keys of the first column have an order? */
bool
AioGistHasOrder(const AioIndexBatch *batch)
{
	EntryOrder	order;

	return prepare_gist(&order, batch);
}

/* AioIndexAmOps.sort, likewise. */
AioEntry *
AioSortGist(AioIndexBatch *batch)
{
	EntryOrder	order;

	return prepare_gist(&order, batch) ? sort_neighbours(batch, &order) :
		AioListEntries(batch);
}

/* AioIndexAmOps.may_collect: has the type of the first column an order? */
bool
AioTypeHasOrder(const AioIndexBatch *batch)
{
	EntryOrder	order;

	return prepare_type(&order, batch);
}

/* AioIndexAmOps.sort, likewise. */
AioEntry *
AioSortByType(AioIndexBatch *batch)
{
	EntryOrder	order;

	return prepare_type(&order, batch) ? sort_neighbours(batch, &order) :
		AioListEntries(batch);
}
