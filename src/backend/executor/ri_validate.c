/*-------------------------------------------------------------------------
 *
 * ri_validate.c
 *	  A foreign key is validated row by row: look up ahead what the checks of
 *	  further rows will search for.
 *
 * ALTER TABLE validates a foreign key by one query, if it can.  Otherwise it
 * scans the table and calls the trigger for each row.  When these calls have
 * had to wait for pages, the scan runs ahead of them, as far as the window
 * allows.  The keys of its rows are probed (lookup_probe.c): first steps for
 * all, second steps for those in the nearer half.  Of each row its place is
 * kept; it is fetched again for its check.  The scan's snapshot is registered,
 * so a row that it has found stays there.
 *
 * Rows are checked in the order of the scan, each once.  An error of a row that
 * is ahead, because it cannot be read, is raised at once, and not when its turn
 * has come: nothing is checked after it, and the statement fails in any case.
 *
 * Tests: src/test/aio/ri.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/tableam.h"
#include "access/xact.h"
#include "aio/block.h"
#include "aio/io_internal.h"
#include "aio/lookup.h"
#include "aio/ri.h"
#include "aio/task_port.h"
#include "aio/usage.h"
#include "executor/executor.h"
#include "guard.h"
#include "miscadmin.h"
#include "ri.h"
#include "ri_ring.h"
#include "storage/aio.h"
#include "utils/memutils.h"
#include "utils/rel.h"

/* A row that the scan has found, and that is not checked yet. */
typedef struct ScannedRow
{
	ItemPointerData tid;
	AioRiSteps	steps;
} ScannedRow;

struct AioRiValidation
{
	TableScanDesc scan;
	AioRiSearch *search;		/* NULL: nothing is looked up */
	MemoryContext probe_context;	/* until all probes have ended */
	TupleTableSlot *slot;		/* for rows that are not checked yet */
	uint64		missed;			/* aio_pages_missed before the last check */
	int			waits;
	bool		open;
	AioLookupWindow window;
	bool		at_end;			/* of the scan */

	AioRiRing	ring;			/* of ScannedRow, in the order of the scan */

	/* while rows are looked up */
	AioRiProbes probes;
};

/*
 * A foreign key will be validated by a scan of the referencing table, of which
 * this is given.  It is given back by AioRiEndValidation(), or with the current
 * memory context.
 */
AioRiValidation *
AioRiBeginValidation(Relation rel, Oid constraint_id, TableScanDesc scan)
{
	AioRiValidation *validation = palloc0(sizeof(AioRiValidation));
	AioRiConstraint constraint;

	validation->scan = scan;
	if (!AioIsHeap(rel) || RelationUsesLocalBuffers(rel) ||
		IsolationIsSerializable())
		return validation;
	AioRiGetConstraint(constraint_id, &constraint);
	if (constraint.has_period)
		return validation;
	validation->search = AioRiMakeSearch(&constraint, true, rel);
	validation->slot = table_slot_create(rel, NULL);
	validation->probe_context = AllocSetContextCreate(CurrentMemoryContext,
													  "probes for a validation",
													  ALLOCSET_DEFAULT_SIZES);
	validation->missed = aio_pages_missed;
	return validation;
}

void
AioRiEndValidation(AioRiValidation *validation)
{
	if (validation->slot != NULL)
		ExecDropSingleTupleTableSlot(validation->slot);
	if (validation->probe_context != NULL)
		MemoryContextDelete(validation->probe_context);
	if (validation->ring.members != NULL)
		pfree(validation->ring.members);
	pfree(validation);
}

static void
fetch(AioRiValidation *validation, ScannedRow *row, TupleTableSlot *slot)
{
	TableScanDesc scan = validation->scan;

	if (!table_tuple_fetch_row_version(scan->rs_rd, &row->tid,
									   scan->rs_snapshot, slot))
		elog(ERROR, "could not find a row of relation \"%s\" again",
			 RelationGetRelationName(scan->rs_rd));
}

/* Have a row's key probed, for the first time or again. */
static void
add_key(AioRiValidation *validation, uint32 i, bool again, bool near)
{
	ScannedRow *row = AioRiMember(&validation->ring, i);

	AioRiAddProbes(&validation->probes, validation->search, validation->slot,
				   (int) (i - validation->ring.first), &row->steps, again, near);
}

