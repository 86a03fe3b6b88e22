/*-------------------------------------------------------------------------
 *
 * btree_fill.c
 *	  Put many entries into a btree leaf in one visit.
 *
 * Entries that follow one another in index order go to the same leaf, most of
 * them.  Their positions are found with the leaf locked once, by a search that
 * goes on from the position before; then they are added, and logged together if
 * that takes fewer bytes than a record each, or if the next record will be an
 * image of the page anyway.
 *
 * Only the plain case is taken: an entry that has room, and whose key, or key
 * and TID, is not on the page.  All else (splits, deletion and deduplication on
 * a full page, posting lists that have to be split, keys that may be
 * duplicates) is left to upstream's functions, one entry at a time.
 *
 * What is on the page by then is what _bt_doinsert() would have put there, in
 * the same place, had it been called for each entry.  Entries that are logged
 * together make one record (leaf_wal.c).
 *
 * A leaf that has no room for all entries is split before it is filled, at the
 * place where it will be full, or as full as all pages that are needed for
 * them: the entry that will be the first one on its right is put there with the
 * split.  So a leaf is left for good, and only items that were there before are
 * moved.
 *
 * INVARIANT-31: between two neighbours on a leaf, only entries are put that
 * compare so, with the leaf locked.  The order of entries among each other, and
 * that the first one is greater than what is left of the leaf, is known from
 * the sort, which a build of the index relies on as well.
 *
 * Tests: src/test/aio/sql, src/test/aio/index/t.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>

#include "access/nbtxlog.h"
#include "access/xlog.h"
#include "access/xloginsert.h"
#include "aio/btree_split.h"
#include "btree_fill.h"
#include "leaf_wal.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "utils/rel.h"

/* what XLOG_BTREE_INSERT_LEAF has besides, but for the tuple */
#define INSERT_BYTES	(SizeOfXLogRecordDataHeaderShort + SizeOfBtreeInsert)

/* a leaf is split before it is filled if so many entries stay on it */
#define SPLIT_MIN	16

/* of so many of them it is asked whether the next one has the same key */
#define EQUAL_SAMPLE	8

/* entries that are known not to be beyond a leaf if a later one is not */
#define WORTH_A_LOOK	4

/* so far ahead of need the processor is told to load an entry */
#define PREFETCH_DISTANCE	8

OffsetNumber aio_btree_split_before = InvalidOffsetNumber;

/*
 * A key that AioBtreeSetKey() can set to one entry after another, in the
 * current memory context.
 */
BTScanInsert
AioBtreeMakeKey(Relation index)
{
	BTScanInsert key = _bt_mkscankey(index, NULL);

	_bt_metaversion(index, &key->heapkeyspace, &key->allequalimage);
	Assert(key->heapkeyspace);
	key->keysz = IndexRelationGetNumberOfKeyAttributes(index);
	return key;
}

/*
 * Set a key to that of an entry, as _bt_mkscankey() does; without its TID if
 * the key is to be found unique.
 */
void
AioBtreeSetKey(const AioIndexBatch *batch, BTScanInsert key, IndexTuple tuple)
{
	Relation	index = batch->index;

	key->anynullkeys = false;
	for (int i = 0; i < key->keysz; i++)
	{
		ScanKey		column = &key->scankeys[i];
		bool		isnull;

		column->sk_argument = index_getattr(tuple, i + 1,
											RelationGetDescr(index), &isnull);
		if (isnull)
		{
			column->sk_flags |= SK_ISNULL;
			key->anynullkeys = !index->rd_index->indnullsnotdistinct;
		}
		else
			column->sk_flags &= ~SK_ISNULL;
	}
	key->scantid = batch->unique && !key->anynullkeys ? NULL : &tuple->t_tid;
}

/*
 * The first item from 'low' on that is not less than the key.  The key is
 * expected some 'gap' items on.  Sets *equal to whether the item compares
 * equal.
 */
