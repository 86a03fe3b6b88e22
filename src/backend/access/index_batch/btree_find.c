/*-------------------------------------------------------------------------
 *
 * btree_find.c
 *	  Find many keys in a btree.
 *
 * They are sorted, so that a key that belongs on the leaf of the key before it
 * is found there, or on the next leaf if there are many to each.  Only
 * otherwise, the tree is descended.  The leaf stays locked from one key to the
 * next, so that nothing has to be checked but the range of its keys.
 *
 * The sort is by integers that tell the order, by and large: of the first
 * column, or of two small ones.  A key that comes out of order takes a descent.
 *
 * What is found is where the row was when the leaf was looked at.  Nothing
 * protects it afterwards: whoever uses it compares the row's key.
 *
 * Nobody waits for a page while a leaf is locked: a key that needs a page which
 * is not in memory is put back.  If the caller wishes, such pages are read, all
 * of them ahead and neighbours together, and then those keys are looked for
 * again.  Otherwise they are not found, nor any more keys after some in a row.
 * A page that cannot be read, or whose checksum is wrong, stays missing,
 * without an error.
 *
 * Suspends:  never.
 * Tests:     src/test/aio/ri.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/nbtree.h"
#include "aio/btree_find.h"
#include "aio/read.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/sortsupport.h"

/* keys on one leaf after which the next one is expected on its sibling */
#define KEYS_BEFORE_STEP	2

/* keys in a row that need a page that is not in memory */
#define KEYS_MISSED_MAX		32

/* how often missing pages are read: leaves, and perhaps those above them */
#define READS_MAX			2

/* keys that are found, at most, before a leaf is unlocked */
#define KEYS_AT_ONCE		256

#define SIGN_BIT(bits)		(UINT64CONST(1) << ((bits) - 1))

typedef struct RankedKey
{
	uint64		rank;
	uint32		number;			/* which key it is */
} RankedKey;

/* How the ranks of keys are made. */
typedef struct Ranking
{
	SortSupportData first;
	bool		reverse;
	bool		second_too;		/* both are 32 bits wide, and not reversed */
} Ranking;

typedef struct Finder
{
	Relation	index;
	Relation	table;
	BTScanInsert key;

	/* the leaf on which the last key belongs, pinned and share-locked */
	Buffer		leaf;
	OffsetNumber offset;		/* where it is, or would be */
	int			nfound;			/* keys that belong on this leaf, so far */
	int			nmissed;		/* keys whose leaf is not in memory, in a row */
	AioWantedPages wanted;		/* that are not */
} Finder;

Relation	aio_btree_finding = NULL;
BlockNumber aio_btree_missing = InvalidBlockNumber;

#define ST_SORT sort_keys
#define ST_ELEMENT_TYPE RankedKey
#define ST_COMPARE(a, b) ((a)->rank < (b)->rank ? -1 : (a)->rank > (b)->rank)
#define ST_SCOPE static
#define ST_DEFINE
#include "lib/sort_template.h"

static void
prepare_column(Relation index, int i, SortSupport column)
{
	memset(column, 0, sizeof(SortSupportData));
	column->ssup_cxt = CurrentMemoryContext;
	column->ssup_collation = index->rd_indcollation[i];
	column->ssup_attno = i + 1;
	column->abbreviate = true;
	PrepareSortSupportFromIndexRel(index, false, column);
}

/* Returns false if keys of this index have no ranks. */
static bool
prepare_ranking(Relation index, int nkeys, Ranking *ranking)
{
	SortSupportData second;

	prepare_column(index, 0, &ranking->first);
	ranking->reverse = (index->rd_indoption[0] & INDOPTION_DESC) != 0;
	ranking->second_too = false;
	if (ranking->first.comparator == ssup_datum_int32_cmp && nkeys > 1 &&
		!ranking->reverse && (index->rd_indoption[1] & INDOPTION_DESC) == 0)
	{
		prepare_column(index, 1, &second);
		ranking->second_too = second.comparator == ssup_datum_int32_cmp;
	}
	return ranking->first.comparator == ssup_datum_int32_cmp ||
		ranking->first.comparator == ssup_datum_signed_cmp ||
		ranking->first.comparator == ssup_datum_unsigned_cmp;
}

