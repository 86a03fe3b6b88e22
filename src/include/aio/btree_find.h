/*-------------------------------------------------------------------------
 *
 * btree_find.h
 *	  Find many keys in a btree.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AIO_BTREE_FIND_H
#define AIO_BTREE_FIND_H

#include "storage/block.h"
#include "storage/itemptr.h"
#include "utils/relcache.h"

/* the index in which keys are being found; NULL if none are */
extern PGDLLIMPORT Relation aio_btree_finding;

/* the page that the last search in it would have had to read */
extern PGDLLIMPORT BlockNumber aio_btree_missing;

/* btree_find.c */
extern bool AioBtreeMayFind(Relation index);
extern uint32 AioBtreeFind(Relation index, Relation table, int nkeys,
						   const Datum *keys, uint32 n, ItemPointer tids,
						   int limit, uint32 *nread);

#endif							/* AIO_BTREE_FIND_H */