static OffsetNumber
find_position(Relation index, BTScanInsert key, Page page, OffsetNumber low,
			  int gap, bool *equal)
{
	int			high = PageGetMaxOffsetNumber(page) + 1;
	int			next = low + gap;

	Assert(low <= high);
	*equal = false;
	while (low < high)
	{
		int			mid = next < high ? next : low + (high - low) / 2;
		int32		result = _bt_compare(index, key, page, mid);

		if (result > 0)
		{
			/* farther than expected: go on by twice as many */
			low = mid + 1;
			gap = gap * 2 + 1;
			next = low + gap;
		}
		else
		{
			high = mid;
			*equal = result == 0;
			next = high;
		}
	}
	return low;
}

/* Log an entry as _bt_insertonpg() does. */
static void
log_entry(Buffer leaf, IndexTuple tuple, OffsetNumber offnum)
{
	xl_btree_insert record = {.offnum = offnum};

	XLogBeginInsert();
	XLogRegisterData(&record, SizeOfBtreeInsert);
	XLogRegisterBuffer(0, leaf, REGBUF_STANDARD);
	XLogRegisterBufData(0, tuple, IndexTupleSize(tuple));
	PageSetLSN(BufferGetPage(leaf),
			   XLogInsert(RM_BTREE_ID, XLOG_BTREE_INSERT_LEAF));
}

/*
 * Are entries to be logged together?  items are the bytes that they take on the
 * page, with their line pointers.
 */
static bool
goes_together(Buffer leaf, const AioEntry *entries, uint32 n,
			  OffsetNumber first, Size items)
{
	Page		page = BufferGetPage(leaf);
	Size		apart = 0;

	if (n < 2)
		return false;
	if (XLogCheckBufferNeedsBackup(leaf))
		return true;
	for (uint32 i = 0; i < n; i++)
		apart += MAXALIGN(AIO_BLOCK_RECORD_BYTES + INSERT_BYTES +
						  IndexTupleSize(entries[i].tuple));
	return AioLeafRecordBytes(PageGetMaxOffsetNumber(page) + 1 - first,
							  items) <= apart;
}

/*
 * Add n entries to a leaf, where they take that many bytes.  Their positions
 * are those before any is added.
 */
static void
add_entries(Relation index, Buffer leaf, const AioEntry *entries,
			const OffsetNumber *positions, uint32 n, Size items)
{
	Page		page = BufferGetPage(leaf);
	int			old_upper = ((PageHeader) page)->pd_upper;
	bool		logged = RelationNeedsWAL(index);
	bool		together = logged && goes_together(leaf, entries, n,
												   positions[0], items);

	START_CRIT_SECTION();
	MarkBufferDirty(leaf);
	for (uint32 i = 0; i < n; i++)
	{
		IndexTuple	tuple = entries[i].tuple;
		OffsetNumber offnum = positions[i] + i;

		if (PageAddItem(page, (Item) tuple, MAXALIGN(IndexTupleSize(tuple)),
						offnum, false, false) == InvalidOffsetNumber)
			elog(PANIC, "entry %u of %u does not fit into block %u of index \"%s\"",
				 i + 1, n, BufferGetBlockNumber(leaf), RelationGetRelationName(index));
		/* before the next one is added: the record may get an image */
		if (logged && !together)
			log_entry(leaf, tuple, offnum);
	}
	if (together)
		AioLogLeaf(leaf, positions[0], old_upper);
	END_CRIT_SECTION();
}

static inline IndexTuple
item_at(Page page, OffsetNumber offnum)
{
	return (IndexTuple) PageGetItem(page, PageGetItemId(page, offnum));
}

/*
 * The bytes that an entry takes on a page, with its line pointer.  Entries were
 * collected in another order than they are sorted in, so that each is a cache
 * miss: what comes next is loaded ahead.
 */
static inline Size
bytes_on_page(const AioEntry *entries, uint32 i, uint32 n)
{
	if (i + PREFETCH_DISTANCE < n)
		__builtin_prefetch(entries[i + PREFETCH_DISTANCE].tuple);
	return MAXALIGN(IndexTupleSize(entries[i].tuple)) + sizeof(ItemIdData);
}

