/*-------------------------------------------------------------------------
 *
 * gininsert_internals.c
 *	  Form the tuple of a GIN leaf that has a key's rows.  Included at the end
 *	  of gininsert.c.
 *
 * Tests: src/test/aio/index/t/002_random.pl,
 *		  src/test/aio/index/t/011_gin_leaf.pl.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "gin_fill.h"

/*
 * The tuple of a leaf for a key, in the current memory context: with the rows
 * that 'old' has, which is the leaf's tuple for the key and has no posting
 * tree, or if that is NULL, without others.  The leaf is locked exclusively,
 * and nothing on it is changed.
 *
 * If the tuple would be too large, a posting tree is made, and the tuple points
 * to that; predicate locks on the leaf are then also on the tree.
 */
IndexTuple
AioGinFormLeafTuple(GinState *ginstate, const AioGinKey *key, IndexTuple old,
					Buffer leaf)
{
	if (old != NULL)
		return addItemPointersToLeafTuple(ginstate, old, key->items,
										  key->nitems, NULL, leaf);
	return buildFreshLeafTuple(ginstate, key->attnum, key->key, key->category,
							   key->items, key->nitems, NULL, leaf);
}
