/*-------------------------------------------------------------------------
 *
 * gist_drain.c
 *	  Insert sorted entries into a GiST index.
 *
 * Upstream's insert searches for a leaf for the first entry, and those that
 * follow go to the same leaf as far as they belong there (gist_internals.c).
 * Which they are shows there only, so entries are dealt out to tasks in groups
 * that may take several leaves: large ones, so that a leaf is not visited
 * again for the next group, but as many as there may be tasks.
 *
 * Tests: src/test/aio/index/t/001_backlog.pl,
 *		  src/test/aio/index/t/002_random.pl,
 *		  src/test/aio/index/t/017_gist_leaf.pl.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "aio/index_backlog.h"
#include "aio/stats.h"
#include "built_in_ams.h"
#include "gist_fill.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "utils/memutils.h"
#include "utils/rel.h"

typedef struct GistDrain
{
	AioIndexBatch *batch;
	AioEntry   *entries;
	bool	   *inserted;		/* which of them */
	List	   *idle;			/* AioGistVisit that no task has in use */
	MemoryContext context;
} GistDrain;

/* Argument of a task. */
typedef struct GistGroup
{
	GistDrain  *drain;
	uint32		first;
	uint32		end;
} GistGroup;

/*
 * What identifies a visit's memory context, by which it is told from upstream's
 * inserts: those have a GISTSTATE, too, but nothing around it.
 */
static const char visit_ident[] = "of a batch";

/* The visit whose GISTSTATE this is, or NULL if it is not one's. */
AioGistVisit *
AioGistVisitOf(GISTSTATE *giststate)
{
	return giststate->tempCxt->ident == visit_ident ?
		(AioGistVisit *) giststate : NULL;
}

/*
 * AioIndexAmOps.collect: collect what will be on the leaf.  What forms it is
 * batch->own.
 */
bool
AioCollectGist(AioIndexBatch *batch, const AioIndexRow *row,
			   const Datum *values, const bool *isnull)
{
	GISTSTATE  *giststate = batch->own;
	MemoryContext old = MemoryContextSwitchTo(batch->context);
	IndexTuple	tuple;
	bool		small;

	if (!AioCanPlace(batch, values, isnull))
	{
		MemoryContextSwitchTo(old);
		return false;
	}
	if (giststate == NULL)
	{
		batch->own = giststate = initGISTstate(batch->index);
		giststate->tempCxt = AllocSetContextCreate(giststate->scanCxt,
												   "index backlog of GiST entries, one row",
												   ALLOCSET_DEFAULT_SIZES);
	}
	MemoryContextSwitchTo(giststate->tempCxt);
	tuple = gistFormTuple(giststate, batch->index, values, isnull, true);
	small = IndexTupleSize(tuple) <= AIO_SMALL_ENTRY;
	if (small)
		AioBatchAddTuple(batch, row, tuple);
	MemoryContextSwitchTo(old);
	MemoryContextReset(giststate->tempCxt);
	return small;
}

/* AioIndexAmOps.forget */
void
AioForgetGist(AioIndexBatch *batch)
{
	MemoryContextDelete(((GISTSTATE *) batch->own)->scanCxt);
	batch->own = NULL;
}

static AioGistVisit *
make_visit(GistDrain *drain)
{
	MemoryContext old = MemoryContextSwitchTo(drain->context);
	AioGistVisit *visit = (AioGistVisit *)
		repalloc(initGISTstate(drain->batch->index), sizeof(AioGistVisit));

	visit->giststate.tempCxt = AllocSetContextCreate(drain->context, "GiST leaf visit",
													 ALLOCSET_DEFAULT_SIZES);
	MemoryContextSetIdentifier(visit->giststate.tempCxt, visit_ident);
	MemoryContextSwitchTo(old);
	return visit;
}

/* Insert an entry, and those before 'end' that go to the same leaf. */
static void
visit_leaf(AioGistVisit *visit, GistDrain *drain, uint32 entry, uint32 end)
{
	AioIndexBatch *batch = drain->batch;
	MemoryContext old = MemoryContextSwitchTo(visit->giststate.tempCxt);

	aio_session_stats_data.leaf_visits++;
	visit->next = &drain->entries[entry + 1];
	visit->inserted = &drain->inserted[entry + 1];
	visit->nnext = end - (entry + 1);
	memset(visit->downlinks, 0, sizeof(visit->downlinks));
	gistdoinsert(batch->index, drain->entries[entry].tuple, 0, &visit->giststate,
				 batch->heap, false);
	MemoryContextSwitchTo(old);
	MemoryContextReset(visit->giststate.tempCxt);
}

/* AioTaskBody: insert a group of entries. */
static void
insert_group(void *arg)
{
	GistGroup  *group = arg;
	GistDrain  *drain = group->drain;
	AioGistVisit *visit;

	if (drain->idle != NIL)
	{
		visit = llast(drain->idle);
		drain->idle = list_delete_last(drain->idle);
	}
	else
		visit = make_visit(drain);

	for (uint32 i = group->first; i < group->end; i++)
	{
		CHECK_FOR_INTERRUPTS();
		if (!drain->inserted[i])
			visit_leaf(visit, drain, i, group->end);
	}

	Assert(CurrentMemoryContext == drain->context);
	drain->idle = lappend(drain->idle, visit);
}

/*
 * A step by which all of n groups are met, each far from those just before.
 * Leaves that are split in the order of their keys stay half empty.
 */
static uint32
scatter(uint32 n)
{
	uint32		step = n * 0.618;

	while (step > 1)
	{
		uint32		a = n;
		uint32		b = step;

		while (b > 0)
		{
			uint32		rest = a % b;

			a = b;
			b = rest;
		}
		if (a == 1)
			break;
		step--;
	}
	return Max(step, 1);
}

/* AioIndexAmOps.drain: groups of entries are tasks, if there is a scope. */
void
AioDrainGist(AioIndexBatch *batch, AioEntry *entries, AioScope *scope)
{
	AioTaskOptions options = {.subject = batch->index};
	GistDrain  *drain = palloc(sizeof(GistDrain));
	uint32		size = scope == NULL ? AIO_GIST_GROUP_MAX :
		Min(1 + batch->nentries / AioTaskLimit(), AIO_GIST_GROUP_MAX);
	uint32		ngroups = (batch->nentries + size - 1) / size;
	uint32		step = 1;

	/* tasks outlive this function */
	Assert(!batch->unique);
	drain->batch = batch;
	drain->entries = entries;
	drain->inserted = palloc0_array(bool, batch->nentries);
	drain->idle = NIL;
	drain->context = CurrentMemoryContext;
	if ((Size) batch->nentries * IndexTupleSize(entries[0].tuple) >
		(Size) RelationGetNumberOfBlocks(batch->index) * (BLCKSZ / 2))
		step = scatter(ngroups);
	for (uint32 i = 0; i < ngroups; i++)
	{
		uint32		first = (uint64) i * step % ngroups * size;
		GistGroup	group = {
			.drain = drain,
			.first = first,
			.end = first + Min(size, batch->nentries - first),
		};

		if (scope != NULL)
			AioSpawn(scope, &options, insert_group, &group, sizeof(group));
		else
			insert_group(&group);
	}
}
