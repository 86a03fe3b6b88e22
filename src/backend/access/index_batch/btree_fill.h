/*-------------------------------------------------------------------------
 *
 * btree_fill.h
 *	  Put many entries into a btree leaf in one visit.  Private to
 *	  src/backend/access/index_batch.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AIO_BTREE_FILL_H
#define AIO_BTREE_FILL_H

#include "access/nbtree.h"
#include "aio/index_am.h"

/* Why no more entries were put into a leaf. */
typedef enum AioBtreeFillEnd
{
	AIO_FILL_ALL,				/* there are none */
	AIO_FILL_BEYOND,			/* the next one belongs to the right of it */
	AIO_FILL_EQUAL,				/* the next one is equal, has room, and does
								 * not belong to the right for its TID */
	AIO_FILL_SEARCH,			/* the next one has no room, or may be equal
								 * to what is on several leaves */
	AIO_FILL_NOT_HERE,			/* nothing may be put into this page */
} AioBtreeFillEnd;

/* Where a leaf is to be split before it is filled. */
typedef struct AioBtreeSplit
{
	uint32		stay;			/* entries that go to its left half; the next
								 * one is inserted with the split, */
	OffsetNumber position;		/* here, as the first one of the right half */
	bool		separates;		/* the high key that this makes is greater
								 * than those that stay; otherwise the last of
								 * them has to be put before */
} AioBtreeSplit;

/* state owned by btree_fill.c: where the next page is split, if not Invalid */
extern OffsetNumber aio_btree_split_before;

extern BTScanInsert AioBtreeMakeKey(Relation index);
extern void AioBtreeSetKey(const AioIndexBatch *batch, BTScanInsert key,
						   IndexTuple tuple);
extern bool AioBtreePlanSplit(AioIndexBatch *batch, BTScanInsert key,
							  Buffer leaf, const AioEntry *entries, uint32 n,
							  AioBtreeSplit *split);
extern AioBtreeFillEnd AioBtreeFill(AioIndexBatch *batch, BTScanInsert key,
									Buffer leaf, const AioEntry *entries,
									uint32 n, uint32 *added);

/* nbtinsert_internals.c */
extern bool AioBtreeInsertOnLeaf(AioIndexBatch *batch, BTScanInsert key,
								 Buffer leaf, IndexTuple tuple);
extern void AioBtreeSplitBefore(AioIndexBatch *batch, BTScanInsert key,
								Buffer leaf, IndexTuple tuple,
								OffsetNumber offset, BTStack above);

#endif							/* AIO_BTREE_FILL_H */
