/*-------------------------------------------------------------------------
 *
 * btree_split.h
 *	  Where a page of a btree is split (btree_fill.c).
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AIO_BTREE_SPLIT_H
#define AIO_BTREE_SPLIT_H

#include "access/itup.h"
#include "storage/bufpage.h"
#include "utils/relcache.h"

extern OffsetNumber AioBtreeFindSplit(Relation rel, Page page,
									  OffsetNumber newitemoff, Size newitemsz,
									  IndexTuple newitem, bool *newitemonleft);

#endif							/* AIO_BTREE_SPLIT_H */
