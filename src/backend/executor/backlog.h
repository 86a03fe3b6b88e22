/*-------------------------------------------------------------------------
 *
 * backlog.h
 *	  Entries that are to be inserted into an index later, in its order.
 *	  Private to src/backend/executor; what the rest of the server calls is in
 *	  aio/backlog.h.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AIO_EXECUTOR_BACKLOG_H
#define AIO_EXECUTOR_BACKLOG_H

#include "access/itup.h"
#include "aio/task.h"
#include "aio/backlog.h"
#include "index_policy.h"

/*
 * Index tuples, one after the other, each at its MAXALIGNed size; if keys are
 * enforced, each followed by an AioEntryRow.
 */
typedef struct AioEntryChunk
{
	struct AioEntryChunk *next;
	Size		used;
	Size		size;
	int64		tuples[FLEXIBLE_ARRAY_MEMBER];	/* aligned, that is */
} AioEntryChunk;

/* What has become of entries of an index that waited. */
typedef struct AioBacklogCounts
{
	uint64		entries;
	uint64		batches;
	uint64		leaf_visits;
	uint64		suspended;		/* tasks */
	int			in_flight_max;	/* reads */
} AioBacklogCounts;

/* The backlog of one index. */
typedef struct AioIndexBacklog
{
	Relation	index;
	Relation	heap;
	IndexInfo  *info;
	TupleDesc	desc;			/* of its entries */
	AioIndexMode mode;
	bool		unique;			/* its keys are enforced at once */
	bool		gathers;		/* entries are gathered, not inserted at once */
	bool		looked_at;		/* their order has been looked at */

	AioEntryChunk *first;		/* chunks in input order */
	AioEntryChunk *last;
	uint32		nentries;
	struct AioGinBacklog *gin;	/* instead of chunks, if it is one */
	AioBacklogCounts counts;
	struct AioTableBacklog *table;	/* whose index it is */
} AioIndexBacklog;

/* The backlog of one result relation. */
typedef struct AioTableBacklog
{
	struct AioTableBacklog *next;
	struct AioStatementBacklog *statement;
	ResultRelInfo *rri;
	uint64		rows;			/* inserted by the statement so far */
	bool		gathers;		/* any of its indexes does */
	bool		in_order;		/* entries of all of them come in order */
	bool		rows_asked;		/* whether rows may be kept back */
	struct AioRowBuffer *rows_kept; /* NULL if not */
	int			nindexes;
	AioIndexBacklog indexes[FLEXIBLE_ARRAY_MEMBER];
} AioTableBacklog;

/* One entry while a backlog is being sorted and inserted. */
typedef struct AioEntry
{
	Datum		key;			/* of the first column, perhaps abbreviated;
								 * or whatever else the order begins with */
	IndexTuple	tuple;
} AioEntry;

/* The row that an entry with an enforced key is about. */
typedef struct AioEntryRow
{
	uint32		duplicate:1;	/* an earlier row of the backlog has this key */
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

/* backlog.c */
extern AioTableBacklog *AioBacklogFor(ResultRelInfo *rri, EState *estate,
									  CommandId cid, CopyFromState cstate,
									  int nrows);
extern AioTableBacklog *AioGetTableBacklogs(EState *estate);
extern bool AioBacklogInOrder(ResultRelInfo *rri, EState *estate);
extern bool AioBacklogAdd(AioTableBacklog *table, int index,
						  const Datum *values, const bool *isnull,
						  ItemPointer tid, uint64 line);
extern void AioBacklogConsider(AioTableBacklog *table, AioScope *scope);
extern void AioBacklogConflict(AioIndexBacklog *backlog, IndexTuple tuple);
extern bool AioBacklogIsChecked(EState *estate);

/* apply.c */
extern AioTableBacklog *AioApplyBacklog(ResultRelInfo *rri, CommandId cid);

/* row_buffer.c */
struct AioRowBuffer;
extern bool AioRowsMayWait(ModifyTableState *mtstate, ResultRelInfo *rri);
extern struct AioRowBuffer *AioMakeRowBuffer(ModifyTableState *mtstate,
											 ResultRelInfo *rri);
extern Size AioKeepRow(struct AioRowBuffer *buffer, TupleTableSlot *slot);
extern bool AioRowsAreEnough(int nrows, Size bytes);
extern void AioFlushRows(struct AioRowBuffer *buffer);

/* entry_sort.c */
extern AioEntry *AioSortEntries(AioIndexBacklog *backlog);
extern bool AioEntriesInOrder(AioIndexBacklog *backlog);
extern bool AioEntriesHaveOrder(AioIndexBacklog *backlog);

/* leaf_stream.c */
typedef struct AioLeafRun
{
	BlockNumber block;			/* page that the entries go to, probably */
	uint32		first;			/* entries, from this one */
	uint32		end;			/* to the one before this */
} AioLeafRun;

typedef struct AioLeafStream AioLeafStream;
typedef void (*AioPlanRuns) (AioLeafStream *stream, void *arg);

extern AioLeafStream *AioLeafStreamBegin(Relation index, AioPlanRuns plan,
										 void *arg);
extern int	AioLeafStreamRoom(AioLeafStream *stream);
extern void AioLeafStreamPlan(AioLeafStream *stream, BlockNumber block,
							  uint32 first, uint32 end);
extern bool AioLeafStreamNext(AioLeafStream *stream, Buffer *buffer,
							  AioLeafRun *run);
extern BlockNumber AioLeafStreamPeek(AioLeafStream *stream);
extern void AioLeafStreamEnd(AioLeafStream *stream);

/* most reads in flight that a stream has seen; set to 0 by whoever asks */
extern int	aio_leaf_stream_in_flight_max;

/* btree_drain.c, hash_drain.c */
extern void AioDrainBtree(AioIndexBacklog *backlog, AioEntry *entries,
						  AioScope *scope);
extern void AioDrainHash(AioIndexBacklog *backlog, AioEntry *entries);

/* ordered_drain.c */
extern void AioDrainOrdered(AioIndexBacklog *backlog, AioEntry *entries,
							AioScope *scope);

/* gin_drain.c */
extern bool AioGatherGin(struct AioGinBacklog **gin, MemoryContext context,
						 Relation index, const Datum *values,
						 const bool *isnull, ItemPointer tid, Size *bytes);
extern void AioDrainGin(struct AioGinBacklog *gin, Relation index,
						AioScope *scope);
extern Size AioFreeGin(struct AioGinBacklog *gin);

#endif							/* AIO_EXECUTOR_BACKLOG_H */