static uint64
rank_of(const Datum *key, Ranking *ranking)
{
	SortSupport first = &ranking->first;
	uint64		rank;

	if (first->abbrev_converter != NULL)
		rank = (uint64) first->abbrev_converter(key[0], first);
	else if (first->comparator == ssup_datum_int32_cmp)
		rank = (uint64) (int64) DatumGetInt32(key[0]);
	else
		rank = (uint64) key[0];
	if (first->comparator != ssup_datum_unsigned_cmp)
		rank ^= SIGN_BIT(64);
	if (ranking->second_too)
		rank = (rank ^ SIGN_BIT(64) ^ SIGN_BIT(32)) << 32 |
			((uint32) DatumGetInt32(key[1]) ^ SIGN_BIT(32));
	return ranking->reverse ? ~rank : rank;
}

/* The keys of an insertion's search, whose values are set later. */
static BTScanInsert
make_key(Relation index, int nkeys)
{
	BTScanInsert key = _bt_mkscankey(index, NULL);

	_bt_metaversion(index, &key->heapkeyspace, &key->allequalimage);
	key->anynullkeys = false;
	key->keysz = nkeys;
	for (int i = 0; i < nkeys; i++)
		key->scankeys[i].sk_flags &= ~SK_ISNULL;
	return key;
}

static void
leave_leaf(Finder *finder)
{
	if (BufferIsValid(finder->leaf))
		_bt_relbuf(finder->index, finder->leaf);
	finder->leaf = InvalidBuffer;
}

/* Does the key lie to the right of this leaf? */
static bool
is_beyond(Finder *finder, Page page)
{
	return !P_RIGHTMOST(BTPageGetOpaque(page)) &&
		_bt_compare(finder->index, finder->key, page, P_HIKEY) > 0;
}

/*
 * Begin with a leaf that has been locked.  Returns false, and leaves it, if the
 * key does not belong there.
 */
static bool
begin_leaf(Finder *finder)
{
	Page		page = BufferGetPage(finder->leaf);
	BTPageOpaque opaque = BTPageGetOpaque(page);

	finder->offset = P_FIRSTDATAKEY(opaque);
	finder->nfound = 0;
	if (!P_IGNORE(opaque) && finder->offset <= PageGetMaxOffsetNumber(page) &&
		!is_beyond(finder, page))
		return true;
	leave_leaf(finder);
	return false;
}

/* Go on to the leaf's sibling if the key is likely to belong there. */
static bool
step_right(Finder *finder)
{
	BlockNumber sibling =
		BTPageGetOpaque(BufferGetPage(finder->leaf))->btpo_next;

	if (finder->nfound < KEYS_BEFORE_STEP ||
		!AioPageIsHere(finder->index, sibling))
	{
		leave_leaf(finder);
		return false;
	}
	finder->leaf = _bt_relandgetbuf(finder->index, finder->leaf, sibling, BT_READ);
	return begin_leaf(finder);
}

/* Have the leaf on which the key belongs.  False if it is not in memory. */
static bool
get_leaf(Finder *finder)
{
	if (BufferIsValid(finder->leaf))
	{
		Page		page = BufferGetPage(finder->leaf);

		if (_bt_compare(finder->index, finder->key, page, finder->offset) < 0)
			leave_leaf(finder);
		else if (!is_beyond(finder, page) || step_right(finder))
			return true;
	}
	_bt_freestack(_bt_search(finder->index, finder->table, finder->key,
							 &finder->leaf, BT_READ));
	return BufferIsValid(finder->leaf) && begin_leaf(finder);
}

/*
 * The first item, from 'low' on, that is not less than the key.  Beyond the
 * last one if all are.
 */
