/*-------------------------------------------------------------------------
 *
 * ri_batch.c
 *	  Find the keys of foreign keys, for many events at a time.
 *
 * The events of a trigger that are still queued tell which keys will be checked
 * next.  Those of many are found in the index together (btree_find.c), which
 * takes a fraction of the time of as many searches, and tells where the rows
 * are to which they refer.  A batch is twice as large as the one before, unless
 * that has found less than half of its keys, or keys are too wide.
 *
 * When pages have been missed, those that a batch needs are read ahead: the
 * leaves in the order of the keys, then the pages of the table in their own
 * order, so that neighbours are read together.  All of them have to stay in
 * memory until their events are fired, so a batch has no more events than a
 * part of the shared buffers, and fewer if pages get lost.
 *
 * For rows that are deleted, or get other keys, nothing is remembered of what a
 * batch finds: it only has pages read.  That none refers to them is for the
 * search to say.
 *
 * INVARIANT-75: what a batch has found is a guess.  A row is the one that is
 * referred to if, when its event is fired, it is there, it is visible to the
 * check's snapshot, and it has the key.  Otherwise the index is searched.  A
 * batch holds no lock, and fails nothing: keys whose pages cannot be read are
 * not found.
 *
 * Tests: src/test/aio/ri.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "aio/block.h"
#include "aio/btree_find.h"
#include "aio/lookup.h"
#include "aio/read.h"
#include "aio/recent.h"
#include "aio/usage.h"
#include "catalog/pg_am_d.h"
#include "common/int.h"
#include "miscadmin.h"
#include "ri.h"
#include "storage/aio.h"
#include "storage/bufmgr.h"
#include "utils/datum.h"
#include "utils/memutils.h"
#include "utils/rel.h"

/* events of the first batch, and of the largest */
#define EVENTS_FIRST	128
#define EVENTS_MAX		32768

/* events of a batch for which pages are read, as a part of the buffers */
#define BUFFERS_PART	4

/* the part of a batch whose pages get lost before they are needed */
#define LOST_PART		8

/* bytes of their keys, beyond which a batch ends with a page */
#define KEY_BYTES_MAX	(1024 * 1024)

/* pages whose buffers are remembered, a power of 2 */
#define PAGES			4096

/* times that a buffer is used before the page is asked for again */
#define USES_MAX		16

/* how many events ahead the processor fetches what they need */
#define EVENTS_FETCHED	8

typedef struct Place
{
	void	   *event;
	ItemPointerData row;		/* the row that refers */
	ItemPointerData tid;		/* the row referred to; invalid if unknown */
} Place;

typedef struct RecentPage
{
	BlockNumber block;
	Buffer		buffer;			/* InvalidBuffer: none */
	uint32		uses;			/* since it was remembered */
} RecentPage;

struct AioRiBatch
{
	const AioRiSearch *search;
	const AioRiTarget *target;
	Relation	table;			/* that is searched */
	Relation	index;
	bool		of_parent;		/* that is the one referred to */
	AioTriggerUsage *usage;		/* of the trigger whose keys these are */

	Place	   *places;			/* in the order of the queue */
	uint32		nplaces;
	uint32		next;			/* the first that may still be fired */
	uint32		size;			/* of the next batch */
	Size		bytes;			/* of the keys of this one */
	uint32		nread;			/* pages that have been read for this one */
	uint32		size_max;		/* more lost their pages */
	uint64		missed;			/* aio_pages_missed before it was made, */
	uint64		missed_making;	/* and how often meanwhile */
	RecentPage *pages;			/* of the table */
	MemoryContext context;		/* while keys are found */
};

/*
 * Batches of events whose keys are found in this table by this index, the one
 * that is referred to if of_parent; NULL if that is not possible.  Both stay
 * open as long as it is used, and 'usage' is kept.  aio_pages_missed was
 * 'missed' before the first of the events.  Allocated in the current memory
 * context.
 */
