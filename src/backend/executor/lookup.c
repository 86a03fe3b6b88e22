/*-------------------------------------------------------------------------
 *
 * lookup.c
 *	  Lookups of running statements, and when to look ahead.
 *
 * A statement that finds everything in memory does not come here.  When a few
 * pages have not been in memory, its plan is searched for lookups
 * (lookup_plan.c).  From then on each wait is counted for the lookup whose page
 * it is about.  A loop that has waited twice takes rows ahead (lookup_loop.c);
 * a scan reads ahead at once (lookup_scan.c).
 *
 * INVARIANT-64: whoever reads a page does not expect that invalidations are
 * processed meanwhile, and what is done here on its behalf looks up catalogs.
 * So it is not done for reads of catalogs, and what an access method keeps in
 * rd_amcache is not freed meanwhile (amcache.c).  Nothing else of a relation
 * that is in use changes, because its user has a lock on it.
 *
 * Tests: src/test/aio/lookup.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "aio/executor_run.h"
#include "aio/io_internal.h"
#include "aio/index_insert.h"
#include "aio/lookup.h"
#include "aio/quick_io.h"
#include "aio/read.h"
#include "aio/usage.h"
#include "catalog/catalog.h"
#include "executor/executor.h"
#include "lookup.h"
#include "miscadmin.h"
#include "storage/aio.h"
#include "storage/lock.h"
#include "utils/rel.h"

/*
 * Waits of a statement after which its plan is searched.  A statement that
 * looks up a single row does not have as many.
 */
#define WAITS_BEFORE_SEARCH		3

/*
 * Somebody waits for a page of this relation; or for NULL, of one of those that
 * the loop looks up, perhaps.  Returns whether the loop has looked it up too
 * late, or it has been forgotten again.
 */
static bool
loop_waits(AioLookups *lookups, AioLookupLoop *loop, Relation rel)
{
	Relation	heap = AioLoopReads(loop, rel);
	int			limit;

	if (heap == NULL)
		return false;
	if (loop->open)
		return true;
	if (++loop->waits < loop->waits_wanted)
		return false;
	limit = AioLookupLimit(heap);
	if (limit > 0)
		AioOpenLoop(lookups, loop, limit);
	return false;
}

static bool
open_scan(AioLookups *lookups, AioLookupScan *scan)
{
	PlanState  *node = scan->target.node;
	int			limit;
	MemoryContext old;

	if (scan->window.distance_max > 0)
		return true;
	limit = AioLookupLimit(scan->target.heap);
	if (limit == 0)
		return false;

	/* a bitmap is made at once */
	if (!IsA(node, BitmapIndexScanState))
	{
		old = MemoryContextSwitchTo(node->state->es_query_cxt);
		scan->path = AioFindRowsPath(lookups, node);
		MemoryContextSwitchTo(old);
	}
	AioWindowOpen(&scan->window, limit, scan->path == NULL ? AIO_ALL_ROWS : 0);
	return true;
}

static bool
open_tid_scan(AioLookups *lookups, AioLookupTids *tids)
{
	PlanState  *node = &tids->node->ss.ps;
	int			limit;
	MemoryContext old;

	if (tids->window.distance_max > 0)
		return true;
	limit = AioLookupLimit(tids->node->ss.ss_currentRelation);
	if (limit == 0)
		return false;
	old = MemoryContextSwitchTo(node->state->es_query_cxt);
	tids->path = AioFindRowsPath(lookups, node);
	MemoryContextSwitchTo(old);
	AioWindowOpen(&tids->window, limit, 0);
	return true;
}

