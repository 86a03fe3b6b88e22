/*-------------------------------------------------------------------------
 *
 * gist_fill.h
 *	  Put many entries into a leaf of a GiST index in one visit.  Private to
 *	  src/backend/access/index_batch.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AIO_GIST_FILL_H
#define AIO_GIST_FILL_H

#include "access/gist_private.h"
#include "aio/index_am.h"

/* entries of a group of gist_drain.c, and so those of one visit, at most */
#define AIO_GIST_GROUP_MAX	64

/* entries in a row that do not go to the leaf, after which no more are tried */
#define AIO_GIST_MISSES_MAX 4

/* pages above a leaf, at most, if there is to be more than one entry a visit */
#define AIO_GIST_HEIGHT_MAX	16

/*
 * What inserts entries, one visit after the other.  The visits of one of these
 * follow one another, as they share what upstream's insert keeps.
 */
typedef struct AioGistVisit
{
	GISTSTATE	giststate;		/* must be first: upstream's functions get it */
	/* the entries that follow, and may go to the same leaf */
	const AioEntry *next;
	bool	   *inserted;		/* which of these have been, or are just now */
	uint32		nnext;
	/* copies of the downlinks on the way, by the number of pages above */
	IndexTuple	downlinks[AIO_GIST_HEIGHT_MAX];
} AioGistVisit;

/* gist_drain.c */
extern AioGistVisit *AioGistVisitOf(GISTSTATE *giststate);

#endif							/* AIO_GIST_FILL_H */