AioRiBatch *
AioRiMakeBatch(const AioRiSearch *search, const AioRiTarget *target,
			   Relation table, Relation index, bool of_parent,
			   uint64 missed, AioTriggerUsage *usage)
{
	AioRiBatch *batch;
	MemoryContext context;
	MemoryContext old;
	bool		may_find;

	if (index->rd_rel->relam != BTREE_AM_OID || RelationUsesLocalBuffers(table))
		return NULL;

	/* the index's own comparison is used */
	for (int i = 0; i < target->lookup.nkeys; i++)
	{
		Oid			type = target->lookup.keys[i].sk_subtype;

		if (type != index->rd_opcintype[i])
			return NULL;
	}

	context = AllocSetContextCreate(CurrentMemoryContext,
									"foreign keys of a batch",
									ALLOCSET_DEFAULT_SIZES);
	old = MemoryContextSwitchTo(context);
	may_find = AioBtreeMayFind(index);
	MemoryContextSwitchTo(old);
	MemoryContextReset(context);
	if (!may_find)
	{
		MemoryContextDelete(context);
		return NULL;
	}

	batch = palloc0(sizeof(AioRiBatch));
	batch->search = search;
	batch->target = target;
	batch->table = table;
	batch->index = index;
	batch->of_parent = of_parent;
	batch->usage = usage;
	batch->size = EVENTS_FIRST;
	batch->size_max = EVENTS_MAX;
	batch->missed = missed;
	batch->context = context;
	return batch;
}

void
AioRiFreeBatch(AioRiBatch *batch)
{
	MemoryContextDelete(batch->context);
	if (batch->places != NULL)
		pfree(batch->places);
	if (batch->pages != NULL)
		pfree(batch->pages);
	pfree(batch);
}

/* The events of a trigger for rows of rel, from the one that is due. */
static void
list_events(AioRiBatch *batch, Relation rel)
{
	AioTriggerCursor cursor = aio_trigger_due.cursor;
	uint32		passed = 0;

	batch->nplaces = batch->next = 0;
	do
	{
		AioTriggerEvent event;
		Place	   *place = &batch->places[batch->nplaces];

		AioGetTriggerEvent(&cursor, &event);
		if (event.trigger != aio_trigger_due.trigger)
			continue;
		if (!event.in_table || event.relid != RelationGetRelid(rel))
			break;
		place->event = cursor.event;
		place->row = batch->of_parent ? event.new_tid : event.old_tid;
		ItemPointerSetInvalid(&place->tid);
		batch->nplaces++;
	} while (++passed < batch->size && AioNextTriggerEvent(&cursor));
}

/*
 * Set the values of a row's key in the order of the index.  Returns false if
 * there is no such row, or if one of them is null, or has to be detoasted.
 */
static bool
get_key(AioRiBatch *batch, Relation rel, Page page, ItemPointer tid, Datum *key)
{
	const AioLookupTarget *lookup = &batch->target->lookup;
	OffsetNumber offset = ItemPointerGetOffsetNumber(tid);
	HeapTupleData row;
	ItemId		item;

	if (offset > PageGetMaxOffsetNumber(page))
		return false;
	item = PageGetItemId(page, offset);
	if (!ItemIdIsNormal(item))
		return false;
	row.t_self = *tid;
	row.t_tableOid = RelationGetRelid(rel);
	row.t_len = ItemIdGetLength(item);
	row.t_data = (HeapTupleHeader) PageGetItem(page, item);
	for (int i = 0; i < lookup->nkeys; i++)
	{
		AttrNumber	attnum = batch->search->row_attnums[batch->target->key_of[i]];
		CompactAttribute *type =
			TupleDescCompactAttr(RelationGetDescr(rel), attnum - 1);
		bool		isnull;
		Datum		value = heap_getattr(&row, attnum, RelationGetDescr(rel), &isnull);

		if (isnull || (type->attlen == -1 &&
					   (VARATT_IS_EXTERNAL(DatumGetPointer(value)) ||
						VARATT_IS_COMPRESSED(DatumGetPointer(value)))))
			return false;
		key[i] = datumCopy(value, type->attbyval, type->attlen);
		batch->bytes += datumGetSize(value, type->attbyval, type->attlen);
	}
	return true;
}

/*
 * Read the rows' own pages, which the events will need soon.  That a load has
 * few of them in memory does not mean that others are missing, too.
 */
static void
read_own_rows(AioRiBatch *batch, Relation rel, int limit)
{
	AioWantedPages wanted = {.rel = rel,.limit = limit};

	if (limit == 0)
		return;
	for (uint32 i = 0; i < batch->nplaces; i++)
		AioWantPage(&wanted, ItemPointerGetBlockNumber(&batch->places[i].row));
	AioReadWanted(&wanted);
	if (wanted.nbegun > 0)
		AioReadAheadWaitAll();
}

/*
 * Set the keys of rows, and which place each belongs to.  Returns how many
 * there are.  Rows whose pages are not in memory are left out: to read them
 * might fail before their events are due.
 */
