/*-------------------------------------------------------------------------
 *
 * lookup_scan.c
 *	  Scans in the order of an index: read heap pages ahead.
 *
 * The page of the index that a scan has in hand tells which rows it will
 * return next.  When the scan has to wait for a heap page, the pages of the
 * rows after it are read as well, and the next page of the index.  A scan whose
 * pages are in memory never comes here, and nothing is kept for it.  Pages that
 * are neighbours are read by one I/O.  What a scan with array keys is going to
 * search for is probed (lookup_search.c).
 *
 * Values that are stored out of line are read by such scans, too, but not by
 * those of a plan.
 *
 * Nothing is read ahead of a scan that a join leaves at the first match.
 *
 * What is read ahead is a forecast: the scan goes its own way, and filters,
 * visibility and entries that are killed do not concern us.
 *
 * Tests: src/test/aio/lookup, src/test/aio/toast.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/heaptoast.h"
#include "access/relscan.h"
#include "access/visibilitymap.h"
#include "aio/block.h"
#include "aio/lookup.h"
#include "aio/quick_io.h"
#include "aio/read.h"
#include "aio/usage.h"
#include "catalog/catalog.h"
#include "executor/executor.h"
#include "lookup.h"
#include "storage/bufmgr.h"
#include "utils/rel.h"

/* chunks of a value that are on one page of a TOAST table, if it has no gaps */
#define CHUNKS_PER_PAGE		EXTERN_TUPLES_PER_PAGE

/* How many of these TIDs, and the page of the index, have pages to be read? */
static int
count_pages(const AioLookupScan *lookup, int ntids, bool next)
{
	int			npages = next && BlockNumberIsValid(lookup->next) ? 1 : 0;

	for (int i = 0; i < ntids; i++)
		npages += lookup->pages[i];
	return npages;
}

/* The node is rescanned, or ends: what is ahead has been looked up in vain. */
static void
forget_ahead(Datum arg)
{
	AioLookupScan *lookup = (AioLookupScan *) DatumGetPointer(arg);

	lookup->watches_rescan = false;
	lookup->window.in_vain += count_pages(lookup, lookup->nahead, true);
	lookup->nahead = 0;
	lookup->next = InvalidBlockNumber;
}

/*
 * How many rows are wanted, after the one at hand?  Each comes from a TID, and
 * more TIDs than rows may be looked at.
 */
static void
find_wanted(AioLookupScan *lookup)
{
	PlanState  *node = lookup->target.node;
	uint64		rows;

	if (lookup->path == NULL)
		return;
	rows = AioRowsOfPath(lookup->path, AIO_LOOKUP_SCAN);
	lookup->window.wanted = rows == AIO_ALL_ROWS ? rows : rows - 1;
	if (lookup->watches_rescan)
		return;
	RegisterExprContextCallback(node->ps_ExprContext, forget_ahead,
								PointerGetDatum(lookup));
	lookup->watches_rescan = true;
}

/* The scan, if it has begun. */
static IndexScanDesc
get_scan(const AioLookupScan *lookup)
{
	PlanState  *node = lookup->target.node;
	IndexScanDesc scan;

	if (IsA(node, IndexScanState))
		scan = castNode(IndexScanState, node)->iss_ScanDesc;
	else if (IsA(node, IndexOnlyScanState))
		scan = castNode(IndexOnlyScanState, node)->ioss_ScanDesc;
	else
		scan = castNode(BitmapIndexScanState, node)->biss_ScanDesc;
	return scan != NULL && scan->opaque != NULL ? scan : NULL;
}

/*
 * How many of the TIDs that come next have been looked up already: those up to
 * the one that was looked up last, if that is still to come.
 */
static int
count_known(AioLookupScan *lookup, const ItemPointerData *tids, int ntids)
{
	for (int i = 0; lookup->nahead > 0 && i < ntids; i++)
	{
		if (ItemPointerEquals(unconstify(ItemPointerData *, &tids[i]), &lookup->last))
			return i + 1;
	}
	return 0;
}

/* Neighbouring pages of the table that are going to be read together. */
typedef struct Neighbours
{
	BlockNumber block;			/* the first one */
	int			nblocks;
	int			ahead;			/* rows that come before the first of theirs */
} Neighbours;

/*
 * Begin to read these pages.  Returns false if not all reads can be begun at
 * the moment, and leaves in *pages those that are left.
 */
static bool
read_neighbours(Relation heap, Neighbours *pages, bool *has_read)
{
	while (pages->nblocks > 0)
	{
		int			n = pages->nblocks;
		AioReadAheadResult result = AioReadAheadCombined(heap, pages->block, &n);

		if (result == AIO_READ_AHEAD_FULL)
			return false;
		*has_read |= result == AIO_READ_AHEAD_BEGUN;
		for (int i = 0; i < n; i++)
			AioCountLookup(result == AIO_READ_AHEAD_BEGUN, pages->ahead + 1);
		pages->block += n;
		pages->nblocks -= n;
	}
	return true;
}