/* Of how many of n sorted entries is it known that they belong to a leaf? */
static uint32
count_for_leaf(AioIndexBatch *batch, BTScanInsert key, Page page,
			   const AioEntry *entries, uint32 n)
{
	uint32		known = 0;

	if (P_RIGHTMOST(BTPageGetOpaque(page)))
		return n;
	/* all of them, as a rule */
	for (uint32 next = n - 1; known < n; next = known + (n - known) / 2)
	{
		AioBtreeSetKey(batch, key, entries[next].tuple);
		if (_bt_compare(batch->index, key, page, P_HIKEY) < 0)
			known = next + 1;
		else
			n = next;
	}
	return known;
}

/*
 * The first of n entries is greater than all items of a leaf, and not beyond
 * it.  Of how many of them is that known, as far as they may have room?  The
 * key is changed.
 */
static uint32
count_appended(AioIndexBatch *batch, BTScanInsert key, Page page,
			   const AioEntry *entries, uint32 n, Size room)
{
	Size		items = 0;
	uint32		end;

	if (P_RIGHTMOST(BTPageGetOpaque(page)))
		return n;
	for (end = 0; end < n; end++)
	{
		items += bytes_on_page(entries, end, n);
		if (items > room)
			break;
	}
	return end < WORTH_A_LOOK ? 1 :
		Max(count_for_leaf(batch, key, page, entries, end), 1);
}

/*
 * Do some of n + 1 entries, or of the items of a leaf, have equal keys, which
 * upstream would deduplicate?
 */
static bool
have_equal_keys(Relation index, Page page, const AioEntry *entries, uint32 n)
{
	int			natts = IndexRelationGetNumberOfKeyAttributes(index);
	OffsetNumber first = P_FIRSTDATAKEY(BTPageGetOpaque(page));
	uint32		nitems = PageGetMaxOffsetNumber(page) - first;

	for (uint32 i = 0; i < EQUAL_SAMPLE; i++)
	{
		uint32		at = (uint64) n * i / EQUAL_SAMPLE;

		if (_bt_keep_natts_fast(index, entries[at].tuple,
								entries[at + 1].tuple) > natts)
			return true;
	}
	for (uint32 i = 0; nitems > 0 && i < EQUAL_SAMPLE; i++)
	{
		OffsetNumber at = first + nitems * i / EQUAL_SAMPLE;

		if (_bt_keep_natts_fast(index, item_at(page, at),
								item_at(page, at + 1)) > natts)
			return true;
	}
	return false;
}

/* The most that a leaf's high key takes which is made of an entry. */
static inline Size
high_key_bytes(const AioEntry *entry)
{
	return MAXALIGN(IndexTupleSize(entry->tuple)) +
		MAXALIGN(sizeof(ItemPointerData)) + sizeof(ItemIdData);
}

/*
 * Can a leaf be split before an entry, of which the position is given, such
 * that the entry before it stays on the left?  The new high key has no more
 * columns than tell the entry from the item before it, or if these are equal,
 * the TID of that item.
 */
static bool
separates(Relation index, Page page, OffsetNumber position,
		  const AioEntry *entry)
{
	IndexTuple	item = item_at(page, position - 1);
	IndexTuple	last = (entry - 1)->tuple;
	int			kept = _bt_keep_natts_fast(index, item, entry->tuple);

	if (kept > IndexRelationGetNumberOfKeyAttributes(index))
		return ItemPointerCompare(&last->t_tid, BTreeTupleGetMaxHeapTID(item)) <= 0;
	return _bt_keep_natts_fast(index, last, entry->tuple) <= kept;
}

/*
 * n sorted entries belong to a leaf, which is pinned and locked exclusively.
 * If it has no room for all of them, find out where to split it, such that what
 * is before that place, with the entries that go there, fills the leaf.
 * Returns false if the leaf is to be filled as it is.
 *
 * The leaf is as full then as all pages that the entries need will be; but if
 * they are appended to the index, it is filled up to its fillfactor.
 *
 * The key is changed.  Raises the errors of comparison functions.
 */
