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

#include "storage/itemptr.h"
#include "utils/relcache.h"

/* the index in which keys are being found; NULL if none are */
extern PGDLLIMPORT Relation aio_btree_finding;

/* btree_find.c */
extern bool AioBtreeMayFind(Relation index);
extern uint32 AioBtreeFind(Relation index, Relation table, int nkeys,
						   const Datum *keys, uint32 n, ItemPointer tids);

#endif							/* AIO_BTREE_FIND_H */
