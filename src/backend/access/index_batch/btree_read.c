/*-------------------------------------------------------------------------
 *
 * btree_read.c
 *	  Read ahead what a btree insert reads under a page lock.
 *
 * A leaf page that overflows is split under its lock, and the split reads the
 * right sibling: a read that cannot be awaited.  In an index whose pages have
 * filled up, that is one synchronous read for each split.  But whether a split
 * is likely can be seen as soon as the leaf is in memory, before it is locked:
 * then its right sibling is read, awaited, beforehand.  If the page has
 * changed by the time it is locked, only a read is lost.
 *
 * The second function descends for an insert that must await its turn: unique
 * keys, and all of a serializable transaction, are inserted in row order, and
 * their pages are read in any order.
 *
 * Suspends:  both, in buffer reads only.
 * Tests:     src/test/aio/sql, bench/multi_index.py.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/itup.h"
#include "access/nbtree.h"
#include "aio/future.h"
#include "aio/read.h"
#include "built_in_ams.h"
#include "storage/bufmgr.h"
#include "utils/memdebug.h"
#include "utils/rel.h"

/* bytes below which free space is compared with the tuple at hand */
#define NEARLY_FULL_BYTES	1024

/* The space on a page that the entry's index tuple needs. */
static Size
tuple_bytes(AioIndexEntry *entry)
{
	if (entry->tuple_bytes == 0)
	{
		bool		has_nulls = false;

		Assert(entry->natts == RelationGetDescr(entry->index)->natts);
		for (int i = 0; i < entry->natts; i++)
			has_nulls |= entry->isnull[i];
		entry->tuple_bytes =
			MAXALIGN(IndexInfoFindDataOffset(has_nulls ? INDEX_NULL_MASK : 0) +
					 heap_compute_data_size(RelationGetDescr(entry->index),
											entry->values, entry->isnull)) +
			sizeof(ItemIdData);
	}
	return entry->tuple_bytes;
}

/*
 * Is this a page on which hardly any free space is left?  Reads nothing but
 * the page header.
 */
static inline bool
nearly_full(Page page)
{
	PageHeader	header = (PageHeader) page;

	return (int) header->pd_upper - (int) header->pd_lower < NEARLY_FULL_BYTES;
}

/* Is this a leaf that has no room for the tuple and has a right sibling? */
static bool
will_split(Page page, AioIndexEntry *entry)
{
	BTPageOpaque opaque;

	if (!nearly_full(page) || PageIsNew(page))
		return false;
	opaque = BTPageGetOpaque(page);
	if (!P_ISLEAF(opaque) || P_IGNORE(opaque) || P_RIGHTMOST(opaque))
		return false;
	return PageGetFreeSpace(page) < tuple_bytes(entry);
}

/*
 * If the page looks as if it would be split, read its right sibling.  The
 * first look is without a lock, hence only a hint.
 */
static pg_noinline void
watch_closely(Relation rel, Buffer buffer, AioIndexEntry *entry)
{
	Page		page = BufferGetPage(buffer);
	BlockNumber sibling = P_NONE;

	if (!will_split(page, entry) || AioMaySuspend() != AIO_SUSPEND_OK)
		return;

	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	if (will_split(page, entry))
		sibling = BTPageGetOpaque(page)->btpo_next;
	LockBuffer(buffer, BUFFER_LOCK_UNLOCK);

	/* the lock has been given back */
	Assert(AioMaySuspend() == AIO_SUSPEND_OK);
	if (sibling != P_NONE)
		ReleaseBuffer(ReadBuffer(rel, sibling));
}

/*
 * AioIndexAmOps.page_arrived: look whether this is a leaf that will be split.
 */
void
AioBtreeWatchPage(void *event, void *arg)
{
	const AioPageEvent *arrived = event;
	Page		page;

	if (!BufferIsValid(arrived->buffer))
		return;
	page = BufferGetPage(arrived->buffer);
	Assert(arrived->rel == ((AioIndexEntry *) arg)->index);
	/* nbtree tells valgrind that nobody looks at a page without a lock */
	VALGRIND_MAKE_MEM_DEFINED(page, BLCKSZ);
	if (unlikely(nearly_full(page)))
		watch_closely(arrived->rel, arrived->buffer, arg);
	VALGRIND_MAKE_MEM_NOACCESS(page, BLCKSZ);
}

/*
 * AioIndexAmOps.look_ahead: descend to the leaf on which the entry belongs, so
 * that the pages on the way are in memory.  Holds nothing on return.
 */
void
AioBtreeReadAhead(AioIndexEntry *entry)
{
	IndexTuple	itup;
	BTScanInsert key;
	Buffer		buffer;

	itup = index_form_tuple(RelationGetDescr(entry->index),
							entry->values, entry->isnull);
	key = _bt_mkscankey(entry->index, itup);
	/* a unique check begins at the first tuple with this key */
	key->scantid = NULL;
	_bt_freestack(_bt_search(entry->index, entry->heap, key, &buffer, BT_READ));
	if (BufferIsValid(buffer))
		_bt_relbuf(entry->index, buffer);
	pfree(key);
	pfree(itup);
}
