/*-------------------------------------------------------------------------
 *
 * backlog_collect.c
 *	  Collect index entries for a statement.
 *
 * Most access methods make index tuples of entries (AioBatchAddTuple()), which
 * are kept in memory (backlog_entries.c), or once that is used up, in
 * temporary files (backlog_spill.c).  Others keep something of their own, and
 * say how much memory it takes (AioBatchAddOwn()).  All memory is the
 * statement's, and counts for its budget.
 *
 * Nothing that is collected can fail for what is in it (INVARIANT-94): what
 * could, such as a value too large for a page, or one that has no place in the
 * index, is declined by the access method, and inserted at once; or the error
 * is raised when the entry would be collected.
 *
 * Tests: src/test/aio/sql, src/test/aio/index/t/001_backlog.pl,
 *		  src/test/aio/index_am.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/tupmacs.h"
#include "aio/index_backlog.h"
#include "aio/stats.h"
#include "utils/memutils.h"

/*
 * Say which row a tuple is about, which is followed by the place for that.  All
 * rows of a backlog are counted from the same one.
 */
static void
note_row(AioStatementBacklog *statement, IndexTuple tuple, uint64 line)
{
	AioEntryRow *row = AioGetEntryRow(tuple);

	/* lines of different partitions do not come in order */
	if (!statement->keys)
		statement->base_line = line - Min(line, PG_INT32_MAX);
	Assert(line >= statement->base_line);
	Assert(statement->rows <= PG_INT32_MAX);
	statement->keys = true;
	row->duplicate = false;
	row->number = statement->rows;
	row->line = line - statement->base_line;
}

static inline void
count_entry(AioIndexBacklog *backlog, AioStatementBacklog *statement)
{
	AioIndexBatch *batch = &backlog->batch;

	batch->nentries++;
	backlog->counts.entries++;
	Assert(batch->nentries <= backlog->counts.entries);
	aio_session_stats_data.entries_collected++;
	/* what is not sorted takes no more memory then, and has its own limit */
	statement->entries_max = Max(statement->entries_max,
								 backlog->ops->sort == NULL ? 1 : batch->nentries);
}

/* A tuple has been appended, which is about that row. */
static inline void
note_entry(AioIndexBacklog *backlog, const AioIndexRow *row, IndexTuple tuple)
{
	AioStatementBacklog *statement = backlog->table->statement;

	tuple->t_tid = row->tid;
	if (backlog->batch.unique)
		note_row(statement, tuple, row->line);
	count_entry(backlog, statement);
}

/*
 * For AioIndexAmOps.collect: append a copy of an index tuple, which is about
 * that row.
 */
void
AioBatchAddTuple(AioIndexBatch *batch, const AioIndexRow *row, IndexTuple tuple)
{
	AioIndexBacklog *backlog = AioBacklogOf(batch);
	Size		bytes = MAXALIGN(IndexTupleSize(tuple));

	Assert(backlog->collects);
	if (backlog->sort != NULL)
	{
		backlog->counts.entries++;
		aio_session_stats_data.entries_collected++;
		AioSpillEntry(backlog, tuple, (ItemPointer) &row->tid);
		return;
	}
	note_entry(backlog, row, memcpy(AioAddEntry(backlog, bytes), tuple, bytes));
}

/*
 * For AioIndexAmOps.collect: append the index tuple of a row's values, if it is
 * so simple that it can be formed in its place.  Returns false if it is not.
 */
bool
AioBatchFormTuple(AioIndexBatch *batch, const AioIndexRow *row,
				  const Datum *values, const bool *isnull)
{
	AioIndexBacklog *backlog = AioBacklogOf(batch);
	Size		bytes = backlog->fixed_bytes;
	Size		at = sizeof(IndexTupleData);
	IndexTuple	tuple;

	Assert(backlog->collects);
	if (bytes == 0 || backlog->sort != NULL)
		return false;
	for (int i = 0; i < batch->desc->natts; i++)
	{
		if (isnull[i])
			return false;
	}

	tuple = memset(AioAddEntry(backlog, bytes), 0, bytes);
	tuple->t_info = bytes;
	for (int i = 0; i < batch->desc->natts; i++)
	{
		const CompactAttribute *column = TupleDescCompactAttr(batch->desc, i);

		at = att_nominal_alignby(at, column->attalignby);
		if (column->attbyval)
			store_att_byval((char *) tuple + at, values[i], column->attlen);
		else
			memcpy((char *) tuple + at, DatumGetPointer(values[i]), column->attlen);
		at += column->attlen;
	}
	note_entry(backlog, row, tuple);
	return true;
}

