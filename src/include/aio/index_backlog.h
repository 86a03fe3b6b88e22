/*-------------------------------------------------------------------------
 *
 * index_backlog.h
 *	  Entries that are to be inserted into an index later, in its order.
 *	  Private to src/backend/executor; what the rest of the server calls is in
 *	  aio/backlog.h, and what access methods call in aio/index_am.h.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AIO_INDEX_BACKLOG_H
#define AIO_INDEX_BACKLOG_H

#include "aio/backlog.h"
#include "aio/index_am.h"
#include "lib/ilist.h"
#include "storage/proc.h"
#include "utils/hsearch.h"

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

/* How collected entries of an index were inserted. */
typedef struct AioBacklogCounts
{
	uint64		entries;
	uint64		batches;
	uint64		leaf_visits;
	uint64		suspended;		/* tasks */
	uint64		spilled;		/* bytes of entries */
} AioBacklogCounts;

/* Where in the chunks an entry is. */
typedef struct AioEntryPlace
{
	AioEntryChunk *chunk;
	Size		at;
} AioEntryPlace;

/* entries that are not larger than that fit into pages of any kind */
#define AIO_SMALL_ENTRY	Min(1000, BLCKSZ / 8)

/* The backlog of one index. */
typedef struct AioIndexBacklog
{
	AioIndexBatch batch;		/* must be first: access methods get it */
	const AioIndexAmOps *ops;	/* NULL if nothing is known */
	bool		collects;		/* entries are collected, not inserted at once */
	bool		order_checked;	/* whether they come in index order is known */
	bool		in_order;		/* and they do */
	Size		fixed_bytes;	/* of a tuple without nulls; 0 if it depends */

	AioEntryChunk *first;		/* chunks in input order */
	AioEntryChunk *last;
	AioEntryPlace portion;		/* where the batch begins, if it is one */
	AioEntryPlace rest;			/* where the next portion will */
	Size		own_bytes;		/* in what the access method keeps itself */
	bool		drained_early;	/* since its pages should stay in memory */
	Tuplesortstate *sort;		/* has the entries, if they are spilled */
	bool		sorted;			/* it gives them back */
	Size		sort_memory;	/* that it may take */
	uint64		sort_bytes;		/* of what it has been given */
	AioBacklogCounts counts;
	struct AioTableBacklog *table;	/* whose index it is */
	struct AioIndexBacklog *same_index; /* of another result relation */
} AioIndexBacklog;

/* Rows of a table that are not even in the heap (row_buffer.c). */
typedef struct AioKeptRows
{
	/* insert them, and have their index entries collected */
	void		(*flush) (struct AioKeptRows *rows);
} AioKeptRows;

/* The backlog of one result relation. */
typedef struct AioTableBacklog
{
	struct AioTableBacklog *next;
	struct AioStatementBacklog *statement;
	ResultRelInfo *rri;
	uint64		rows;			/* inserted by the statement so far */
	bool		collects;		/* any of its indexes does */
	bool		only_collects;	/* all do, and so far every entry was
								 * collected */
	bool		in_order;		/* entries of all of them come in order */
	bool		rows_checked;	/* whether rows may be kept back */
	bool		nobody_looks;	/* no subscription writes to it; else that is
								 * not known, or its rows do not wait */
	AioKeptRows *rows_kept;		/* NULL if not */
	uint32		rows_at_once;	/* whose keys are inserted while a gate is
								 * closed, next time; 0: not known yet */
	int			nindexes;
	AioIndexBacklog indexes[FLEXIBLE_ARRAY_MEMBER];
} AioTableBacklog;

/* A key that may be a duplicate: the row's own check will tell. */
typedef struct AioConflict
{
	AioEntryRow row;
	AioIndexBacklog *backlog;
	IndexTuple	tuple;			/* a copy */
} AioConflict;

