/*-------------------------------------------------------------------------
 *
 * lookup_copy.c
 *	  COPY table TO: rows ahead, whose values are stored out of line.
 *
 * COPY scans a table without a plan.  When it has had to wait for values of
 * rows, a statement is made up for it, whose plan is one scan, and whose rows
 * are taken ahead like those that a query returns (lookup_loop.c).  It ends
 * with the scan, or with the memory context in which COPY runs.
 *
 * Tests: src/test/aio/toast.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/tableam.h"
#include "aio/lookup.h"
#include "aio/usage.h"
#include "catalog/index.h"
#include "executor/executor.h"
#include "lookup.h"
#include "storage/aio.h"
#include "utils/rel.h"

/* A COPY that looks ahead. */
typedef struct CopyAhead
{
	SeqScanState node;			/* must be first */
	struct CopyAhead *next;
	TableScanDesc scan;
	TupleTableSlot *slot;		/* COPY's */
	AioLookupLoop *loop;
} CopyAhead;

/* all of this session, the innermost one first */
static CopyAhead *copies = NULL;
int			aio_copies_ahead = 0;

/* aio_pages_missed, when COPY asked for a row last */
uint64		aio_copy_missed = 0;

/* the scan for whose values pages have been missed last, and how many */
static TableScanDesc waiting = NULL;
static int	waits = 0;

/* MemoryContextCallback: the statement is being freed. */
static void
forget_copy(void *arg)
{
	CopyAhead **link = &copies;

	while (*link != arg)
		link = &(*link)->next;
	*link = (*link)->next;
	aio_copies_ahead--;
}

static CopyAhead *
find_copy(TableScanDesc scan)
{
	for (CopyAhead *copy = copies; copy != NULL; copy = copy->next)
	{
		if (copy->scan == scan)
			return copy;
	}
	return NULL;
}

/* ExecProcNode of the made-up scan */
static TupleTableSlot *
scan_next(PlanState *node)
{
	CopyAhead  *copy = (CopyAhead *) node;

	return table_scan_getnextslot(copy->scan, ForwardScanDirection, copy->slot) ?
		copy->slot : NULL;
}

/* Fill in the one node of a plan. */
static void
make_node(CopyAhead *copy, EState *estate, Relation rel)
{
	PlanState  *node = &copy->node.ss.ps;
	SeqScan    *plan = makeNode(SeqScan);
	PlannedStmt *stmt = makeNode(PlannedStmt);

	stmt->commandType = CMD_SELECT;
	stmt->planTree = &plan->scan.plan;
	estate->es_plannedstmt = stmt;
	node->type = T_SeqScanState;
	node->plan = &plan->scan.plan;
	node->state = estate;
	node->ExecProcNode = scan_next;
	node->ExecProcNodeReal = scan_next;
	node->ps_ResultTupleDesc = RelationGetDescr(rel);
	node->resultops = table_slot_callbacks(rel);
	node->resultopsfixed = true;
	node->resultopsset = true;
	copy->node.ss.ss_currentRelation = rel;
}

static CopyAhead *
make_copy(TableScanDesc scan, List *columns)
{
	EState	   *estate = CreateExecutorState();
	MemoryContext old = MemoryContextSwitchTo(estate->es_query_cxt);
	CopyAhead  *copy = palloc0(sizeof(CopyAhead));
	MemoryContextCallback *callback = palloc0(sizeof(MemoryContextCallback));
	AioLookups *lookups = AioNoteStatement(estate);

	make_node(copy, estate, scan->rs_rd);
	copy->scan = scan;
	copy->loop = AioNewLoop(&copy->node.ss.ps, &copy->node.ss.ps,
							AIO_LOOKUP_VALUES);
	copy->loop->lookups = lookups;
	copy->loop->is_top = true;
	copy->loop->toast = AioMakeToast(list_intersection_int(AioToastColumns(RelationGetDescr(scan->rs_rd)),
														   columns));
	lookups->loops = list_make1(copy->loop);
	lookups->top = &copy->node.ss.ps;
	lookups->all_wanted = true;
	callback->func = forget_copy;
	callback->arg = copy;
	MemoryContextRegisterResetCallback(estate->es_query_cxt, callback);
	MemoryContextSwitchTo(old);
	copy->next = copies;
	copies = copy;
	aio_copies_ahead++;
	return copy;
}

/* Is this the TOAST table of a table, or its index? */
static bool
is_toast_of(Oid relid, Relation table)
{
	Oid			toast = table->rd_rel->reltoastrelid;

	return OidIsValid(toast) &&
		(relid == toast || IndexGetRelation(relid, true) == toast);
}

/* COPY has had to wait for pages since it asked for a row last. */
static void
count_wait(CopyAhead *copy, TableScanDesc scan, List *columns)
{
	int			limit;

	if (copy != NULL && copy->loop->open)
	{
		aio_usage[AIO_KIND_LOOKUP].waited++;
		return;
	}
	if (waiting != scan)
		waits = 0;
	waiting = scan;
	if (++waits < (copy != NULL ? copy->loop->waits_wanted : AIO_WAITS_BEFORE_OPENING) &&
		!AIO_LOOKUPS_FORCED)
		return;
	limit = aio_lookup_ahead == 0 || RelationUsesLocalBuffers(scan->rs_rd) ? 0 :
		AioLookupLimit(scan->rs_rd);
	if (limit == 0)
		return;
	waits = 0;
	if (copy == NULL)
		copy = make_copy(scan, columns);
	if (!copy->loop->closed_for_good)
		AioOpenLoop(copy->loop->lookups, copy->loop, limit);
}

/*
 * table_scan_getnextslot(), of COPY TO, if it has had to wait for pages since
 * it asked for a row last, or if some COPY looks ahead.  'columns' is a list of
 * the numbers of those that it writes.
 */
bool
AioCopyNextAhead(TableScanDesc scan, ScanDirection direction,
				 TupleTableSlot *slot, List *columns)
{
	CopyAhead  *copy = find_copy(scan);
	TupleTableSlot *row;

	if ((aio_copy_missed != aio_pages_missed &&
		 is_toast_of(aio_rel_missed, scan->rs_rd)) ||
		(AIO_LOOKUPS_FORCED && OidIsValid(scan->rs_rd->rd_rel->reltoastrelid)))
		count_wait(copy, scan, columns);
	copy = find_copy(scan);
	if (copy == NULL)
	{
		aio_copy_missed = aio_pages_missed;
		return table_scan_getnextslot(scan, direction, slot);
	}

	copy->slot = slot;
	row = ExecProcNode(&copy->node.ss.ps);
	aio_copy_missed = aio_pages_missed;
	if (TupIsNull(row))
	{
		ExecClearTuple(slot);
		FreeExecutorState(copy->node.ss.ps.state);
		return false;
	}
	if (row != slot)
		ExecCopySlot(slot, row);
	return true;
}
