/*-------------------------------------------------------------------------
 *
 * index_am.h
 *	  What an index access method allows to be done with its inserts.
 *
 * PostgreSQL calls aminsert() for one entry at a time and waits for it.  We
 * also insert in two other ways: as tasks (task.h), several of which may be
 * suspended in their reads, and in batches, whose entries a statement collects
 * and inserts in an order that suits the index.  Whether that is correct
 * depends on what aminsert() keeps between two calls, and during one.  Only
 * the access method knows, and says so in an AioIndexAmOps.
 *
 * The built-in access methods have one each
 * (src/backend/access/index_batch/btree_am.c and its neighbours).  An
 * extension registers its own in _PG_init(), which runs when the server calls
 * the access method's handler for the first time. An access method that is not
 * registered is inserted into as ever, which is always correct.
 *
 * Neither is done where user code would run: support functions of an operator
 * class that are not written in C, for example.
 *
 * What aminsert() is, is told from the address of that function: it is the
 * same in all databases, whatever the access method is called there, and an
 * access method that borrows another one's aminsert() has also its rules.
 *
 * This is the seed of a proposal for PostgreSQL itself.  With a function
 * aminsertbatch() and the facts below in IndexAmRoutine, this header could go.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AIO_INDEX_AM_H
#define AIO_INDEX_AM_H

#include "access/amapi.h"
#include "access/itup.h"
#include "aio/task.h"
#include "nodes/execnodes.h"
#include "utils/tuplesort.h"

/*
 * How many inserts into one index may be tasks at the same time.  A task may be
 * suspended wherever aminsert() reads a page of the index's main fork while it
 * holds no lock, and other inserts into the index go on meanwhile.
 */
typedef enum AioIndexConcurrency
{
	/* none: all inserts run on the backend's own stack */
	AIO_INDEX_NO_TASKS,

	/* one, because what is in ii_AmCache belongs to the insert that runs */
	AIO_INDEX_SERIAL,

	/* several, each with an IndexInfo, and so an ii_AmCache, of its own */
	AIO_INDEX_STATES,

	/*
	 * any number: what aminsert() finds in ii_AmCache and rd_amcache is only
	 * read, or may be changed by another insert wherever it reads a page
	 */
	AIO_INDEX_CONCURRENT,
} AioIndexConcurrency;

/* An entry that a task inserts: the arguments of aminsert(). */
typedef struct AioIndexEntry
{
	Relation	index;
	Relation	heap;
	IndexInfo  *info;
	ItemPointerData tid;
	Size		tuple_bytes;	/* noted by the access method; 0 at first */
	int			natts;
	bool		isnull[INDEX_MAX_KEYS];
	Datum		values[INDEX_MAX_KEYS];
} AioIndexEntry;

/* The entries of one index that a statement has collected. */
typedef struct AioIndexBatch
{
	Relation	index;
	Relation	heap;
	IndexInfo  *info;
	TupleDesc	desc;			/* of its index tuples */
	MemoryContext context;		/* lives as long as the statement */
	bool		unique;			/* keys are enforced when they are inserted */
	bool		unchanged;		/* some entries replace others that differ in
								 * their TID only: a hint for aminsert() */
	bool		root_is_ordinary;	/* the index is known to have a place for
									 * whatever geometric value is ordinary */
	uint32		nentries;
	void	   *own;			/* the access method's; what it keeps instead
								 * of tuples, or needs to form them */
	int			in_flight_max;	/* most reads in flight that a drain has seen */
} AioIndexBatch;

/* The row that a collected entry is about. */
typedef struct AioIndexRow
{
	ItemPointerData tid;
	uint64		line;			/* COPY's, or 0 */
} AioIndexRow;

/* One entry while a batch is being sorted and inserted. */
typedef struct AioEntry
{
	Datum		key;			/* of the first column, perhaps abbreviated;
								 * or whatever else the order begins with */
	IndexTuple	tuple;
} AioEntry;

/*
 * Follows each index tuple of a batch whose keys are enforced.  Of equal keys,
 * sort() marks those of all rows but the first as duplicates, and drain() does
 * not insert these.
 */
typedef struct AioEntryRow
{
	uint32		duplicate:1;	/* an earlier row of the batch has this key */
	uint32		number:31;		/* rows inserted before it since the last
								 * drain */
	uint32		line;			/* COPY's line, relative to the statement's
								 * base */
} AioEntryRow;

StaticAssertDecl(sizeof(AioEntryRow) == MAXALIGN(sizeof(AioEntryRow)),
				 "index tuples stay aligned");

static inline AioEntryRow *
AioGetEntryRow(IndexTuple tuple)
{
	return (AioEntryRow *) ((char *) tuple + MAXALIGN(IndexTupleSize(tuple)));
}

