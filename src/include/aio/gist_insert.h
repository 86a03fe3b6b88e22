/*-------------------------------------------------------------------------
 *
 * gist_insert.h
 *	  Where an insert into a GiST index descends, and what it does with the
 *	  leaf (gist_internals.c).
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AIO_GIST_INSERT_H
#define AIO_GIST_INSERT_H

#include "access/itup.h"
#include "utils/relcache.h"

struct GISTSTATE;
struct GISTInsertStack;

extern IndexTuple AioGistAdjust(Relation index,
								const struct GISTInsertStack *stack,
								IndexTuple downlink, IndexTuple tuple,
								struct GISTSTATE *giststate);

/* 'state' is upstream's GISTInsertState, a type that has no tag */
extern bool AioGistInsertOnLeaf(void *state, struct GISTInsertStack *stack,
								struct GISTSTATE *giststate, IndexTuple tuple);

#endif							/* AIO_GIST_INSERT_H */