/*
 * Of the TIDs that come next, 'known' have been looked up.  What else has been
 * is behind by now, and has been needed.
 */
static void
count_needed(AioLookupScan *lookup, int known)
{
	int			nbehind = Max(lookup->nahead - known, 0);

	lookup->window.needed += count_pages(lookup, nbehind, known == 0);
	if (known == 0)
		lookup->next = InvalidBlockNumber;
	memmove(lookup->pages, lookup->pages + nbehind,
			(lookup->nahead - nbehind) * sizeof(bool));

	/* a scan that goes back to a mark has needed more of them */
	for (int i = lookup->nahead - nbehind; i < known; i++)
		lookup->pages[i] = false;
	lookup->nahead = known;
}

/*
 * Begin to read the heap pages of the rows that come next, as far as the window
 * allows, and the next page of the index.  Returns how many rows have not been
 * looked up before.  *has_read is set if reads have begun.
 */
static int
read_heap_pages(AioLookupScan *lookup, IndexScanDesc scan,
				ScanDirection direction, bool *has_read)
{
	const AioLookupTarget *target = &lookup->target;
	int			distance;
	ItemPointerData tids[AIO_TIDS_MAX];
	BlockNumber next = InvalidBlockNumber;
	BlockNumber last = ItemPointerGetBlockNumberNoCheck(&scan->xs_heaptid);
	Buffer		vmbuffer = InvalidBuffer;
	Neighbours	pages = {0};
	bool		full = false;
	int			ntids;
	int			known;

	/* no more than can be of interest: a short scan may stop soon */
	distance = Max(lookup->window.distance, lookup->nahead);
	ntids = target->ops->upcoming(scan, direction, 0, tids,
								  Min(distance, AIO_TIDS_MAX), &next);
	known = count_known(lookup, tids, ntids);
	count_needed(lookup, known);
	distance = AioWindowDistance(&lookup->window);
	ntids = Min(ntids, distance);
	for (int i = known; i < ntids && !full; i++)
	{
		BlockNumber wanted = ItemPointerGetBlockNumber(&tids[i]);

		lookup->pages[i] = false;
		if (wanted != last &&
			!(target->index_only && VM_ALL_VISIBLE(target->heap, wanted, &vmbuffer)))
		{
			if (pages.nblocks == 0 || wanted != pages.block + pages.nblocks)
			{
				full = !read_neighbours(target->heap, &pages, has_read);
				if (full)
					break;
				pages.block = wanted;
				pages.ahead = i;
			}
			pages.nblocks++;
			lookup->pages[i] = true;
		}
		last = wanted;
	}
	full |= !read_neighbours(target->heap, &pages, has_read);

	/* rows of the pages that are left are looked up next time */
	if (full)
		ntids = pages.ahead;
	if (ntids > known)
	{
		lookup->last = tids[ntids - 1];
		lookup->nahead = ntids;
	}
	if (BufferIsValid(vmbuffer))
		ReleaseBuffer(vmbuffer);
	if (!full && ntids < distance && BlockNumberIsValid(next))
	{
		*has_read |= AioReadAhead(target->index, next) == AIO_READ_AHEAD_BEGUN;
		lookup->next = next;
	}
	AioSubmitBatch();
	return Max(ntids - known, 0);
}

/*
 * Is all quick to read that searches would find?  The index and the table may
 * be in different tablespaces.
 */
static bool
reads_are_quick(const AioLookupTarget *target)
{
	return AioReadIsQuick(target->index->rd_locator.spcOid) &&
		(target->index_only || target->leaf_only ||
		 AioReadIsQuick(target->heap->rd_locator.spcOid));
}

/*
 * Look up what comes next.  'waits' says that the scan is about to wait for a
 * page, and 'in_hand' that it has a page of the index.
 */
static void
look_up(AioLookupScan *lookup, IndexScanDesc scan, bool waits, bool in_hand)
{
	const PlanState *node = lookup->target.node;
	ScanDirection direction = lookup->target.direction;
	bool		has_read = false;
	int			looked = 0;

	if (node != NULL)
		direction = ScanDirectionCombine(node->state->es_direction, direction);
	find_wanted(lookup);
	if (waits)
	{
		lookup->window.needed++;
		AioWindowAdjust(&lookup->window, true);
	}
	if (in_hand && !lookup->target.first_only)
		looked = read_heap_pages(lookup, scan, direction, &has_read);
	if (lookup->searches && !reads_are_quick(&lookup->target))
		looked += AioProbeSearches(lookup, scan, direction, &has_read);
	if (looked > 0 && !waits)
		AioWindowLooked(&lookup->window, looked, has_read);
}

/* AioLookupNext: the scan's next row; look further ahead now and then. */
static TupleTableSlot *
next_row(void *arg)
{
	AioLookupScan *lookup = arg;
	TupleTableSlot *row = AioLookupBelow(lookup->target.node, AIO_LOOKUP_SCAN);
	IndexScanDesc scan;

	if (++lookup->rows <= lookup->window.distance / 4)
		return row;
	lookup->rows = 0;
	scan = get_scan(lookup);
	if (scan != NULL && !TupIsNull(row))
		look_up(lookup, scan, false, true);
	if (lookup->window.distance == 0)
	{
		AioLookupDetach(lookup->target.node, AIO_LOOKUP_SCAN);
		lookup->goes_on = false;
	}
	return row;
}

