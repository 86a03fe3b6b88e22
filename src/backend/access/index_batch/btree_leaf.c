/*-------------------------------------------------------------------------
 *
 * btree_leaf.c
 *	  Insert neighbouring entries into a btree without descending for each.
 *
 * A seam in _bt_doinsert() asks AioBtreeTryLeaf() for the leaf before it
 * searches the tree, and tells AioBtreeNoteLeaf() what it has found by
 * searching.  All else (the position on the page, splits, deduplication, WAL)
 * is upstream's.
 *
 * The leaf is the right one if the key is greater than the first one on it,
 * and not greater than its high key, with the page locked.  The order in which
 * entries come implies that it is the right one; but where the sort and the
 * comparison function disagree, a wrong leaf would be a corrupt index.
 *
 * A leaf that has no room for the entry is declined: a split needs the stack
 * of parents that only a search returns.  Upstream's cache of the rightmost
 * leaf (_bt_search_insert()) does the same.
 *
 * INVARIANT-31: aio_btree_leaf is set only while entries are inserted in index
 * order by code that does not suspend.
 *
 * Tests: src/test/aio/sql, src/test/aio/index/t.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/nbtree.h"
#include "aio/btree_leaf.h"
#include "aio/future.h"
#include "aio/stats.h"
#include "storage/bufmgr.h"

AioBtreeLeaf *aio_btree_leaf = NULL;

/* May the entry be inserted on this page, which is locked? */
static bool
leaf_fits(Relation index, Page page, BTInsertState insertstate)
{
	BTPageOpaque opaque = BTPageGetOpaque(page);
	int32		result;

	if (!P_ISLEAF(opaque) || P_IGNORE(opaque) || P_INCOMPLETE_SPLIT(opaque))
		return false;
	if (PageGetFreeSpace(page) < insertstate->itemsz)
		return false;
	if (!P_LEFTMOST(opaque) &&
		(PageGetMaxOffsetNumber(page) < P_FIRSTDATAKEY(opaque) ||
		 _bt_compare(index, insertstate->itup_key, page,
					 P_FIRSTDATAKEY(opaque)) <= 0))
		return false;
	if (P_RIGHTMOST(opaque))
		return true;
	result = _bt_compare(index, insertstate->itup_key, page, P_HIKEY);

	/* equal keys may go on to the right, to a leaf that nobody has looked at */
	return insertstate->itup_key->scantid != NULL ? result <= 0 : result < 0;
}

/*
 * If the entry belongs on the leaf at hand, lock and pin it for insertstate
 * as a search would, and return true.  The caller goes on with no stack of
 * parents.
 */
bool
AioBtreeTryLeaf(BTInsertState insertstate)
{
	AioBtreeLeaf *leaf = aio_btree_leaf;

	Assert(!BufferIsValid(insertstate->buf));
	/* a sibling would use this leaf for another index (INVARIANT-31) */
	Assert(AioMaySuspend() != AIO_SUSPEND_OK);

	if (!BufferIsValid(leaf->buffer))
		return false;

	_bt_lockbuf(leaf->index, leaf->buffer, BT_WRITE);
	if (!leaf_fits(leaf->index, BufferGetPage(leaf->buffer), insertstate))
	{
		_bt_unlockbuf(leaf->index, leaf->buffer);
		return false;
	}

	/* the insertion gives this pin back */
	IncrBufferRefCount(leaf->buffer);
	insertstate->buf = leaf->buffer;
	return true;
}

/*
 * A search found the leaf, locked and pinned: the next entry will begin
 * there.
 */
void
AioBtreeNoteLeaf(BTInsertState insertstate)
{
	AioBtreeLeaf *leaf = aio_btree_leaf;

	if (leaf->buffer == insertstate->buf)
		return;
	if (BufferIsValid(leaf->buffer))
		ReleaseBuffer(leaf->buffer);
	IncrBufferRefCount(insertstate->buf);
	leaf->buffer = insertstate->buf;
	aio_session_stats_data.leaf_visits++;
}
