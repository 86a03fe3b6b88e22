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
 * INVARIANT-94: an operator class of which it is not known for which values it
 * raises an error, as that of btree_gist does for infinite dates, is asked when
 * an entry is collected.  Unless the root is a leaf, an insert begins by asking
 * for the penalty of adding the entry to one of the root.  That is asked then.
 * If the answer is an error, the insert would have raised it; if not, the
 * values are such that can be compared with others.
 *
 * Tests: src/test/aio/index/t/001_backlog.pl,
 *		  src/test/aio/index/t/002_random.pl,
 *		  src/test/aio/index/t/017_gist_leaf.pl,
 *		  src/test/aio/index/t/018_first_error.pl.
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
#include "catalog/pg_type_d.h"
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

/* What makes entries of rows: batch->own, in giststate's memory. */
typedef struct GistCollector
{
	GISTSTATE  *giststate;
	bool		declines;		/* all entries */
	bool		tries;			/* whether there is a place for each */
	Page		page;			/* next to what the root has; or NULL */
} GistCollector;

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
 * Could an operator class of this index raise an error that depends on what
 * else is in the index, so that asking in advance, of one entry, tells nothing?
 * That of ranges could, as numerics may be too far from each other.  What a
 * multirange is made of does not show here.
 */
static bool
values_are_declined(Relation index)
{
	for (int i = 0; i < IndexRelationGetNumberOfKeyAttributes(index); i++)
	{
		Oid			type = TupleDescAttr(RelationGetDescr(index), i)->atttypid;

		if (AioOpclassIsBuiltIn(index, i) &&
			(type == NUMRANGEOID || type == ANYRANGEOID))
			return true;
	}
	return false;
}

/*
 * Could operator classes of this index raise an error for a value, other than
 * AioCanPlace() tells of?
 */
static bool
values_are_tried(Relation index)
{
	for (int i = 0; i < IndexRelationGetNumberOfKeyAttributes(index); i++)
	{
		if (!AioOpclassIsBuiltIn(index, i))
			return true;
	}
	return false;
}

static bool
column_is_null(IndexTuple tuple, int column, GISTSTATE *giststate)
{
	bool		isnull;

	(void) index_getattr(tuple, column + 1, giststate->leafTupdesc, &isnull);
	return isnull;
}

/*
 * An inner page that has one entry of the root, the first one whose first
 * column is not null; or NULL if there is none, or if the root is a leaf.
 */
static Page
entry_of_root(Relation index, GISTSTATE *giststate)
{
	Buffer		buffer = ReadBuffer(index, GIST_ROOT_BLKNO);
	Page		root = BufferGetPage(buffer);
	Page		page = NULL;

	LockBuffer(buffer, GIST_SHARE);
	gistcheckpage(index, buffer);
	if (!GistPageIsLeaf(root))
	{
		OffsetNumber max = PageGetMaxOffsetNumber(root);

		for (OffsetNumber i = FirstOffsetNumber; i <= max && page == NULL; i++)
		{
			IndexTuple	entry = (IndexTuple) PageGetItem(root, PageGetItemId(root, i));

			if (column_is_null(entry, 0, giststate))
				continue;
			page = MemoryContextAlloc(giststate->scanCxt, BLCKSZ);
			gistinitpage(page, 0);
			gistfillbuffer(page, &entry, 1, FirstOffsetNumber);
		}
	}
	UnlockReleaseBuffer(buffer);
	return page;
}

/*
 * Would gistchoose(), looking for a place for an entry in the root, call for
 * each column that is not null the operator class, to compare it with this
 * entry of the root?  The first entry that is better than all before has all of
 * its columns looked at, and nulls do not go with others.
 */
static bool
is_compared(IndexTuple of_root, const bool *isnull, int nkeys,
			GISTSTATE *giststate)
{
	for (int i = 0; i < nkeys; i++)
	{
		if (!isnull[i] && (isnull[0] || column_is_null(of_root, i, giststate)))
			return false;
	}
	return true;
}

