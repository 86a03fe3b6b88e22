/*-------------------------------------------------------------------------
 *
 * lookup_tid_scan.c
 *	  Scans with an array of TIDs: read pages ahead.
 *
 * Such a scan has sorted all its TIDs before it reads the first row, without
 * those that are past the end of the table.  When it has to wait for a page,
 * those of the TIDs after it are read as well, neighbours by one I/O.
 *
 * Tests: src/test/aio/lookup/t/005_tids.pl.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "aio/block.h"
#include "aio/read.h"
#include "aio/usage.h"
#include "executor/executor.h"
#include "lookup.h"
#include "storage/bufmgr.h"

/* Those of TIDs from 'first' on that are on the same page, or on the next. */
static int
count_run(const TidScanState *node, int first, int end, int *nblocks)
{
	BlockNumber block = ItemPointerGetBlockNumber(&node->tss_TidList[first]);
	int			i = first + 1;

	*nblocks = 1;
	for (; i < end; i++)
	{
		BlockNumber next = ItemPointerGetBlockNumber(&node->tss_TidList[i]);

		if (next > block + *nblocks)
			break;
		if (next == block + *nblocks)
			(*nblocks)++;
	}
	return i - first;
}

/*
 * On how many pages are the TIDs from 'first' on?  That of the TID before them
 * is not counted.
 */
static int
count_pages(const TidScanState *node, int first, int end)
{
	BlockNumber last = first > 0 ?
		ItemPointerGetBlockNumber(&node->tss_TidList[first - 1]) : InvalidBlockNumber;
	int			npages = 0;

	for (int i = first; i < end; i++)
	{
		BlockNumber block = ItemPointerGetBlockNumber(&node->tss_TidList[i]);

		npages += block != last;
		last = block;
	}
	return npages;
}

/*
 * The node is rescanned, or ends: what is ahead has been looked up in vain.
 * Its list of TIDs is there for a moment yet.
 */
static void
forget_ahead(Datum arg)
{
	AioLookupTids *lookup = (AioLookupTids *) DatumGetPointer(arg);
	TidScanState *node = lookup->node;
	int			ahead = Max(node->tss_TidPtr, 0) + 1;

	lookup->watches_rescan = false;
	if (node->tss_TidList != NULL && lookup->looked > ahead)
		lookup->window.in_vain += count_pages(node, ahead, lookup->looked);
	lookup->position = 0;
	lookup->looked = 0;
}

/* How many rows are wanted, after the one at hand?  Each has a TID. */
static void
find_wanted(AioLookupTids *lookup)
{
	uint64		rows = AioRowsOfPath(lookup->path, AIO_LOOKUP_SCAN);

	lookup->window.wanted = rows == AIO_ALL_ROWS ? rows : rows - 1;
	if (lookup->watches_rescan)
		return;
	RegisterExprContextCallback(lookup->node->ss.ps.ps_ExprContext, forget_ahead,
								PointerGetDatum(lookup));
	lookup->watches_rescan = true;
}

/* Begin to read pages of TIDs up to 'end'.  Returns how many TIDs are new. */
static int
read_pages(AioLookupTids *lookup, int end, bool *has_read)
{
	TidScanState *node = lookup->node;
	int			begin = Max(lookup->looked, node->tss_TidPtr + 1);
	int			i = begin;
	bool		full = false;

	while (i < end && !full)
	{
		BlockNumber block = ItemPointerGetBlockNumber(&node->tss_TidList[i]);
		int			nblocks;
		int			ntids = count_run(node, i, end, &nblocks);

		while (nblocks > 0 && !full)
		{
			int			n = nblocks;
			AioReadAheadResult result =
				AioReadAheadCombined(node->ss.ss_currentRelation, block, &n);

			full = result == AIO_READ_AHEAD_FULL;
			if (full)
				break;
			for (int page = 0; page < n; page++)
				AioCountLookup(result == AIO_READ_AHEAD_BEGUN, i - node->tss_TidPtr);
			*has_read |= result == AIO_READ_AHEAD_BEGUN;
			block += n;
			nblocks -= n;
		}
		if (!full)
			i += ntids;
	}
	AioSubmitBatch();
	lookup->looked = i;
	return i - begin;
}

/* Read as far ahead as the window allows. */
static void
look_up(AioLookupTids *lookup, bool waits)
{
	TidScanState *node = lookup->node;
	bool		has_read = false;
	int			looked;

	find_wanted(lookup);

	/* a cursor has begun anew */
	if (node->tss_TidPtr < lookup->position)
		lookup->looked = 0;
	else
		lookup->window.needed += count_pages(node, lookup->position,
											 node->tss_TidPtr);
	lookup->position = node->tss_TidPtr;
	if (waits)
		AioWindowAdjust(&lookup->window, true);
	looked = read_pages(lookup,
						Min(node->tss_NumTids,
							node->tss_TidPtr + 1 +
							AioWindowDistance(&lookup->window)),
						&has_read);
	if (looked > 0 && !waits)
		AioWindowLooked(&lookup->window, looked, has_read);
}

/* AioLookupNext: the scan's next row; look further ahead now and then. */
static TupleTableSlot *
next_row(void *arg)
{
	AioLookupTids *lookup = arg;
	TidScanState *node = lookup->node;
	PlanState  *ps = &node->ss.ps;
	TupleTableSlot *row = AioLookupBelow(ps, AIO_LOOKUP_SCAN);

	if (TupIsNull(row) || !ScanDirectionIsForward(ps->state->es_direction) ||
		(node->tss_TidPtr >= lookup->position &&
		 (lookup->looked >= node->tss_NumTids ||
		  lookup->looked - node->tss_TidPtr > lookup->window.distance * 3 / 4)))
		return row;
	look_up(lookup, false);
	if (lookup->window.distance == 0)
	{
		AioLookupDetach(ps, AIO_LOOKUP_SCAN);
		lookup->goes_on = false;
	}
	return row;
}

/* Look further ahead whenever the scan has returned some rows. */
void
AioGoOnLookingUpTids(AioLookupTids *lookup)
{
	if (lookup->goes_on || lookup->window.distance == 0)
		return;
	lookup->goes_on = true;
	AioLookupAttach(&lookup->node->ss.ps, AIO_LOOKUP_SCAN, next_row, lookup);
}

/*
 * Somebody is about to read this page of the scan's table, which is not in
 * memory.  If it is that of the TID at which the scan is, look up those after
 * it, now and while it goes on.
 *
 * Called before the read begins: no AIO handle is in use yet, and no page of
 * the table is locked.
 */
void
AioLookUpTids(AioLookupTids *lookup, BlockNumber block)
{
	TidScanState *node = lookup->node;

	if (node->tss_TidList == NULL || node->tss_TidPtr < 0 ||
		node->tss_TidPtr >= node->tss_NumTids ||
		!ScanDirectionIsForward(node->ss.ps.state->es_direction) ||
		ItemPointerGetBlockNumber(&node->tss_TidList[node->tss_TidPtr]) != block)
		return;
	look_up(lookup, true);
	AioGoOnLookingUpTids(lookup);
}
