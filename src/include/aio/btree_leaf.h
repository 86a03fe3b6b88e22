/*-------------------------------------------------------------------------
 *
 * btree_leaf.h
 *	  The btree leaf that the next entry in index order probably belongs on.
 *
 * While entries are inserted in index order, each begins its search on the
 * leaf where the one before it ended.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AIO_BTREE_LEAF_H
#define AIO_BTREE_LEAF_H

#include "storage/block.h"
#include "storage/buf.h"
#include "utils/relcache.h"

struct BTInsertStateData;

typedef struct AioBtreeLeaf
{
	Relation	index;
	Buffer		buffer;			/* pinned; or InvalidBuffer if not known */
} AioBtreeLeaf;

/* set while entries are inserted in index order, otherwise NULL */
extern PGDLLIMPORT AioBtreeLeaf *aio_btree_leaf;

/* btree_search.c */
extern bool AioBtreeSearchEnds(Relation rel, Buffer *buffer, BlockNumber leaf);

/* btree_leaf.c */
extern bool AioBtreeTryLeaf(struct BTInsertStateData *insertstate);
extern void AioBtreeNoteLeaf(struct BTInsertStateData *insertstate);

#endif							/* AIO_BTREE_LEAF_H */