static uint32
get_keys(AioRiBatch *batch, Relation rel, Datum *keys, uint32 *place_of)
{
	int			nkeys = batch->target->lookup.nkeys;
	uint32		n = 0;

	batch->bytes = 0;
	for (uint32 i = 0; i < batch->nplaces;)
	{
		BlockNumber block = ItemPointerGetBlockNumber(&batch->places[i].row);
		Buffer		buffer;

		CHECK_FOR_INTERRUPTS();
		if (batch->bytes > KEY_BYTES_MAX)
		{
			batch->nplaces = batch->size = i;
			break;
		}
		if (!AioPageIsHere(rel, block))
		{
			while (i < batch->nplaces &&
				   ItemPointerGetBlockNumber(&batch->places[i].row) == block)
				i++;
			continue;
		}
		buffer = ReadBuffer(rel, block);
		LockBuffer(buffer, BUFFER_LOCK_SHARE);
		for (; i < batch->nplaces &&
			 ItemPointerGetBlockNumber(&batch->places[i].row) == block; i++)
		{
			if (get_key(batch, rel, BufferGetPage(buffer),
						&batch->places[i].row, &keys[n * nkeys]))
				place_of[n++] = i;
		}
		UnlockReleaseBuffer(buffer);
	}
	return n;
}

static RecentPage *
recent_page(AioRiBatch *batch, BlockNumber block)
{
	if (batch->pages == NULL)
		batch->pages = MemoryContextAllocZero(GetMemoryChunkContext(batch),
											  PAGES * sizeof(RecentPage));
	return &batch->pages[block % PAGES];
}

/*
 * Where this page has been found last; InvalidBuffer if that is not known.  Now
 * and then it has to be asked for again, so that the page counts as used.
 */
Buffer
AioRiRecentBuffer(AioRiBatch *batch, BlockNumber block)
{
	RecentPage *page = recent_page(batch, block);

	if (page->block == block && page->uses++ < USES_MAX)
		return page->buffer;
	return InvalidBuffer;
}

void
AioRiRememberBuffer(AioRiBatch *batch, BlockNumber block, Buffer buffer)
{
	RecentPage *page = recent_page(batch, block);

	page->block = block;
	page->buffer = buffer;
	page->uses = 0;
}

/* Have the processor fetch what the check of a later event will look at. */
static void
fetch_ahead(AioRiBatch *batch, uint32 i)
{
	ItemPointer tid = &batch->places[i].tid;
	RecentPage *page;

	if (i >= batch->nplaces || !ItemPointerIsValid(tid))
		return;
	page = recent_page(batch, ItemPointerGetBlockNumber(tid));
	if (page->block == ItemPointerGetBlockNumber(tid) &&
		BufferIsValid(page->buffer))
		AioPrefetchRecent(page->buffer, ItemPointerGetOffsetNumber(tid));
}

/* Is it likely that a batch needs pages that are not in memory? */
static bool
misses_pages(const AioRiBatch *batch)
{
	return batch->nread > 0 || batch->missed != aio_pages_missed ||
		AIO_LOOKUPS_FORCED;
}

/* How many pages of this table, or its indexes, may be in flight. */
static int
limit_of(Relation table)
{
	int			limit = AioLookupLimit(table) * io_combine_limit;

	return Min(limit, Max((int) GetPinLimit(), 1));
}

static int
compare_blocks(const void *a, const void *b)
{
	return pg_cmp_u32(*(const BlockNumber *) a, *(const BlockNumber *) b);
}

/* Begin to read the pages of the table on which these rows are. */
static uint32
read_rows(AioRiBatch *batch, const ItemPointerData *tids, uint32 n, int limit)
{
	AioWantedPages wanted = {.rel = batch->table,.limit = limit};
	BlockNumber *blocks = palloc_array(BlockNumber, n);
	uint32		nblocks = 0;

	for (uint32 i = 0; i < n; i++)
	{
		if (ItemPointerIsValid(&tids[i]))
			blocks[nblocks++] = ItemPointerGetBlockNumber(&tids[i]);
	}
	qsort(blocks, nblocks, sizeof(BlockNumber), compare_blocks);
	for (uint32 i = 0; i < nblocks; i++)
	{
		CHECK_FOR_INTERRUPTS();
		AioWantPage(&wanted, blocks[i]);
	}
	AioReadWanted(&wanted);
	AioSubmitBatch();
	return wanted.nbegun;
}