/* Look further ahead whenever the scan has returned some rows. */
void
AioGoOnLookingUp(AioLookupScan *lookup)
{
	/* a bitmap is made at once */
	if (lookup->goes_on || lookup->window.distance == 0 ||
		IsA(lookup->target.node, BitmapIndexScanState))
		return;
	lookup->goes_on = true;
	AioLookupAttach(lookup->target.node, AIO_LOOKUP_SCAN, next_row, lookup);
}

/*
 * Somebody is about to read this page, which is not in memory.  If it is the
 * page of the row that the scan has found last, or one of the index in which it
 * searches for an element of an array, look up what comes after that.
 *
 * Called before the read begins: no AIO handle is in use yet, and no page of
 * the table or the index is locked.
 */
void
AioLookUpScan(AioLookupScan *lookup, Relation rel, BlockNumber block)
{
	const AioLookupTarget *target = &lookup->target;
	IndexScanDesc scan = get_scan(lookup);

	if (scan == NULL ||
		!((rel == target->index && lookup->searches) ||
		  (rel == target->heap && !target->leaf_only && !target->first_only &&
		   ItemPointerGetBlockNumberNoCheck(&scan->xs_heaptid) == block)))
		return;
	look_up(lookup, scan, true, rel == target->heap);
	AioGoOnLookingUp(lookup);
}

/*
 * Look up what comes next in a scan that no plan makes, and of which all is
 * going to be read.  What is kept of an earlier scan may be wrong, but not the
 * pages.
 */
static void
look_up_all(AioLookupScan *lookup, IndexScanDesc scan, ScanDirection direction,
			int rows_per_page)
{
	int			limit;

	lookup->rows = 0;
	lookup->target.index = scan->indexRelation;
	lookup->target.heap = scan->heapRelation;
	lookup->target.ops = AioLookupAm(scan->indexRelation, scan->heapRelation);
	lookup->target.direction = direction;
	limit = lookup->target.ops == NULL || lookup->target.ops->upcoming == NULL ? 0 :
		AioLookupLimit(scan->heapRelation) * rows_per_page;
	if (limit == 0)
		return;
	if (lookup->window.distance == 0 || lookup->window.distance_max != limit)
		AioWindowOpen(&lookup->window, limit, AIO_ALL_ROWS);
	look_up(lookup, scan, false, true);
}

/*
 * index_getnext_slot(), of CLUSTER, which scans an index without a plan.  Pages
 * of the table are read ahead from the first row on.
 */
bool
AioClusterNextSlot(IndexScanDesc scan, ScanDirection direction,
				   TupleTableSlot *slot)
{
	static AioLookupScan lookup;

	if (!index_getnext_slot(scan, direction, slot))
		return false;
	if (++lookup.rows > lookup.window.distance / 4)
		look_up_all(&lookup, scan, direction, 1);
	return true;
}

/*
 * systable_getnext_ordered(), of a value that is stored out of line.  Once one
 * of its chunks has had to be waited for, the pages of the others are read
 * ahead, as many as the window allows.
 */
HeapTuple
AioNextChunk(SysScanDesc scan, ScanDirection direction)
{
	static AioLookupScan lookup;
	static SysScanDesc open = NULL;
	uint64		missed = aio_pages_missed;
	HeapTuple	chunk = systable_getnext_ordered(scan, direction);

	if (likely(missed == aio_pages_missed && scan != open && !AIO_LOOKUPS_FORCED))
		return chunk;
	if (IsCatalogRelation(scan->heap_rel))
		return chunk;
	if (chunk == NULL)
	{
		/* after an error it may be taken for another one, which does no harm */
		open = NULL;
		return NULL;
	}
	if (scan != open)
	{
		/* all chunks are needed: the window need not find out */
		MemSet(&lookup, 0, sizeof(lookup));
		lookup.window.distance_max = AioLookupLimit(scan->heap_rel) * CHUNKS_PER_PAGE;
		lookup.window.distance = lookup.window.distance_max;
		lookup.window.wanted = AIO_ALL_ROWS;
		open = lookup.window.distance > 0 ? scan : NULL;
		if (open == NULL)
			return chunk;
	}
	else
	{
		if (missed != aio_pages_missed)
		{
			aio_usage[AIO_KIND_LOOKUP].waited++;
			lookup.window.distance = lookup.window.distance_max;
		}

		/* of the next page of the index, nothing has been known */
		if (++lookup.rows <= lookup.window.distance / 2 &&
			lookup.rows <= lookup.nahead)
			return chunk;
	}
	look_up_all(&lookup, scan->iscan, direction, CHUNKS_PER_PAGE);
	return chunk;
}