/*
 * Do what an insert would do first, where the root is not a leaf: ask for the
 * penalty of adding a tuple to an entry of the root.  If the values have no
 * place in the index, the error comes now, in the order of rows.  Returns false
 * if it is not known that the insert would ask.
 */
static bool
try_to_place(GistCollector *collector, Relation index, IndexTuple tuple,
			 const bool *isnull)
{
	GISTSTATE  *giststate = collector->giststate;
	Page		page = collector->page;

	if (!collector->tries)
		return true;
	if (page == NULL)
		page = entry_of_root(index, giststate);
	collector->page = page;
	if (page == NULL)
		return false;
	if (!is_compared((IndexTuple) PageGetItem(page, PageGetItemId(page, FirstOffsetNumber)),
					 isnull, IndexRelationGetNumberOfKeyAttributes(index), giststate))
	{
		/* perhaps with another one, next time */
		pfree(page);
		collector->page = NULL;
		return false;
	}
	(void) gistchoose(index, page, tuple, giststate);
	return true;
}

/* AioCanPlace(): what is below is within the boxes that are there. */
static bool
root_is_ordinary(Relation index)
{
	Buffer		buffer = ReadBuffer(index, GIST_ROOT_BLKNO);
	Page		root = BufferGetPage(buffer);
	TupleDesc	desc = RelationGetDescr(index);
	bool		result;

	LockBuffer(buffer, GIST_SHARE);
	gistcheckpage(index, buffer);
	result = !GistPageIsLeaf(root);
	for (OffsetNumber n = FirstOffsetNumber;
		 result && n <= PageGetMaxOffsetNumber(root); n++)
	{
		IndexTuple	entry = (IndexTuple) PageGetItem(root, PageGetItemId(root, n));

		for (int i = 0; i < IndexRelationGetNumberOfKeyAttributes(index); i++)
		{
			bool		isnull;
			Datum		value = index_getattr(entry, i + 1, desc, &isnull);

			if (TupleDescAttr(desc, i)->atttypid == BOXOID && !isnull)
				result &= AioBoxIsOrdinary(DatumGetBoxP(value));
		}
	}
	UnlockReleaseBuffer(buffer);
	return result;
}

static GistCollector *
make_collector(AioIndexBatch *batch)
{
	MemoryContext old = MemoryContextSwitchTo(batch->context);
	GISTSTATE  *giststate = initGISTstate(batch->index);
	GistCollector *collector = MemoryContextAlloc(giststate->scanCxt,
												  sizeof(GistCollector));

	giststate->tempCxt = AllocSetContextCreate(giststate->scanCxt,
											   "index backlog of GiST entries, one row",
											   ALLOCSET_DEFAULT_SIZES);
	collector->giststate = giststate;
	collector->declines = values_are_declined(batch->index);
	collector->tries = values_are_tried(batch->index);
	collector->page = NULL;
	MemoryContextSwitchTo(old);
	return collector;
}

/*
 * AioIndexAmOps.collect: collect what will be on the leaf.  What forms it is
 * batch->own.
 */
bool
AioCollectGist(AioIndexBatch *batch, const AioIndexRow *row,
			   const Datum *values, const bool *isnull)
{
	GistCollector *collector = batch->own;
	MemoryContext old;
	IndexTuple	tuple;
	bool		collected;

	if (!AioCanPlace(batch, values, isnull, root_is_ordinary))
		return false;
	if (collector == NULL)
		batch->own = collector = make_collector(batch);
	if (collector->declines)
		return false;
	old = MemoryContextSwitchTo(collector->giststate->tempCxt);
	tuple = gistFormTuple(collector->giststate, batch->index, values, isnull, true);
	collected = IndexTupleSize(tuple) <= AIO_SMALL_ENTRY &&
		try_to_place(collector, batch->index, tuple, isnull);
	if (collected)
		AioBatchAddTuple(batch, row, tuple);
	MemoryContextSwitchTo(old);
	MemoryContextReset(collector->giststate->tempCxt);
	return collected;
}

/* AioIndexAmOps.forget */
void
AioForgetGist(AioIndexBatch *batch)
{
	GistCollector *collector = batch->own;

	MemoryContextDelete(collector->giststate->scanCxt);
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