bool
AioBtreePlanSplit(AioIndexBatch *batch, BTScanInsert key, Buffer leaf,
				  const AioEntry *entries, uint32 n, AioBtreeSplit *split)
{
	Relation	index = batch->index;
	Page		page = BufferGetPage(leaf);
	PageHeader	header = (PageHeader) page;
	BTPageOpaque opaque = BTPageGetOpaque(page);
	OffsetNumber first = P_FIRSTDATAKEY(opaque);
	OffsetNumber max = PageGetMaxOffsetNumber(page);
	Size		capacity = header->pd_special - SizeOfPageHeaderData;
	Size		room = header->pd_upper - header->pd_lower;
	Size		before[MaxIndexTuplesPerPage + 1];	/* bytes of entries */
	Size		used[MaxIndexTuplesPerPage + 2];	/* and of items */
	Size		target;
	uint32		known = 0;
	uint32		low = 0;
	uint32		high;
	Size		last;
	Size		next;
	bool		deduplicates = key->allequalimage && BTGetDeduplicateItems(index);
	bool		equal;

	if (n <= SPLIT_MIN || !P_ISLEAF(opaque) || P_IGNORE(opaque) ||
		P_INCOMPLETE_SPLIT(opaque) || max < first || max > MaxIndexTuplesPerPage)
		return false;

	/* upstream looks for what it can delete before it splits a leaf */
	if (P_HAS_GARBAGE(opaque) || batch->unchanged)
		return false;

	/* one that is the only leaf, but has pages above, is upstream's */
	if (P_LEFTMOST(opaque) && P_RIGHTMOST(opaque) && !P_ISROOT(opaque))
		return false;

	before[0] = 0;
	while (known < Min(n, MaxIndexTuplesPerPage) && before[known] <= capacity)
	{
		before[known + 1] = before[known] + bytes_on_page(entries, known, n);
		known++;
	}
	if (known == n && before[n] <= room)
		return false;
	if (!P_RIGHTMOST(opaque))
	{
		uint32		belong = count_for_leaf(batch, key, page, entries, known);

		if (belong < known)
			n = known = belong;
		if (n <= SPLIT_MIN || (known == n && before[n] <= room))
			return false;
	}
	if (deduplicates && have_equal_keys(index, page, entries, known - 1))
		return false;

	used[first] = 0;
	for (OffsetNumber i = first; i <= max; i++)
	{
		ItemId		item = PageGetItemId(page, i);

		if (ItemIdIsDead(item) ||
			(deduplicates && BTreeTupleIsPosting(item_at(page, i))))
			return false;
		used[i + 1] = used[i] + MAXALIGN(ItemIdGetLength(item)) + sizeof(ItemIdData);
	}

	target = capacity - BTGetTargetPageFreeSpace(index);
	if (target <= 2 * high_key_bytes(&entries[0]))
		return false;
	AioBtreeSetKey(batch, key, entries[0].tuple);
	if (!P_RIGHTMOST(opaque) || _bt_compare(index, key, page, max) <= 0)
	{
		double		bytes = used[max + 1] + (double) before[known] * n / known;

		target = bytes / ceil(bytes / (target - high_key_bytes(&entries[0]))) +
			high_key_bytes(&entries[0]);
	}

	/* the last entry before which everything fits */
	high = known;
	while (high - low > 1)
	{
		uint32		mid = low + (high - low) / 2;
		OffsetNumber position;

		AioBtreeSetKey(batch, key, entries[mid].tuple);
		position = find_position(index, key, page, first, (max - first) / 2, &equal);
		if (used[position] + before[mid] + high_key_bytes(&entries[mid]) > target)
			high = mid;
		else
			low = mid;
	}

	/* or one before it, if that is a duplicate */
	for (split->stay = low; split->stay >= SPLIT_MIN; split->stay--)
	{
		const AioEntry *next = &entries[split->stay];

		AioBtreeSetKey(batch, key, next->tuple);
		split->position = find_position(index, key, page, first,
										(max - first) / 2, &equal);
		if (!equal && !(batch->unique && AioGetEntryRow(next->tuple)->duplicate))
			break;
	}
	if (split->stay < SPLIT_MIN || split->position == first ||
		used[split->position] + before[split->stay] < target / 2)
		return false;

	/* do the page, and both halves, have room for what they get at once? */
	split->separates = separates(index, page, split->position,
								 &entries[split->stay]);
	last = split->separates ? 0 : before[split->stay] - before[split->stay - 1];
	next = before[split->stay + 1] - before[split->stay];
	return last <= room &&
		used[split->position] + last + high_key_bytes(&entries[split->stay]) <= capacity &&
		capacity - room - used[split->position] + next <= capacity;
}

