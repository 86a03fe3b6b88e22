/*-------------------------------------------------------------------------
 *
 * backlog_recheck.c
 *	  Keys of a backlog that may be duplicates.
 *
 * Keys that are enforced are inserted in index order, with a check that neither
 * waits nor fails.  Where it is not conclusive, or where an earlier row of the
 * backlog has the same key, which is then not inserted at all, a copy of the
 * tuple is kept.  When all keys are in, these are checked again in the order of
 * rows, so that the error raised is that of the first row that fails
 * (INVARIANT-35).
 *
 * Copies are in the statement's memory until they have been checked, or the
 * statement fails.  Checks may wait for other transactions; no lock is held.
 *
 * Tests: src/test/aio/sql/sql/errors.sql, src/test/aio/index/t/002_random.pl.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "aio/index_backlog.h"
#include "commands/copyfrom_internal.h"
#include "common/int.h"
#include "miscadmin.h"
#include "utils/memutils.h"

/* conflicts for which there is room at first */
#define CONFLICTS_MIN	16

/* qsort comparator: by row, and within a row by index */
static int
compare_conflicts(const void *a, const void *b)
{
	const AioConflict *ca = a;
	const AioConflict *cb = b;

	if (ca->row.number != cb->row.number)
		return ca->row.number < cb->row.number ? -1 : 1;
	return pg_cmp_size((size_t) ca->backlog, (size_t) cb->backlog);
}

/*
 * For AioIndexAmOps.drain: this key has been inserted, and may be a duplicate;
 * or it has not been inserted, because it is marked as one.  It will be checked
 * when all entries are in.
 */
void
AioBacklogConflict(AioIndexBatch *batch, IndexTuple tuple)
{
	AioIndexBacklog *backlog = AioBacklogOf(batch);
	AioStatementBacklog *statement = backlog->table->statement;
	MemoryContext old = MemoryContextSwitchTo(statement->context);
	AioConflict *conflict;

	Assert(batch->unique && backlog->ops->check_again != NULL);
	Assert(statement->nconflicts <= statement->conflicts_max);

	if (statement->nconflicts == statement->conflicts_max)
	{
		statement->conflicts_max = Max(CONFLICTS_MIN, 2 * statement->conflicts_max);
		statement->conflicts = statement->conflicts == NULL ?
			MemoryContextAllocHuge(statement->context,
								   sizeof(AioConflict) * statement->conflicts_max) :
			repalloc_huge(statement->conflicts,
						  sizeof(AioConflict) * statement->conflicts_max);
	}
	conflict = &statement->conflicts[statement->nconflicts++];
	conflict->row = *AioGetEntryRow(tuple);
	conflict->backlog = backlog;
	conflict->tuple = CopyIndexTuple(tuple);
	MemoryContextSwitchTo(old);
}

/*
 * Look again at keys that may be duplicates, in the order in which row-by-row
 * inserts would have met them, each with COPY's current line as that of its
 * row.  Waits for other transactions, if there can be any, and raises the error
 * of the first that is a duplicate.
 */
void
AioCheckConflicts(AioStatementBacklog *statement)
{
	CopyFromState cstate = statement->cstate;

	if (statement->nconflicts == 0)
		return;
	Assert(statement->keys);
	qsort(statement->conflicts, statement->nconflicts, sizeof(AioConflict),
		  compare_conflicts);
	for (int i = 0; i < statement->nconflicts; i++)
	{
		AioConflict *conflict = &statement->conflicts[i];
		AioIndexBacklog *backlog = conflict->backlog;

		CHECK_FOR_INTERRUPTS();
		Assert(conflict->row.number <= statement->rows);
		if (cstate != NULL)
			cstate->cur_lineno = statement->base_line + conflict->row.line;
		backlog->ops->check_again(&backlog->batch, conflict->tuple,
								  !conflict->row.duplicate);
		pfree(conflict->tuple);
	}
	statement->nconflicts = 0;
}
