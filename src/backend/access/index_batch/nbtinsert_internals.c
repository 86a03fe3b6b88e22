/*-------------------------------------------------------------------------
 *
 * nbtinsert_internals.c
 *	  Insert an entry into a btree leaf that is known.
 *	  Included at the end of nbtinsert.c.
 *
 * Tests: src/test/aio/index/t/002_random.pl, src/test/aio/index/t/008_leaf.pl.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "btree_fill.h"

/*
 * Insert an entry of a batch as _bt_doinsert() does when it has found the leaf
 * on which the key belongs.  The leaf is pinned and locked exclusively, has
 * room for the entry, and its split is complete; the lock is given back, the
 * pin is not.  If the key is to be found unique, the high key is greater: with
 * its TID, the entry does not belong to a leaf to the right, which may be full.
 * The key is that of the entry, and is changed.
 *
 * Returns false if the batch's keys are enforced and this one may be a
 * duplicate.
 */
bool
AioBtreeInsertOnLeaf(AioIndexBatch *batch, BTScanInsert key, Buffer leaf,
					 IndexTuple tuple)
{
	bool		checks = batch->unique && !key->anynullkeys;
	bool		is_unique = true;
	BTInsertStateData state = {
		.itup = tuple,
		.itemsz = MAXALIGN(IndexTupleSize(tuple)),
		.itup_key = key,
		.buf = leaf,
	};
	OffsetNumber offset;

	Assert(PageGetFreeSpace(BufferGetPage(leaf)) >= state.itemsz);
	IncrBufferRefCount(leaf);
	if (checks)
	{
		uint32		token;
		TransactionId xwait = _bt_check_unique(batch->index, &state, batch->heap,
											   UNIQUE_CHECK_PARTIAL, &is_unique,
											   &token);

		Assert(!TransactionIdIsValid(xwait));
		(void) xwait;
		key->scantid = &tuple->t_tid;
	}

	/* with room there is no split, and so no need for the parents */
	offset = _bt_findinsertloc(batch->index, &state, checks,
							   batch->unchanged && !batch->unique, NULL, batch->heap);
	Assert(state.buf == leaf);
	Assert(PageGetFreeSpace(BufferGetPage(leaf)) >= state.itemsz);
	_bt_insertonpg(batch->index, batch->heap, key, state.buf, InvalidBuffer,
				   NULL, tuple, state.itemsz, offset, state.postingoff, false);
	return is_unique;
}

/*
 * Insert an entry at a place of a leaf, and split the leaf there, such that the
 * entry is the first one on the right.  The leaf is pinned and locked
 * exclusively, its split is complete, and an item precedes the place; the lock
 * is given back, the pin is not.  'above' says where the leaf's downlink is, or
 * was, and is NULL if the leaf is the root.  The key is that of any entry.
 */
void
AioBtreeSplitBefore(AioIndexBatch *batch, BTScanInsert key, Buffer leaf,
					IndexTuple tuple, OffsetNumber offset, BTStack above)
{
	Relation	index = batch->index;
	BTPageOpaque opaque = BTPageGetOpaque(BufferGetPage(leaf));
	BlockNumber block = BufferGetBlockNumber(leaf);
	bool		is_root = P_ISROOT(opaque);
	bool		is_only = P_LEFTMOST(opaque) && P_RIGHTMOST(opaque);
	Buffer		right;

	Assert(P_ISLEAF(opaque) && offset > P_FIRSTDATAKEY(opaque));
	Assert(is_root == (above == NULL));
	IncrBufferRefCount(leaf);
	aio_btree_split_before = offset;
	right = _bt_split(index, batch->heap, key, leaf, InvalidBuffer, offset,
					  MAXALIGN(IndexTupleSize(tuple)), tuple, NULL, NULL, 0);
	Assert(aio_btree_split_before == InvalidOffsetNumber);
	PredicateLockPageSplit(index, block, BufferGetBlockNumber(right));
	_bt_insert_parent(index, batch->heap, leaf, right, above, is_root, is_only);
}