/* How large the next batch is, after this one of which so many are found. */
static void
choose_size(AioRiBatch *batch, uint32 n, uint32 nfound)
{
	if (batch->of_parent && nfound < n / 2)
		batch->size = EVENTS_FIRST;
	else if (batch->bytes <= KEY_BYTES_MAX / 2)
		batch->size = Min(2 * batch->size, batch->size_max);
}

/*
 * Pages are going to be read: bound the batch by the buffers, and make it
 * smaller if many pages that were read for the last one have been read again.
 * Some may only have been awaited.
 */
static void
bound_size(AioRiBatch *batch)
{
	uint64		lost = aio_pages_missed - batch->missed - batch->missed_making;

	if (batch->nread > 0 &&
		lost > Max(batch->nplaces / LOST_PART, (uint32) io_max_concurrency))
		batch->size_max = Max(batch->nplaces / 2, EVENTS_FIRST);
	batch->size = Min(batch->size, Min(batch->size_max,
									   Max(NBuffers / BUFFERS_PART, EVENTS_FIRST)));
}

/* Find the keys of events, from the one that is due on. */
static void
fill_batch(AioRiBatch *batch, Relation rel)
{
	int			nkeys = batch->target->lookup.nkeys;
	int			limit = limit_of(batch->table);
	bool		reads = limit > 0 && misses_pages(batch);
	uint64		missed = aio_pages_missed;
	MemoryContext old;
	uint32	   *place_of;
	Datum	   *keys;
	ItemPointer tids;
	uint32		nfound;
	uint32		n;

	if (reads)
		bound_size(batch);
	batch->places = batch->places == NULL ?
		MemoryContextAlloc(GetMemoryChunkContext(batch),
						   batch->size * sizeof(Place)) :
		repalloc(batch->places, batch->size * sizeof(Place));
	list_events(batch, rel);
	if (batch->nplaces <= 1)
	{
		batch->next = batch->nplaces;
		return;
	}
	read_own_rows(batch, rel, limit);
	old = MemoryContextSwitchTo(batch->context);
	keys = palloc_array(Datum, batch->nplaces * nkeys);
	place_of = palloc_array(uint32, batch->nplaces);
	tids = palloc_array(ItemPointerData, batch->nplaces);
	n = get_keys(batch, rel, keys, place_of);
	nfound = AioBtreeFind(batch->index, batch->table, nkeys, keys, n, tids,
						  reads ? limit : 0, &batch->nread);
	AioCountKeysAhead(batch->usage, n);
	if (reads)
	{
		batch->nread += read_rows(batch, tids, n, limit);
		for (uint32 i = 0; i < n; i++)
			AioCountLookup(i < batch->nread, 1);
	}
	for (uint32 i = 0; i < n && batch->of_parent; i++)
		batch->places[place_of[i]].tid = tids[i];
	MemoryContextSwitchTo(old);
	MemoryContextReset(batch->context);
	choose_size(batch, n, nfound);
	batch->missed = missed;
	batch->missed_making = aio_pages_missed - missed;
}

/*
 * The place in the batch of the event that is due, one of rel's; NULL if it has
 * none.  When the batch is at its end, a new one is made, if it is of use.
 */
static Place *
find_event(AioRiBatch *batch, Relation rel)
{
	while (batch->next < batch->nplaces &&
		   batch->places[batch->next].event != aio_trigger_due.cursor.event)
		batch->next++;
	if (batch->next == batch->nplaces && (batch->of_parent || misses_pages(batch)))
		fill_batch(batch, rel);
	if (batch->next == batch->nplaces)
		return NULL;
	return &batch->places[batch->next++];
}

/*
 * The place of the row that the row of the event that is due, one of rel's,
 * probably refers to; NULL if it is not known.  Valid until the next call.
 */
ItemPointer
AioRiFindPlace(AioRiBatch *batch, Relation rel)
{
	Place	   *place = find_event(batch, rel);

	Assert(batch->of_parent);
	if (place == NULL)
		return NULL;
	fetch_ahead(batch, batch->next - 1 + EVENTS_FETCHED);
	return ItemPointerIsValid(&place->tid) ? &place->tid : NULL;
}

/*
 * The event that is due, one of rel's, will be followed by searches for rows
 * that refer to others like its own: read ahead what they need.
 */
void
AioRiReadAhead(AioRiBatch *batch, Relation rel)
{
	Assert(!batch->of_parent);
	(void) find_event(batch, rel);
}
