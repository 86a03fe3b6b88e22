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
#include "aio/block.h"
#include "aio/io_internal.h"
#include "aio/lookup.h"
#include "aio/ri.h"
#include "aio/task_port.h"
#include "aio/usage.h"
#include "catalog/pg_am_d.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "port/pg_bitutils.h"
#include "ri.h"
#include "storage/aio.h"
#include "utils/memutils.h"
#include "utils/rel.h"

/* the part of a window that is looked up at a time */
#define ROWS_AT_A_TIME(distance)	(((distance) + 7) / 8)

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

	/* in the order of the scan */
	ScannedRow *rows;
	uint32		nrows;			/* room, a power of 2 */
	uint32		first;			/* the next one that is checked; counted, */
	uint32		end;			/* like the end, */
	uint32		ndone;			/* and the first that has a step to make */

	/* while rows are looked up */
	AioRiProbes probes;
};

static inline ScannedRow *
row_at(AioRiValidation *validation, uint32 i)
{
	return &validation->rows[i % validation->nrows];
}

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
	if (rel->rd_rel->relam != HEAP_TABLE_AM_OID || RelationUsesLocalBuffers(rel))
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
	if (validation->rows != NULL)
		pfree(validation->rows);
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
	AioRiAddProbes(&validation->probes, validation->search, validation->slot,
				   (int) (i - validation->first), &row_at(validation, i)->steps,
				   again, near);
}

/* Find out what to probe.  Returns how many rows have not been before. */
static int
add_rows(AioRiValidation *validation)
{
	uint32		distance = validation->window.distance;
	uint32		near = distance / 2 + 1;
	int			nnew = 0;

	for (; validation->ndone != validation->end &&
		 validation->ndone - validation->first < near; validation->ndone++)
	{
		ScannedRow *row = row_at(validation, validation->ndone);

		if (memchr(row->steps.begun, true, sizeof(row->steps.begun)) == NULL)
			continue;
		fetch(validation, row, validation->slot);
		add_key(validation, validation->ndone, true, true);
	}
	while (validation->end - validation->first < distance && !validation->at_end)
	{
		ScannedRow *row = row_at(validation, validation->end);
		bool		is_near = validation->end - validation->first < near;

		if (!table_scan_getnextslot(validation->scan, ForwardScanDirection,
									validation->slot))
		{
			validation->at_end = true;
			break;
		}
		MemSet(row, 0, sizeof(*row));
		row->tid = validation->slot->tts_tid;
		add_key(validation, validation->end, false, is_near);
		nnew++;
		if (is_near && validation->ndone == validation->end)
			validation->ndone++;
		validation->end++;
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

/* Is it time to look at further rows, or to make steps that are left? */
static bool
is_to_look_ahead(AioRiValidation *validation)
{
	uint32		distance = validation->window.distance;
	uint32		at_a_time = ROWS_AT_A_TIME(distance);

	if (!AioScopeAllowed())
		return false;
	if (!validation->at_end)
		return validation->end - validation->first + at_a_time <= distance;
	return validation->ndone != validation->end &&
		validation->ndone - validation->first + at_a_time <= Max(distance / 2, at_a_time);
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
	if (validation->rows == NULL)
	{
		validation->nrows = pg_nextpower2_32(limit + 1);
		validation->rows =
			MemoryContextAlloc(GetMemoryChunkContext(validation),
							   validation->nrows * sizeof(ScannedRow));
	}
	validation->open = true;
	AioWindowOpen(&validation->window, Min(limit, (int) validation->nrows), false);
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
		if (validation->open && is_to_look_ahead(validation))
			look_ahead(validation);
	}
	if (validation->first != validation->end)
	{
		if (validation->ndone == validation->first)
			validation->ndone++;
		fetch(validation, row_at(validation, validation->first++), slot);
	}
	else
		found = !validation->at_end &&
			table_scan_getnextslot(validation->scan, ForwardScanDirection, slot);

	/* what the scan has waited for does not count */
	validation->missed = aio_pages_missed;
	return found;
}