/*
 * For AioIndexAmOps.collect: an entry has been collected that the access
 * method keeps itself, in so many bytes more than before.
 */
void
AioBatchAddOwn(AioIndexBatch *batch, Size bytes)
{
	AioIndexBacklog *backlog = AioBacklogOf(batch);
	AioStatementBacklog *statement = backlog->table->statement;

	Assert(backlog->collects && backlog->ops->forget != NULL);
	Assert(!batch->unique);

	backlog->own_bytes += bytes;
	statement->bytes += bytes;
	count_entry(backlog, statement);
}

/*
 * Will these values fit into a page of an index whose access method is going to
 * change them, and are they all here as they are?
 */
static bool
is_small(TupleDesc desc, const Datum *values, const bool *isnull)
{
	for (int i = 0; i < desc->natts; i++)
	{
		if (!isnull[i] && TupleDescCompactAttr(desc, i)->attlen == -1 &&
			(VARATT_IS_EXTERNAL(DatumGetPointer(values[i])) ||
			 VARATT_IS_COMPRESSED(DatumGetPointer(values[i]))))
			return false;
	}
	return heap_compute_data_size(desc, values, isnull) <= AIO_SMALL_ENTRY;
}

/*
 * AioIndexAmOps.collect, with collects_input: collect the values that
 * aminsert() would get, unless they are large.
 */
bool
AioCollectValues(AioIndexBatch *batch, const AioIndexRow *row,
				 const Datum *values, const bool *isnull)
{
	IndexTuple	tuple;

	Assert(AioBacklogOf(batch)->ops->collects_input);
	if (!is_small(batch->desc, values, isnull))
		return false;
	tuple = index_form_tuple(batch->desc, values, isnull);
	AioBatchAddTuple(batch, row, tuple);
	pfree(tuple);
	return true;
}

/*
 * Collect the entry of a row in one of the table's indexes.  'line' is COPY's,
 * 'unique_at_once' says that the index must have keys that are unique before
 * the next row, and 'unchanged' is what aminsert() would be told.  Returns
 * false if the entry is to be inserted at once.  Values are copied.
 */
bool
AioBacklogAdd(AioTableBacklog *table, int index,
			  const Datum *values, const bool *isnull, ItemPointer tid,
			  uint64 line, bool unique_at_once, bool unchanged)
{
	AioIndexBacklog *backlog = &table->indexes[index];
	AioIndexRow row;

	Assert(index >= 0 && index < table->nindexes);
	/* what is collected in a drain would be freed with what it inserts */
	Assert(!table->statement->draining || table->statement->rows_kept == 0);

	if (!backlog->collects)
		return false;

	/*
	 * MERGE inserts rows and updates others, and each change that is applied
	 * may be of other columns.  It is said of the batch if it is true of any
	 * entry.  Said of others, it has old versions looked for in vain before a
	 * leaf is split; not said where it is true, it has the leaf split.
	 */
	backlog->batch.unchanged = unchanged ||
		((backlog->batch.nentries > 0 || backlog->sort != NULL) &&
		 backlog->batch.unchanged);
	row.tid = *tid;
	row.line = line;

	/*
	 * An update's keys must be unique whenever a row has been updated, and ON
	 * CONFLICT looks for those of the rows before.
	 */
	if (!(unique_at_once && backlog->batch.unique) &&
		backlog->ops->collect(&backlog->batch, &row, values, isnull))
		return true;
	/* from the next row on, have tasks ready for others like this */
	table->only_collects = false;
	return false;
}
