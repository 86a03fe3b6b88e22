/*-------------------------------------------------------------------------
 *
 * gin_fill.h
 *	  Put many keys into a leaf of a GIN index in one visit.  Private to
 *	  src/backend/access/index_batch.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AIO_GIN_FILL_H
#define AIO_GIN_FILL_H

#include "access/gin_private.h"

/* A key, and the rows that have it, in order. */
typedef struct AioGinKey
{
	Datum		key;
	ItemPointerData *items;
	uint32		nitems;
	bool		merged;			/* items have been allocated for this key */
	bool		again;			/* the one before is the same, with other rows */
	OffsetNumber attnum;
	GinNullCategory category;
} AioGinKey;

extern OffsetNumber AioGinFindKey(GinState *ginstate, Page page,
								  const AioGinKey *key, OffsetNumber low,
								  int gap, bool *equal);
extern void AioGinInsertKeys(GinState *ginstate, const AioGinKey *keys,
							 uint32 n);

/* gininsert_internals.c */
extern IndexTuple AioGinFormLeafTuple(GinState *ginstate, const AioGinKey *key,
									  IndexTuple old, Buffer leaf);

#endif							/* AIO_GIN_FILL_H */