/* The backlogs of one statement. */
typedef struct AioStatementBacklog
{
	dlist_node	node;			/* in the list of them */
	EState	   *estate;
	CommandId	cid;			/* of its rows */
	CopyFromState cstate;		/* if it is a COPY */
	LocalTransactionId lxid;	/* transaction and subtransaction in which it */
	SubTransactionId subid;		/* runs */
	MemoryContext context;
	MemoryContextCallback callback;
	AioTableBacklog *tables;
	HTAB	   *tables_by_rri;	/* TableByRri */
	HTAB	   *indexes_by_oid; /* IndexByOid */
	ResourceOwner owner;		/* of its temporary files */
	Size		bytes;			/* in chunks, and kept by access methods */
	Size		sort_memory;	/* of all sorts of spilled entries */
	uint64		sort_bytes;		/* of what they have been given */
	uint64		sort_bytes_checked; /* of that, when room was looked for last */
	uint64		temp_bytes_checked; /* in temporary files of anybody by then */
	int			nsorts;
	uint32		entries_max;	/* of any one index */
	int			rows_kept;		/* rows that are not even in the heap */
	Size		bytes_kept;
	uint32		rows;			/* inserted since the last drain */
	uint32		keys_from;		/* of these, the first that may have keys */
	uint64		base_line;		/* less than the line of any of them */
	int			short_drains;
	double		client_wait_ms; /* since the last drain for that reason, or */
	double		client_drain_ms;	/* for a slow query; that it took */
	uint64		drains;
	uint64		drains_seen;	/* of these, and of */
	uint64		rows_seen;		/* its rows, when it was looked at last */
	uint64		rows_taken;		/* its rows, since it has a backlog */
	HTAB	   *watched;		/* nodes that have it drained, or NULL */
	bool		slow;			/* they do */
	AioConflict *conflicts;
	int			nconflicts;
	int			conflicts_max;
	bool		frozen;			/* its rows are visible to any snapshot */
	bool		keys;			/* some keys in the backlog are enforced */
	bool		draining;
	bool		sorting;		/* is in upstream's sort, perhaps in I/O */
	bool		failed;			/* a drain did, */
	ErrorData  *error;			/* with this error; NULL if memory was short */
} AioStatementBacklog;

/*
 * Milliseconds that a drain is said to take, at most, to whoever has keys wait
 * ten times as long: it may have waited for somebody's lock.
 */
#define AIO_DRAIN_MS_MAX	1000.0

/* draining fewer rows than this does not pay... */
#define AIO_ROWS_WORTH_WHILE	500
/* ... and after so many of them the statement collects no more */
#define AIO_SHORT_DRAINS_MAX	3

static inline AioIndexBacklog *
AioBacklogOf(AioIndexBatch *batch)
{
	return (AioIndexBacklog *) batch;
}

static inline bool
AioBacklogIsEmpty(const AioStatementBacklog *statement)
{
	return statement->entries_max == 0 && statement->rows_kept == 0 &&
		statement->nsorts == 0;
}

/* Do entries wait, or rows of its table? */
static inline bool
AioIndexLacksEntries(const AioIndexBacklog *backlog)
{
	return backlog->batch.nentries > 0 || backlog->sort != NULL ||
		(backlog->table->rows_kept != NULL &&
		 backlog->table->statement->rows_kept > 0);
}

/* backlog.c */
extern AioTableBacklog *AioGetTableBacklog(ResultRelInfo *rri, EState *estate,
										   CommandId cid, CopyFromState cstate);
extern void AioCheckDrains(const AioStatementBacklog *statement);
extern bool AioNobodyLooks(AioTableBacklog *table);
extern bool AioBacklogTakes(AioTableBacklog *table, CommandId cid, int nrows);
extern bool AioBacklogCollectsKeys(const AioTableBacklog *table);
extern AioTableBacklog *AioGetTableBacklogs(EState *estate);
extern AioTableBacklog *AioFindTableBacklog(AioStatementBacklog *statement,
											ResultRelInfo *rri);
