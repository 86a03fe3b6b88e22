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

#include "access/nbtxlog.h"
#include "access/xlog.h"
#include "access/xloginsert.h"
#include "btree_fill.h"
#include "leaf_wal.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "storage/predicate.h"
#include "utils/rel.h"

/* what XLOG_BTREE_INSERT_LEAF has besides, but for the tuple */
#define INSERT_BYTES	(SizeOfXLogRecordDataHeaderShort + SizeOfBtreeInsert)

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

/*
 * Put as many of n sorted entries into a leaf as is plain, beginning with the
 * first, which is known to be greater than what is left of the leaf.  The leaf
 * is pinned and locked exclusively, and stays so.  Sets *added to how many
 * entries have been put, and returns why the next one was not.
 *
 * Raises the errors of comparison functions, and serialization failures, before
 * it changes anything.
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
	uint32		found;

	*added = 0;
	if (!P_ISLEAF(opaque) || P_IGNORE(opaque) || P_INCOMPLETE_SPLIT(opaque))
		return AIO_FILL_NOT_HERE;

	for (found = 0; found < n; found++)
	{
		IndexTuple	tuple = entries[found].tuple;
		Size		size = MAXALIGN(IndexTupleSize(tuple)) + sizeof(ItemIdData);
		bool		equal;

		if (batch->unique && AioGetEntryRow(tuple)->duplicate)
		{
			end = AIO_FILL_EQUAL;
			break;
		}
		AioBtreeSetKey(batch, key, tuple);
		position = find_position(index, key, page, position,
								 (max + 1 - position) / (n - found + 1), &equal);
		if (position > max && !P_RIGHTMOST(opaque))
		{
			int32		result = _bt_compare(index, key, page, P_HIKEY);

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
		}
		Assert(position == P_FIRSTDATAKEY(opaque) ||
			   _bt_compare(index, key, page, position - 1) > 0);
		if (items + size > room)
		{
			end = AIO_FILL_SEARCH;
			break;
		}
		if (equal)
		{
			end = AIO_FILL_EQUAL;
			break;
		}
		Assert(found < MaxIndexTuplesPerPage);
		items += size;
		positions[found] = position;
	}

	if (found > 0)
	{
		CheckForSerializableConflictIn(index, NULL, BufferGetBlockNumber(leaf));
		add_entries(index, leaf, entries, positions, found, items);
		*added = found;
	}
	return end;
}
