/*-------------------------------------------------------------------------
 *
 * backlog_collect.c
 *	  Collect index entries in the memory of a statement.
 *
 * Most access methods make index tuples of entries, which are packed one after
 * the other into chunks of memory that grow (AioBatchAddTuple()).  Others keep
 * something of their own, and say how much memory it takes (AioBatchAddOwn()).
 * All of it is in the statement's memory context, and counts for its budget.
 *
 * Nothing that is collected can fail for what is in it (INVARIANT-35): what
 * could, such as a value too large for a page, is declined here, and inserted
 * at once.
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
#include "aio/index_backlog.h"
#include "aio/stats.h"
#include "utils/memutils.h"

/* entries that are not larger than that fit into pages of any kind */
#define SMALL_BYTES	1000

#define CHUNK_MIN	1024
#define CHUNK_MAX	(256 * 1024)

/* Memory, in bytes, that the backlog takes now and while it is drained. */
Size
AioMemoryNeeded(const AioStatementBacklog *statement)
{
	return statement->bytes + statement->entries_max * sizeof(AioEntry);
}

/* Room for a tuple of so many bytes. */
static pg_noinline void
add_chunk(AioIndexBacklog *backlog, AioStatementBacklog *statement, Size bytes)
{
	Size		budget = (Size) aio_index_batch_memory * 1024;
	Size		needed = AioMemoryNeeded(statement);
	Size		size = backlog->last ? Min(backlog->last->size * 2, CHUNK_MAX) : CHUNK_MIN;
	AioEntryChunk *chunk;

	/* do not take more than is left, unless it is needed for this tuple */
	size = Min(size, budget > needed ? budget - needed : 0);
	size = Max(size, offsetof(AioEntryChunk, tuples) + bytes);

	chunk = MemoryContextAlloc(statement->context, size);
	chunk->next = NULL;
	chunk->used = 0;
	chunk->size = size;
	Assert((backlog->first == NULL) == (backlog->last == NULL));
	if (backlog->last != NULL)
		backlog->last->next = chunk;
	else
		backlog->first = chunk;
	backlog->last = chunk;
	statement->bytes += size;
}

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

/*
 * For AioIndexAmOps.collect: append a copy of an index tuple, which is about
 * that row.
 */
void
AioBatchAddTuple(AioIndexBatch *batch, const AioIndexRow *row, IndexTuple tuple)
{
	AioIndexBacklog *backlog = AioBacklogOf(batch);
	AioStatementBacklog *statement = backlog->table->statement;
	AioEntryChunk *chunk = backlog->last;
	Size		tuple_bytes = MAXALIGN(IndexTupleSize(tuple));
	Size		bytes = tuple_bytes + (batch->unique ? sizeof(AioEntryRow) : 0);
	IndexTuple	copy;

	Assert(backlog->collects);
	if (chunk == NULL ||
		chunk->used + bytes > chunk->size - offsetof(AioEntryChunk, tuples))
	{
		add_chunk(backlog, statement, bytes);
		chunk = backlog->last;
	}
	Assert(chunk->used + bytes <= chunk->size - offsetof(AioEntryChunk, tuples));
	copy = (IndexTuple) ((char *) chunk->tuples + chunk->used);
	memcpy(copy, tuple, tuple_bytes);
	copy->t_tid = row->tid;
	if (batch->unique)
		note_row(statement, copy, row->line);
	chunk->used += bytes;
	count_entry(backlog, statement);
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
	return heap_compute_data_size(desc, values, isnull) <= SMALL_BYTES;
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
		(backlog->batch.nentries > 0 && backlog->batch.unchanged);
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

/*
 * The entry at a place, which is moved to the one after it; or NULL if there
 * are no more.
 */
static IndexTuple
next_entry(const AioIndexBacklog *backlog, AioEntryPlace *place)
{
	IndexTuple	tuple;

	if (place->at == place->chunk->used)
	{
		if (place->chunk->next == NULL)
			return NULL;
		place->chunk = place->chunk->next;
		place->at = 0;
	}
	Assert(place->at < place->chunk->used);
	tuple = (IndexTuple) ((char *) place->chunk->tuples + place->at);
	place->at += MAXALIGN(IndexTupleSize(tuple)) +
		(backlog->batch.unique ? sizeof(AioEntryRow) : 0);
	return tuple;
}

/*
 * An array of the batch's entries in input order, with keys not set, in the
 * current memory context.  Tuples stay where they are.
 */
AioEntry *
AioListEntries(const AioIndexBatch *batch)
{
	const AioIndexBacklog *backlog = (const AioIndexBacklog *) batch;
	AioEntry   *entries = MemoryContextAllocHuge(CurrentMemoryContext,
												 sizeof(AioEntry) * Max(batch->nentries, 1));
	AioEntryPlace place = backlog->portion;

	if (place.chunk == NULL)
		place.chunk = backlog->first;
	for (uint32 n = 0; n < batch->nentries; n++)
		entries[n].tuple = next_entry(backlog, &place);
	return entries;
}

/*
 * The next portion begins, with the entries of rows before this one that have
 * been in no other since the last drain: they are the index's batch from now
 * on.
 */
void
AioTakePortion(AioIndexBacklog *backlog, uint32 end)
{
	AioEntryPlace place = backlog->rest;
	IndexTuple	tuple;

	Assert(backlog->batch.unique);
	if (place.chunk == NULL)
		place.chunk = backlog->first;
	backlog->portion = backlog->rest = place;
	backlog->batch.nentries = 0;
	while ((tuple = next_entry(backlog, &place)) != NULL &&
		   AioGetEntryRow(tuple)->number < end)
	{
		backlog->batch.nentries++;
		backlog->rest = place;
	}
}

/* Forget the entries of an index: they have been inserted. */
void
AioFreeEntries(AioIndexBacklog *backlog)
{
	AioIndexBatch *batch = &backlog->batch;
	AioStatementBacklog *statement = backlog->table->statement;

	while (backlog->first != NULL)
	{
		AioEntryChunk *chunk = backlog->first;

		Assert(statement->bytes >= chunk->size);
		backlog->first = chunk->next;
		statement->bytes -= chunk->size;
		pfree(chunk);
	}
	backlog->last = NULL;
	backlog->portion.chunk = backlog->rest.chunk = NULL;
	backlog->portion.at = backlog->rest.at = 0;
	if (batch->own != NULL)
		backlog->ops->forget(batch);
	Assert(batch->own == NULL);
	Assert(statement->bytes >= backlog->own_bytes);
	statement->bytes -= backlog->own_bytes;
	backlog->own_bytes = 0;
	batch->nentries = 0;
}