extern AioIndexBacklog *AioFindIndexBacklogs(AioStatementBacklog *statement,
											 Oid indexid);
extern AioStatementBacklog *AioFindStatement(EState *estate);
extern AioStatementBacklog *AioNextStatement(AioStatementBacklog *previous);
extern bool AioStatementIsAlive(const AioStatementBacklog *statement);
extern bool AioStatementIsVisible(const AioStatementBacklog *statement,
								  Snapshot snapshot);
extern bool AioPageIsInTheWay(const AioStatementBacklog *statement);
extern bool AioBacklogIsChecked(EState *estate);
extern void AioSumUpTable(AioTableBacklog *table);
extern void AioFlushKeptRows(AioStatementBacklog *statement);

/* backlog_collect.c */
extern bool AioBacklogAdd(AioTableBacklog *table, int index,
						  const Datum *values, const bool *isnull,
						  ItemPointer tid, uint64 line, bool unique_at_once,
						  bool unchanged);

/* backlog_entries.c */
extern Size AioMemoryNeeded(const AioStatementBacklog *statement);
extern IndexTuple AioAddEntry(AioIndexBacklog *backlog, Size tuple_bytes);
extern IndexTuple AioNextEntry(const AioIndexBacklog *backlog,
							   AioEntryPlace *place);
extern void AioFreeFirstChunk(AioIndexBacklog *backlog);
extern void AioTakePortion(AioIndexBacklog *backlog, uint32 end);
extern void AioFreeEntries(AioIndexBacklog *backlog);

/* backlog_spill.c */
extern bool AioSpill(AioStatementBacklog *statement);
extern bool AioSpillMustEnd(AioStatementBacklog *statement);
extern void AioSpillEntry(AioIndexBacklog *backlog, IndexTuple tuple,
						  ItemPointer tid);
extern AioEntry *AioNextSpilled(AioIndexBacklog *backlog);
extern void AioEndSpill(AioIndexBacklog *backlog);

/* backlog_insert.c */
extern AioEntry *AioSortEntries(AioIndexBacklog *backlog);
extern void AioInsertSorted(AioIndexBacklog *backlog, AioEntry *entries);
extern void AioDrainIndex(AioIndexBacklog *backlog);

/* backlog_keys.c */
extern void AioDrainKeys(AioStatementBacklog *statement);

/* backlog_drain.c */
extern void AioDrainKeysBefore(EState *estate);
extern void AioBacklogConsider(AioTableBacklog *table, AioScope *scope);
extern void AioClaimKeys(EState *estate);

/* backlog_recheck.c */
extern void AioCheckConflicts(AioStatementBacklog *statement);

/* apply.c */
extern AioTableBacklog *AioApplyBacklog(ResultRelInfo *rri, CommandId cid);
extern void AioAppliedRow(void);

/* leaf_stream.c */
typedef struct AioLeafRun
{
	BlockNumber block;			/* page that the entries go to, probably */
	uint32		first;			/* entries, from this one */
	uint32		end;			/* to the one before this */
} AioLeafRun;

typedef struct AioLeafStream AioLeafStream;
typedef void (*AioPlanRuns) (AioLeafStream *stream, void *arg);

extern AioLeafStream *AioLeafStreamBegin(AioIndexBatch *batch,
										 AioPlanRuns plan, void *arg);
extern int	AioLeafStreamRoom(AioLeafStream *stream);
extern void AioLeafStreamPlan(AioLeafStream *stream, BlockNumber block,
							  uint32 first, uint32 end);
extern bool AioLeafStreamNext(AioLeafStream *stream, Buffer *buffer,
							  AioLeafRun *run);
extern BlockNumber AioLeafStreamPeek(AioLeafStream *stream);
extern void AioLeafStreamEnd(AioLeafStream *stream);

#endif							/* AIO_INDEX_BACKLOG_H */