/*
 * In place of _bt_findsplitloc(), when a page is about to be split: before the
 * new item, if that is wanted.
 */
OffsetNumber
AioBtreeFindSplit(Relation rel, Page page, OffsetNumber newitemoff,
				  Size newitemsz, IndexTuple newitem, bool *newitemonleft)
{
	OffsetNumber offset = aio_btree_split_before;

	if (likely(offset == InvalidOffsetNumber))
		return _bt_findsplitloc(rel, page, newitemoff, newitemsz, newitem,
								newitemonleft);
	Assert(offset == newitemoff);
	/* not the pages above, too */
	aio_btree_split_before = InvalidOffsetNumber;
	*newitemonleft = false;
	return offset;
}

/*
 * Put as many of n sorted entries into a leaf as is plain, beginning with the
 * first, which is known to be greater than what is left of the leaf.  The leaf
 * is pinned and locked exclusively, and stays so.  Sets *added to how many
 * entries have been put, and returns why the next one was not.
 *
 * Raises the errors of comparison functions, before it changes anything.
 */
AioBtreeFillEnd
AioBtreeFill(AioIndexBatch *batch, BTScanInsert key, Buffer leaf,
			 const AioEntry *entries, uint32 n, uint32 *added)
{
	Relation	index = batch->index;
	Page		page = BufferGetPage(leaf);
	PageHeader	header = (PageHeader) page;
	BTPageOpaque opaque = BTPageGetOpaque(page);
	AioBtreeFillEnd end = AIO_FILL_ALL;
	OffsetNumber positions[MaxIndexTuplesPerPage];
	OffsetNumber position = P_FIRSTDATAKEY(opaque);
	OffsetNumber max = PageGetMaxOffsetNumber(page);
	Size		room = header->pd_upper - header->pd_lower;
	Size		items = 0;
	uint32		appended = 0;	/* up to here entries go to the leaf's end */
	uint32		found;

	*added = 0;
	if (!P_ISLEAF(opaque) || P_IGNORE(opaque) || P_INCOMPLETE_SPLIT(opaque))
		return AIO_FILL_NOT_HERE;

	for (found = 0; found < n; found++)
	{
		Size		size = bytes_on_page(entries, found, n);
		IndexTuple	tuple = entries[found].tuple;
		bool		equal = false;

		if (batch->unique && AioGetEntryRow(tuple)->duplicate)
		{
			end = AIO_FILL_EQUAL;
			break;
		}
		if (found >= appended)
		{
			AioBtreeSetKey(batch, key, tuple);
			position = find_position(index, key, page, position,
									 (max + 1 - position) / (n - found + 1), &equal);
			Assert(position == P_FIRSTDATAKEY(opaque) ||
				   _bt_compare(index, key, page, position - 1) > 0);
		}
		if (position > max && found >= appended)
		{
			int32		result = P_RIGHTMOST(opaque) ? -1 :
				_bt_compare(index, key, page, P_HIKEY);

			if (result > 0)
			{
				end = AIO_FILL_BEYOND;
				break;
			}
			if (result == 0 && key->scantid == NULL)
			{
				end = AIO_FILL_SEARCH;
				break;
			}
			appended = found + count_appended(batch, key, page, &entries[found],
											  n - found, room - items);
		}
		if (items + size > room)
		{
			end = AIO_FILL_SEARCH;
			break;
		}
		if (equal)
		{
			/* for its TID it may belong to a leaf on the right */
			end = key->scantid == NULL && !P_RIGHTMOST(opaque) &&
				_bt_compare(index, key, page, P_HIKEY) >= 0 ?
				AIO_FILL_SEARCH : AIO_FILL_EQUAL;
			break;
		}
		Assert(found < MaxIndexTuplesPerPage);
		items += size;
		positions[found] = position;
	}

	if (found > 0)
	{
		add_entries(index, leaf, entries, positions, found, items);
		*added = found;
	}
	return end;
}