/* Somebody waits for a page of this relation, in a statement. */
static void
wait_begins(const QueryDesc *query, Relation rel, BlockNumber block)
{
	AioLookups *lookups = AioLookupsOf(query);
	bool		late = false;

	foreach_ptr(AioLookupScan, scan, lookups->scans)
	{
		if ((scan->target.heap == rel || scan->target.index == rel) &&
			open_scan(lookups, scan))
			AioLookUpScan(scan, rel, block);
	}
	foreach_ptr(AioLookupTids, tids, lookups->tid_scans)
	{
		if (tids->node->ss.ss_currentRelation == rel &&
			open_tid_scan(lookups, tids))
			AioLookUpTids(tids, block);
	}

	/* a search would take longer; scans have read neighbours together */
	if (lookups->loops != NIL && AioReadIsQuick(rel->rd_locator.spcOid))
		return;
	foreach_ptr(AioLookupLoop, loop, lookups->loops)
	{
		if (!loop->closed_for_good)
			late |= loop_waits(lookups, loop, rel);
	}
	if (late)
		aio_usage[AIO_KIND_LOOKUP].waited++;
}

/* aio_read_hook: somebody waits for a page. */
static void
page_is_missed(ReadBuffersOperation *operation)
{
	AioExecutorRun *run = AioRunning();

	if (operation->rel != NULL && operation->forknum == MAIN_FORKNUM)
	{
		aio_pages_missed++;
		aio_rel_missed = RelationGetRelid(operation->rel);
	}
	if (run == NULL || aio_lookup_ahead == 0 || io_method == IOMETHOD_SYNC ||
		operation->rel == NULL || operation->forknum != MAIN_FORKNUM ||
		IsCatalogRelation(operation->rel) || !IsTransactionState() ||
		CritSectionCount > 0 || AioHeldLWLocks() > 0)
		return;
	if (++run->misses < WAITS_BEFORE_SEARCH && !run->goes_on)
		return;

	aio_in_read_hook = true;
	PG_TRY();
	{
#ifdef USE_ASSERT_CHECKING
		long		nlocks = hash_get_num_entries(GetLockMethodLocalHash());
#endif

		wait_begins(run->query, operation->rel, operation->blocknum);

		/* INVARIANT-102: nothing is locked that a statement would not */
		Assert(hash_get_num_entries(GetLockMethodLocalHash()) == nlocks);
	}
	PG_FINALLY();
	{
		aio_in_read_hook = false;
	}
	PG_END_TRY();
}

/*
 * Tasks have awaited pages to insert the index entries of a row: those of the
 * next rows may be read ahead, if the statement knows them.
 */
static void
entries_awaited(const EState *estate)
{
	AioExecutorRun *run = AioRunning();
	AioLookups *lookups;

	if (run == NULL || run->query->estate != estate || aio_lookup_ahead == 0 ||
		++run->misses < WAITS_BEFORE_SEARCH)
		return;
	lookups = AioLookupsOf(run->query);
	foreach_ptr(AioLookupLoop, loop, lookups->loops)
	{
		if (loop->insert != NULL && !loop->open && !loop->closed_for_good)
			(void) loop_waits(lookups, loop, NULL);
	}
}

#ifdef USE_ASSERT_CHECKING

/* aio_before_run: with aio.debug_lookups, look ahead from the first row. */
static void
look_at_once(QueryDesc *query)
{
	if (aio_debug_lookups > 0 && aio_lookup_ahead > 0 &&
		io_method != IOMETHOD_SYNC && !query->already_executed)
	{
		AioLookups *lookups = AioLookupsOf(query);

		foreach_ptr(AioLookupScan, scan, lookups->scans)
		{
			if (open_scan(lookups, scan))
				AioGoOnLookingUp(scan);
		}
		foreach_ptr(AioLookupTids, tids, lookups->tid_scans)
		{
			if (open_tid_scan(lookups, tids))
				AioGoOnLookingUpTids(tids);
		}
		foreach_ptr(AioLookupLoop, loop, lookups->loops)
		{
			Relation	heap = AioLoopReads(loop, NULL);
			int			limit = heap != NULL ? AioLookupLimit(heap) : 0;

			/* a run that moves nowhere has been here before */
			if (limit > 0 && !loop->open && !loop->closed_for_good)
				AioOpenLoop(lookups, loop, limit);
		}
	}
}

#endif

/* While libraries are preloaded. */
void
AioLookupInitialize(void)
{
	aio_read_hook = page_is_missed;
	aio_entries_awaited_hook = entries_awaited;
#ifdef USE_ASSERT_CHECKING
	aio_before_run = look_at_once;
#endif
}
