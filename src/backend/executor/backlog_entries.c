/*-------------------------------------------------------------------------
 *
 * backlog_entries.c
 *	  Index tuples of a backlog, in memory.
 *
 * They are packed one after the other into chunks of memory, which grow, in the
 * order in which they were collected.  Chunks are in the statement's memory
 * context, and live until AioFreeEntries().
 *
 * Tests: src/test/aio/sql, src/test/aio/index/t/001_backlog.pl.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "aio/index_backlog.h"
#include "utils/memutils.h"

#define CHUNK_MIN	1024
#define CHUNK_MAX	(256 * 1024)

/* Memory, in bytes, that the backlog takes now and while it is drained. */
Size
AioMemoryNeeded(const AioStatementBacklog *statement)
{
	return statement->bytes + statement->sort_memory +
		statement->entries_max * sizeof(AioEntry);
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
 * Append room for an index tuple of so many bytes, which are aligned, and for
 * an AioEntryRow if keys are enforced.  The caller forms the tuple there.
 */
IndexTuple
AioAddEntry(AioIndexBacklog *backlog, Size tuple_bytes)
{
	AioEntryChunk *chunk = backlog->last;
	Size		bytes = tuple_bytes + (backlog->batch.unique ? sizeof(AioEntryRow) : 0);
	IndexTuple	tuple;

	Assert(tuple_bytes == MAXALIGN(tuple_bytes));
	if (chunk == NULL ||
		chunk->used + bytes > chunk->size - offsetof(AioEntryChunk, tuples))
	{
		add_chunk(backlog, backlog->table->statement, bytes);
		chunk = backlog->last;
	}
	Assert(chunk->used + bytes <= chunk->size - offsetof(AioEntryChunk, tuples));
	tuple = (IndexTuple) ((char *) chunk->tuples + chunk->used);
	chunk->used += bytes;
	return tuple;
}

/*
 * The entry at a place, which is moved to the one after it; or NULL if there
 * are no more.
 */
IndexTuple
AioNextEntry(const AioIndexBacklog *backlog, AioEntryPlace *place)
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
		entries[n].tuple = AioNextEntry(backlog, &place);
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
	while ((tuple = AioNextEntry(backlog, &place)) != NULL &&
		   AioGetEntryRow(tuple)->number < end)
	{
		backlog->batch.nentries++;
		backlog->rest = place;
	}
}

/* Free the first chunk: nobody needs what is in it. */
void
AioFreeFirstChunk(AioIndexBacklog *backlog)
{
	AioStatementBacklog *statement = backlog->table->statement;
	AioEntryChunk *chunk = backlog->first;

	Assert(statement->bytes >= chunk->size);
	backlog->first = chunk->next;
	if (backlog->first == NULL)
		backlog->last = NULL;
	statement->bytes -= chunk->size;
	pfree(chunk);
}

/* Forget the entries of an index: they have been inserted. */
void
AioFreeEntries(AioIndexBacklog *backlog)
{
	AioIndexBatch *batch = &backlog->batch;
	AioStatementBacklog *statement = backlog->table->statement;

	while (backlog->first != NULL)
		AioFreeFirstChunk(backlog);
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