typedef struct AioIndexAmOps
{
	/* the function that all of this is about */
	aminsert_function insert;

	AioIndexConcurrency concurrency;

	/* --- Tasks --- */

	/*
	 * Optional: have in memory the pages that the insert of this entry will
	 * read.  Runs in the task and may suspend.  Must leave no lock and no
	 * pin, and change nothing.  Called when the task has to await its turn,
	 * as those with unique keys do, and all of a serializable transaction;
	 * with reads_first, called for each entry, then once more.
	 */
	void		(*look_ahead) (AioIndexEntry *entry);

	/*
	 * The insert is not suspended at all, once look_ahead() has read what it
	 * needs: siblings would disturb it.
	 */
	bool		reads_first;

	/*
	 * Optional: a page of the index has arrived that the insert has asked
	 * for, or if it is a btree, a leaf is going to be read.  'event' is an
	 * AioPageEvent (read.h) and 'arg' an AioIndexEntry.  May read on if
	 * AioMaySuspend() allows it, and what it reads is not reported again.
	 */
	AioTaskHook page_arrived;

	/* --- Batches; NULL where no entries of such an index are collected --- */

	/*
	 * May entries of this index be collected, and is that of use?  Asked once
	 * per statement; 'desc' and 'unique' are set.  Indexes with constraints
	 * that are deferred, or exclude, are not even asked about.
	 */
	bool		(*may_collect) (const AioIndexBatch *batch);

	/*
	 * Collect an entry: copy it into the batch, or find that nothing is to be
	 * inserted for this row.  Returns false if the entry is to be inserted at
	 * once.  That must be so if inserting it could fail for what is in it,
	 * such as its size, or a value that an operator class cannot place; but
	 * if it is certain to fail, this may raise the error.
	 */
	bool		(*collect) (AioIndexBatch *batch, const AioIndexRow *row,
							const Datum *values, const bool *isnull);

	/*
	 * Index tuples of a batch have the values that aminsert() gets, not those
	 * that the access method makes of them.
	 */
	bool		collects_input;

	/*
	 * Optional: do keys that are enforced come in an order in which inserting
	 * them at once is as good?  Then no more of them are collected.
	 */
	bool		(*in_order) (AioIndexBatch *batch);

	/*
	 * Optional: the entries in the order in which to insert them, as an array
	 * in the current memory context.  Without it, drain() gets NULL.
	 */
	AioEntry   *(*sort) (AioIndexBatch *batch);

	/*
	 * Insert all entries, with all reads that this takes.  What has to be
	 * awaited may be a task of the scope, which the caller joins; if scope is
	 * NULL, all reads block.  The current memory context is reset afterwards.
	 * Must call CHECK_FOR_INTERRUPTS() now and then.
	 */
	void		(*drain) (AioIndexBatch *batch, AioEntry *entries,
						  AioScope *scope);

	/*
	 * Optional: check a key that drain() has passed to AioBacklogConflict(),
	 * now that all entries are in.  If it was not inserted, insert it.  May
	 * wait for other transactions; raises an error if it is a duplicate.  An
	 * access method without this does not collect keys that are enforced.
	 */
	void		(*check_again) (AioIndexBatch *batch, IndexTuple tuple,
								bool inserted);

	/* Optional: the batch is empty again; free what batch->own points to. */
	void		(*forget) (AioIndexBatch *batch);

	/*
	 * Optional, and both or neither: entries whose keys are not enforced may
	 * be spilled to temporary files.  begin_sort() begins a sort in so many
	 * kilobytes of memory, in the current memory context, by which index
	 * tuples come in the order that sort() has them in, and are drained in
	 * portions.  spread() tells over how many pages of the index the entries
	 * of the batch are spread, about, if each page takes as many of them; it
	 * may read pages above those, and allocates in the current memory
	 * context.
	 */
	Tuplesortstate *(*begin_sort) (AioIndexBatch *batch, int kilobytes);
	double		(*spread) (AioIndexBatch *batch);

	/* --- Lookups --- */

	/*
	 * Scans by amgettuple() may be suspended wherever they read a page of the
	 * index while they have none locked, and others go on meanwhile.
	 */
	bool		scans_suspend;

	/*
	 * Optional: may the search of this scan that is going to read a leaf end
	 * without, so that the scan finds nothing?  See AioPageEvent (read.h).
	 */
	bool		(*search_may_end) (IndexScanDesc scan);

	/*
	 * Optional: the heap TIDs that a scan is about to return, as far as it
	 * knows them without reading another page.  Copies at most max of those
	 * that come after the next 'skip' into tids, and returns how many; sets
	 * *next to the page of the index that it reads after them, if it knows.
	 * Must not change the scan.
	 */
	int			(*upcoming) (IndexScanDesc scan, ScanDirection direction,
							 int skip, ItemPointer tids, int max,
							 BlockNumber *next);

	/*
	 * Optional: the keys of what a scan with array keys searches for, so many
	 * searches after the one that it is at.  Copies those of the scan into
	 * keys, with an element in the place of each array, and sets *at to a
	 * number that grows from one search to the next.  Returns false if there
	 * is none, or if it is not known.  Must not change the scan.
	 */
	bool		(*upcoming_search) (IndexScanDesc scan, ScanDirection direction,
									int ahead, ScanKey keys, int *at);
} AioIndexAmOps;

/*
 * Register an access method; ops stay where they are for good.  Raises an error
 * if that aminsert() is registered already, or if ops contradict themselves.
 */
extern void AioRegisterIndexAm(const AioIndexAmOps *ops);

/* For collect(): add an index tuple, or count an entry kept in batch->own. */
extern void AioBatchAddTuple(AioIndexBatch *batch, const AioIndexRow *row,
							 IndexTuple tuple);
extern bool AioBatchFormTuple(AioIndexBatch *batch, const AioIndexRow *row,
							  const Datum *values, const bool *isnull);
extern void AioBatchAddOwn(AioIndexBatch *batch, Size bytes);

/* What may serve as members; collects_input goes with the first. */
extern bool AioCollectValues(AioIndexBatch *batch, const AioIndexRow *row,
							 const Datum *values, const bool *isnull);
extern bool AioTypeHasOrder(const AioIndexBatch *batch);
extern AioEntry *AioSortByType(AioIndexBatch *batch);
extern void AioDrainOrdered(AioIndexBatch *batch, AioEntry *entries,
							AioScope *scope);

/* For sort(): an array of the entries in input order, with keys not set. */
extern AioEntry *AioListEntries(const AioIndexBatch *batch);

/* For drain(): this key may be a duplicate, and has to be checked again. */
extern void AioBacklogConflict(AioIndexBatch *batch, IndexTuple tuple);

#endif							/* AIO_INDEX_AM_H */
