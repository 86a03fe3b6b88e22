/*-------------------------------------------------------------------------
 *
 * gist_internals.c
 *	  Put many entries into a leaf of a GiST index in one visit.  Included at
 *	  the end of gist.c.
 *
 * A GiST index may have an entry on any leaf, provided that the keys of the
 * downlinks above cover the entry.  Upstream searches for the leaf whose
 * downlinks have to be extended least, which means a comparison with every item
 * of every page on the way; that is what an insert costs.  The entries that
 * follow in a sorted batch are mostly covered by the downlinks on that way as
 * they are.  So they go to the same leaf as long as it has room, together,
 * under one lock and with one record of WAL, of the kind that upstream has for
 * any number of tuples.
 *
 * INVARIANT-83: an entry is put into a leaf that has not been searched for only
 * if no downlink on the way there would have to be extended for it.  What is
 * compared are copies, made when the page above was locked.  Keys of downlinks
 * only grow, unless the page below is split or deleted, and who has locked the
 * leaf notices that by its NSN, as upstream's insert does before it gets here.
 * If a page further up has been split, the keys above the leaf's downlink still
 * cover that, and therefore what it covers.  Where upstream's insert has found
 * another way to the leaf, to complete a split, there are no copies of all
 * downlinks, and the entry that it has is the only one.
 *
 * Tests: src/test/aio/index/t/017_gist_leaf.pl.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "gist_fill.h"

/* what a record of several tuples consists of, but for them */
#define RECORD_PARTS	4

/* How many pages are above that of an insert's stack? */
static int
pages_above(const GISTInsertStack *stack)
{
	int			n = 0;

	while (stack->parent != NULL)
	{
		stack = stack->parent;
		n++;
	}
	return n;
}

/*
 * gistgetadjusted(), for an insert that goes on to the page to which this
 * downlink leads.  The page it is on, that of the stack, is locked.
 */
IndexTuple
AioGistAdjust(Relation index, const GISTInsertStack *stack,
			  IndexTuple downlink, IndexTuple tuple, GISTSTATE *giststate)
{
	IndexTuple	adjusted = gistgetadjusted(index, downlink, tuple, giststate);
	AioGistVisit *visit = AioGistVisitOf(giststate);

	if (visit != NULL)
	{
		int			level = pages_above(stack);

		if (level < AIO_GIST_HEIGHT_MAX)
			visit->downlinks[level] =
				adjusted != NULL ? adjusted : CopyIndexTuple(downlink);
	}
	return adjusted;
}

/* Are there copies of all downlinks on the way to the leaf of a stack? */
static bool
knows_downlinks(const AioGistVisit *visit, const GISTInsertStack *stack)
{
	int			level = pages_above(stack);

	if (level > AIO_GIST_HEIGHT_MAX)
		return false;
	for (; stack->parent != NULL; stack = stack->parent)
	{
		const IndexTupleData *downlink = visit->downlinks[--level];

		if (downlink == NULL ||
			ItemPointerGetBlockNumber(&downlink->t_tid) != stack->blkno)
			return false;
	}
	return true;
}

/* Do the downlinks to the leaf of a stack cover a tuple? */
static bool
is_covered(AioGistVisit *visit, Relation index, const GISTInsertStack *stack,
		   IndexTuple tuple)
{
	for (int level = pages_above(stack) - 1; level >= 0; level--)
	{
		if (gistgetadjusted(index, visit->downlinks[level], tuple,
							&visit->giststate) != NULL)
			return false;
	}
	return true;
}

/*
 * Add the tuples that follow and belong to the leaf as well, as many as it has
 * room for, to the one in tuples.  Returns how many there are.
 */
static int
gather(AioGistVisit *visit, Relation index, const GISTInsertStack *stack,
	   Size freespace, IndexTuple *tuples)
{
	Page		leaf = BufferGetPage(stack->buffer);
	int			n = 1;
	int			misses = 0;

	for (uint32 i = 0; i < visit->nnext && n < AIO_GIST_GROUP_MAX &&
		 misses < AIO_GIST_MISSES_MAX; i++)
	{
		if (visit->inserted[i])
			continue;
		tuples[n] = visit->next[i].tuple;
		if (gistnospace(leaf, tuples, n + 1, InvalidOffsetNumber, freespace))
			break;
		if (is_covered(visit, index, stack, tuples[n]))
		{
			visit->inserted[i] = true;
			misses = 0;
			n++;
		}
		else
			misses++;
	}
	return n;
}

/*
 * Insert a tuple into the leaf of an insert's stack, which is locked, and if it
 * is one of a batch, the tuples that follow it there and belong to that leaf,
 * too.  Returns whether the leaf has been split.
 */
bool
AioGistInsertOnLeaf(void *state, GISTInsertStack *stack, GISTSTATE *giststate,
					IndexTuple tuple)
{
	GISTInsertState *insert = state;
	AioGistVisit *visit = AioGistVisitOf(giststate);
	IndexTuple	tuples[AIO_GIST_GROUP_MAX];
	int			n = 1;

	if (visit == NULL)
		return gistinserttuple(insert, stack, giststate, tuple, InvalidOffsetNumber);

	tuples[0] = tuple;
	if (!gistnospace(BufferGetPage(stack->buffer), tuples, 1,
					 InvalidOffsetNumber, insert->freespace) &&
		knows_downlinks(visit, stack))
	{
		n = gather(visit, insert->r, stack, insert->freespace, tuples);
		if (RelationNeedsWAL(insert->r))
			XLogEnsureRecordSpace(0, n + RECORD_PARTS);
	}
	return gistinserttuples(insert, stack, giststate, tuples, n,
							InvalidOffsetNumber, InvalidBuffer, InvalidBuffer,
							false, false);
}