static OffsetNumber
search_leaf(Finder *finder, Page page, OffsetNumber low)
{
	OffsetNumber end = PageGetMaxOffsetNumber(page) + 1;
	OffsetNumber high = low;
	int			step = 1;

	/* it is likely to be near */
	while (high < end &&
		   _bt_compare(finder->index, finder->key, page, high) > 0)
	{
		low = high + 1;
		high += step;
		step *= 2;
	}
	high = Min(high, end);
	while (low < high)
	{
		OffsetNumber middle = low + (high - low) / 2;

		if (_bt_compare(finder->index, finder->key, page, middle) > 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/*
 * Set where the row with this key is, if it is found.  Returns false if a page
 * is missing.
 */
static bool
find_key(Finder *finder, const Datum *values, ItemPointer tid)
{
	OffsetNumber last;
	Page		page;

	for (int i = 0; i < finder->key->keysz; i++)
		finder->key->scankeys[i].sk_argument = values[i];
	aio_btree_missing = InvalidBlockNumber;
	if (!get_leaf(finder))
	{
		finder->nmissed++;
		return !BlockNumberIsValid(aio_btree_missing);
	}
	finder->nmissed = 0;
	page = BufferGetPage(finder->leaf);
	last = PageGetMaxOffsetNumber(page);
	finder->nfound++;
	finder->offset = search_leaf(finder, page, finder->offset);
	for (OffsetNumber offset = finder->offset; offset <= last; offset++)
	{
		ItemId		item = PageGetItemId(page, offset);

		if (_bt_compare(finder->index, finder->key, page, offset) != 0)
			break;
		if (ItemIdIsDead(item))
			continue;
		*tid = *BTreeTupleGetHeapTID((IndexTuple) PageGetItem(page, item));
		return true;
	}
	finder->offset = Min(finder->offset, last);
	return true;
}

/*
 * Find keys in this order.  Returns how many are left for which a page is
 * missing, the first ones then.  With 'reads', such pages are read.
 */
static uint32
find_keys(Finder *finder, const Datum *keys, RankedKey *ranked, uint32 n,
		  ItemPointer tids, bool reads)
{
	uint32		nleft = 0;

	finder->nmissed = 0;
	for (uint32 i = 0; i < n && (reads || finder->nmissed < KEYS_MISSED_MAX); i++)
	{
		uint32		number = ranked[i].number;

		if (i % KEYS_AT_ONCE == 0)
		{
			leave_leaf(finder);
			CHECK_FOR_INTERRUPTS();
		}
		if (find_key(finder, &keys[number * finder->key->keysz], &tids[number]))
			continue;
		ranked[nleft++] = ranked[i];
		if (reads)
		{
			CHECK_FOR_INTERRUPTS();
			AioWantPage(&finder->wanted, aio_btree_missing);
		}
	}
	leave_leaf(finder);
	if (reads)
	{
		AioReadWanted(&finder->wanted);
		AioReadAheadWaitAll();
	}
	return nleft;
}

/* Is it possible, and worth while, to find many keys in this index? */
bool
AioBtreeMayFind(Relation index)
{
	Ranking		ranking;

	return prepare_ranking(index, 1, &ranking);
}

/*
 * Find n keys, each with values for the first nkeys columns of the index, which
 * are of the columns' own types, not null, and not stored out of line.  Sets
 * the place to which the index leads; if there are several for a key, that of
 * the first that is not known to be dead; and an invalid one for a key that is
 * not found.
 *
 * Pages that are not in memory are read if 'limit' is not 0, so many at a time,
 * and *nread is set to their number.  Otherwise keys that need them are not
 * found.
 *
 * Returns how many keys have been found.
 *
 * No lock on a page may be held.  Raises what reading a page of a btree raises.
 * Allocates in the current memory context, which the caller resets.
 */
uint32
AioBtreeFind(Relation index, Relation table, int nkeys, const Datum *keys,
			 uint32 n, ItemPointer tids, int limit, uint32 *nread)
{
	Finder		finder = {.index = index,.table = table,.leaf = InvalidBuffer,
	.wanted = {.rel = index,.limit = limit}};
	RankedKey  *ranked = palloc_array(RankedKey, n);
	Ranking		ranking;
	uint32		nfound = 0;
	uint32		nleft = n;

	prepare_ranking(index, nkeys, &ranking);
	for (uint32 i = 0; i < n; i++)
	{
		ranked[i].rank = rank_of(&keys[i * nkeys], &ranking);
		ranked[i].number = i;
		ItemPointerSetInvalid(&tids[i]);
	}
	sort_keys(ranked, n);
	finder.key = make_key(index, nkeys);
	Assert(aio_btree_finding == NULL);
	aio_btree_finding = index;
	PG_TRY();
	{
		for (int i = 0; limit > 0 && nleft > 0 && i < READS_MAX; i++)
			nleft = find_keys(&finder, keys, ranked, nleft, tids, true);
		if (nleft > 0)
			find_keys(&finder, keys, ranked, nleft, tids, false);
	}
	PG_FINALLY();
	{
		aio_btree_finding = NULL;
	}
	PG_END_TRY();
	*nread = finder.wanted.nbegun;
	for (uint32 i = 0; i < n; i++)
		nfound += ItemPointerIsValid(&tids[i]);
	return nfound;
}
