/*-------------------------------------------------------------------------
 *
 * btree_search.h
 *	  End a search of a btree before it reads a page (btree_search.c).
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AIO_BTREE_SEARCH_H
#define AIO_BTREE_SEARCH_H

#include "storage/block.h"
#include "storage/buf.h"
#include "utils/relcache.h"

extern bool AioBtreeSearchEnds(Relation rel, Buffer *buffer,
							   BlockNumber child);

#endif							/* AIO_BTREE_SEARCH_H */
