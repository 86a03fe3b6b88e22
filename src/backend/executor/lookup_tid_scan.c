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
#include "aio/executor_run.h"
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

	/* the scan has begun anew */
	if (node->tss_TidPtr < lookup->position)
		lookup->looked = 0;
	lookup->window.needed += Max(node->tss_TidPtr - lookup->position, 0);
	lookup->position = node->tss_TidPtr;
	if (waits)
		AioWindowAdjust(&lookup->window, true);
	looked = read_pages(lookup,
						Min(node->tss_NumTids,
							node->tss_TidPtr + 1 + lookup->window.distance),
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

static bool
open_window(AioLookupTids *lookup)
{
	PlanState  *ps = &lookup->node->ss.ps;
	int			limit;

	if (lookup->window.distance_max > 0)
		return true;
	limit = AioLookupLimit(lookup->node->ss.ss_currentRelation);
	if (limit == 0)
		return false;
	AioWindowOpen(&lookup->window, limit,
				  !AioAllRowsWanted(ps->state, ps->plan, true));
	return true;
}

/* Look further ahead whenever the scan has returned some rows. */
void
AioGoOnLookingUpTids(AioLookupTids *lookup)
{
	if (lookup->goes_on || !open_window(lookup) || lookup->window.distance == 0)
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
		ItemPointerGetBlockNumber(&node->tss_TidList[node->tss_TidPtr]) != block ||
		!open_window(lookup))
		return;
	look_up(lookup, true);
	AioGoOnLookingUpTids(lookup);
}
