/*-------------------------------------------------------------------------
 *
 * nbtinsert_internals.c
 *	  Insert an entry into a btree leaf that is known.  Included at the end of
 *	  nbtinsert.c.
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
 * pin is not.  The key is that of the entry, and is changed.
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
	CheckForSerializableConflictIn(batch->index, NULL, BufferGetBlockNumber(leaf));

	/* with room there is no split, and so no need for the parents */
	offset = _bt_findinsertloc(batch->index, &state, checks,
							   batch->unchanged && !batch->unique, NULL, batch->heap);
	_bt_insertonpg(batch->index, batch->heap, key, state.buf, InvalidBuffer,
				   NULL, tuple, state.itemsz, offset, state.postingoff, false);
	return is_unique;
}