/* Find out what to probe.  Returns how many rows have not been before. */
static int
add_rows(AioRiValidation *validation)
{
	AioRiRing  *ring = &validation->ring;
	uint32		distance = validation->window.distance;
	int			nnew = 0;

	for (; AioRiStepIsDue(ring, distance); ring->ndone++)
	{
		ScannedRow *row = AioRiMember(ring, ring->ndone);

		if (memchr(row->steps.begun, true, sizeof(row->steps.begun)) == NULL)
			continue;
		fetch(validation, row, validation->slot);
		add_key(validation, ring->ndone, true, true);
	}
	while (AioRiAheadOf(ring) < distance && !validation->at_end)
	{
		ScannedRow *row = AioRiMember(ring, ring->end);
		bool		is_near = AioRiAheadOf(ring) < AioRiNear(distance);

		if (!table_scan_getnextslot(validation->scan, ForwardScanDirection,
									validation->slot))
		{
			validation->at_end = true;
			break;
		}
		MemSet(row, 0, sizeof(*row));
		row->tid = validation->slot->tts_tid;
		add_key(validation, ring->end, false, is_near);
		nnew++;
		AioRiAdd(ring, is_near);
	}
	ExecClearTuple(validation->slot);
	return nnew;
}

static void
look_ahead(AioRiValidation *validation)
{
	MemoryContext old;
	bool		has_read;
	int			nnew;

	MemoryContextReset(validation->probe_context);
	old = MemoryContextSwitchTo(validation->probe_context);
	MemSet(&validation->probes, 0, sizeof(validation->probes));
	nnew = add_rows(validation);
	has_read = AioRunProbes(validation->probes.probes);
	AioRiEndProbes(&validation->probes);
	MemoryContextSwitchTo(old);
	if (nnew > 0)
		AioWindowLooked(&validation->window, nnew, has_read);
}

/* The check before has had to wait for a page. */
static void
count_wait(AioRiValidation *validation)
{
	Relation	rel = validation->scan->rs_rd;
	int			limit;

	if (!AIO_LOOKUPS_FORCED &&
		!AioRiSearchesIn(validation->search, aio_rel_missed))
		return;
	if (validation->open)
	{
		/* looked up too late, or forgotten again */
		aio_usage[AIO_KIND_LOOKUP].waited++;
		return;
	}
	if (++validation->waits < AIO_WAITS_BEFORE_OPENING && !AIO_LOOKUPS_FORCED)
		return;
	limit = AioLookupLimit(rel);
	if (limit == 0)
		return;
	AioRiMakeRoom(&validation->ring, limit + 1, sizeof(ScannedRow),
				  GetMemoryChunkContext(validation));
	validation->open = true;
	AioWindowOpen(&validation->window, Min(limit, (int) validation->ring.room), AIO_ALL_ROWS);
}

/*
 * In place of table_scan_getnextslot(): the next row to be checked.
 */
bool
AioRiNextRow(AioRiValidation *validation, TupleTableSlot *slot)
{
	bool		missed = validation->missed != aio_pages_missed ||
		AIO_LOOKUPS_FORCED;
	bool		found = true;

	if (validation->search != NULL && aio_lookup_ahead > 0 &&
		io_method != IOMETHOD_SYNC)
	{
		if (missed)
			count_wait(validation);
		if (validation->open && validation->window.distance == 0)
		{
			validation->open = false;
			validation->waits = 0;
		}
		if (validation->open && AioScopeAllowed() &&
			AioRiIsToLookAhead(&validation->ring, validation->window.distance,
							   !validation->at_end))
			look_ahead(validation);
	}
	if (AioRiAheadOf(&validation->ring) > 0)
	{
		fetch(validation, AioRiMember(&validation->ring, validation->ring.first),
			  slot);
		AioRiPass(&validation->ring);
	}
	else
		found = !validation->at_end &&
			table_scan_getnextslot(validation->scan, ForwardScanDirection, slot);

	/* what the scan has waited for does not count */
	validation->missed = aio_pages_missed;
	return found;
}
