/*-------------------------------------------------------------------------
 *
 * backlog.c
 *	  Index entries that a statement has still to insert.
 *
 * A statement that inserts many rows puts them into the heap as ever, and
 * gathers their index entries in memory.  When its budget is used up, when it
 * ends, or when anybody could look, the backlog is drained: each index's
 * entries are sorted and inserted in index order, such that neighbours share
 * the reading, the searching and the cache lines of their page.
 *
 * INVARIANT-32: whoever could see rows of the statement finds them in every
 * index.  Another transaction cannot before the statement ends.  This one can,
 * through a snapshot with a later command id than the statement's: no query
 * runs with such a snapshot while a backlog is not empty (AioDrainVisibleTo()
 * at the start of each executor run).  What looks with other snapshots
 * (uniqueness, exclusion, ON CONFLICT, deferred constraints) looks at indexes
 * that do not gather.
 *
 * INVARIANT-33: no row dies while its entries are in a backlog, as VACUUM could
 * then give its place to another one.  Rows of a running statement are killed
 * by speculative insertion only, and that does not gather.  A statement whose
 * subtransaction has been rolled back drains no more.
 *
 * INVARIANT-34: a drain that failed is never forgiven.  Its error may be caught
 * on the way, if a function called by the statement made it happen; then the
 * statement itself fails.
 *
 * INVARIANT-35: the error raised is that of the first row that fails.  Nothing
 * that is gathered can fail for what is in it: tuples too large for a page are
 * not gathered.  Keys that are enforced are inserted first, with a check that
 * neither waits nor fails; those that may be duplicates are checked again in
 * the order of rows, when all entries of the backlog are in.  guard.c sees to
 * that when a later row fails before.
 *
 * Tests: src/test/aio/sql, src/test/aio/t.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/gin_private.h"
#include "access/hash.h"
#include "access/htup_details.h"
#include "access/nbtree.h"
#include "access/xact.h"
#include "aio/backlog.h"
#include "aio/index_insert.h"
#include "aio/pgstat_aio.h"
#include "aio/stats.h"
#include "backlog.h"
#include "commands/copyfrom_internal.h"
#include "common/int.h"
#include "guard.h"
#include "lib/ilist.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "storage/aio.h"
#include "storage/lmgr.h"
#include "storage/proc.h"
#include "utils/hsearch.h"
#include "utils/injection_point.h"
#include "utils/memutils.h"
#include "utils/rel.h"

/* aio.index_batch_memory, in kB */
int			aio_index_batch_memory = 64 * 1024;

#ifdef USE_ASSERT_CHECKING
/* aio.debug_rows_before_batch */
int			aio_debug_rows_before_batch = AIO_ROWS_BEFORE_BATCH;
#endif

/* entries after which their order is looked at */
#define ENTRIES_TO_LOOK_AT	512

/* aio.batch_unique_keys */
bool		aio_batch_unique_keys = false;

/* a drain of fewer rows than this is not worth while... */
#define ROWS_WORTH_WHILE	500
/* ... and after so many of them the statement gathers no more */
#define SHORT_DRAINS_MAX	3

/* entries of one index, whatever the memory allows */
#define ENTRIES_MAX	(PG_INT32_MAX / 2)

/* entries that are not larger than that fit into pages of any kind */
#define SMALL_BYTES	1000

#define CHUNK_MIN	1024
#define CHUNK_MAX	(256 * 1024)

/* A key that may be a duplicate: the row's own check will tell. */
typedef struct Conflict
{
	AioEntryRow row;
	AioIndexBacklog *backlog;
	IndexTuple	tuple;			/* a copy */
} Conflict;

typedef struct TableByRri
{
	ResultRelInfo *rri;			/* hash key */
	AioTableBacklog *table;
} TableByRri;

typedef struct AioStatementBacklog
{
	dlist_node	node;			/* in statements */
	EState	   *estate;
	CommandId	cid;			/* of its rows */
	CopyFromState cstate;		/* if it is a COPY */
	LocalTransactionId lxid;	/* transaction and subtransaction in which it */
	SubTransactionId subid;		/* runs */
	MemoryContext context;
	MemoryContextCallback callback;
	AioTableBacklog *tables;
	HTAB	   *tables_by_rri;	/* TableByRri */
	Size		bytes;			/* in chunks */
	uint32		entries_max;	/* of any one index */
	int			rows_kept;		/* rows that are not even in the heap */
	Size		bytes_kept;
	uint32		rows;			/* inserted since the last drain */
	uint64		base_line;		/* less than the line of any of them */
	int			short_drains;
	Conflict   *conflicts;
	int			nconflicts;
	int			conflicts_max;
	bool		frozen;			/* its rows are visible to any snapshot */
	bool		keys;			/* some keys in the backlog are enforced */
	bool		draining;
	bool		failed;			/* a drain did */
} AioStatementBacklog;

bool		aio_backlogs_exist = false;

/* running statements that have had a backlog */
static dlist_head statements = DLIST_STATIC_INIT(statements);

/* the one asked for last, as each row asks */
static AioTableBacklog *last_table = NULL;

/* Has the (sub)transaction that the statement runs in not been rolled back? */
static bool
is_alive(const AioStatementBacklog *statement)
{
	return statement->lxid == MyProc->vxid.lxid &&
		SubTransactionIsActive(statement->subid);
}

static inline bool
is_empty(const AioStatementBacklog *statement)
{
	return statement->entries_max == 0 && statement->rows_kept == 0;
}

/* The statement's memory goes away. */
static void
forget_statement(void *arg)
{
	AioStatementBacklog *statement = arg;

	Assert(is_empty(statement) || statement->failed ||
		   !is_alive(statement));
	dlist_delete(&statement->node);
	aio_backlogs_exist = !dlist_is_empty(&statements);
	last_table = NULL;
}

static AioStatementBacklog *
find_statement(EState *estate)
{
	dlist_iter	iter;

	dlist_foreach(iter, &statements)
	{
		AioStatementBacklog *statement = dlist_container(AioStatementBacklog,
														 node, iter.cur);

		if (statement->estate == estate)
			return statement;
	}
	return NULL;
}

static AioStatementBacklog *
make_statement(EState *estate, CommandId cid, CopyFromState cstate)
{
	AioStatementBacklog *statement;
	HASHCTL		ctl;
	MemoryContext context = AllocSetContextCreate(estate->es_query_cxt,
												  "index backlog",
												  ALLOCSET_DEFAULT_SIZES);

	statement = MemoryContextAllocZero(context, sizeof(AioStatementBacklog));
	statement->estate = estate;
	statement->cid = cid;
	statement->cstate = cstate;
	statement->frozen = cstate != NULL && cstate->opts.freeze;
	statement->lxid = MyProc->vxid.lxid;
	statement->subid = GetCurrentSubTransactionId();
	statement->context = context;
	statement->callback.func = forget_statement;
	statement->callback.arg = statement;
	MemoryContextRegisterResetCallback(context, &statement->callback);
	ctl.keysize = sizeof(ResultRelInfo *);
	ctl.entrysize = sizeof(TableByRri);
	ctl.hcxt = context;
	statement->tables_by_rri = hash_create("index backlog tables", 16, &ctl,
										   HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	dlist_push_head(&statements, &statement->node);
	aio_backlogs_exist = true;
	return statement;
}

/*
 * May entries of this index wait?  Not if inserting them could find out
 * something about the row that is wanted at once, and not if sorting them is
 * of no use.
 */
static bool
may_gather(AioIndexBacklog *backlog)
{
	Relation	index = backlog->index;
	IndexInfo  *info = backlog->info;
	bool		heapkeyspace;
	bool		allequalimage;

	if (info->ii_ExclusionOps != NULL || !info->ii_ReadyForInserts)
		return false;
	if (index->rd_index->indisunique && !index->rd_index->indimmediate)
		return false;

	switch (backlog->mode)
	{
		case AIO_INDEX_HASH:
			return true;
		case AIO_INDEX_BTREE:
			/* in indexes older than that, equal keys have no order */
			_bt_metaversion(index, &heapkeyspace, &allequalimage);
			return heapkeyspace;
		case AIO_INDEX_GIN:
			return !GinGetUseFastUpdate(index);
		case AIO_INDEX_CONCURRENT:
		case AIO_INDEX_LANES:
			return AioEntriesHaveOrder(backlog);
		default:
			return false;
	}
}

/*
 * What the backlog's entries are made of: what is in the index, or what goes
 * in, if the access method changes that.
 */
static TupleDesc
entry_desc(AioIndexBacklog *backlog, MemoryContext context)
{
	IndexInfo  *info = backlog->info;
	ListCell   *expression = list_head(info->ii_Expressions);
	MemoryContext old;
	TupleDesc	desc;

	if (backlog->mode != AIO_INDEX_LANES && backlog->mode != AIO_INDEX_CONCURRENT)
		return RelationGetDescr(backlog->index);

	old = MemoryContextSwitchTo(context);
	desc = CreateTemplateTupleDesc(info->ii_NumIndexAttrs);
	for (int i = 0; i < info->ii_NumIndexAttrs; i++)
	{
		AttrNumber	attnum = info->ii_IndexAttrNumbers[i];

		if (attnum > 0)
			TupleDescCopyEntry(desc, i + 1, RelationGetDescr(backlog->heap), attnum);
		else
		{
			Node	   *node = lfirst(expression);

			TupleDescInitEntry(desc, i + 1, NULL, exprType(node), exprTypmod(node), 0);
			expression = lnext(info->ii_Expressions, expression);
		}
	}
	MemoryContextSwitchTo(old);
	return desc;
}

/*
 * Keys that are enforced are inserted in another order than that of the rows,
 * and none waits for another transaction before all are in.  Two sessions that
 * insert the same keys may then wait for each other where row by row only one
 * of them would.  So this has to be asked for, unless nobody else can insert.
 */
static bool
keys_can_wait(ResultRelInfo *rri)
{
	return aio_batch_unique_keys ||
		CheckRelationLockedByMe(rri->ri_RelationDesc, ShareLock, true);
}

static AioTableBacklog *
make_table(AioStatementBacklog *statement, ResultRelInfo *rri)
{
	AioTableBacklog *table;
	bool		asked = false;
	bool		keys_wait = false;

	table = MemoryContextAllocZero(statement->context,
								   offsetof(AioTableBacklog, indexes) +
								   sizeof(AioIndexBacklog) * rri->ri_NumIndices);
	table->statement = statement;
	table->rri = rri;
	table->rows = statement->estate->es_processed;
	table->nindexes = rri->ri_NumIndices;
	for (int i = 0; i < table->nindexes; i++)
	{
		AioIndexBacklog *backlog = &table->indexes[i];

		backlog->index = rri->ri_IndexRelationDescs[i];
		backlog->heap = rri->ri_RelationDesc;
		backlog->info = rri->ri_IndexRelationInfo[i];
		if (backlog->index == NULL)
			continue;
		backlog->table = table;
		/* what is asked below may have policies made anew */
		backlog->mode = AioGetTablePolicy(rri)->indexes[i].mode;
		backlog->desc = entry_desc(backlog, statement->context);
		backlog->unique = backlog->index->rd_index->indisunique;
		backlog->gathers = may_gather(backlog);
		if (backlog->gathers && backlog->unique)
		{
			if (!asked)
				keys_wait = keys_can_wait(rri) &&
					AioLaterRowsLeaveNothing(rri, statement->estate,
											 statement->cstate);
			asked = true;
			backlog->gathers = keys_wait;
		}
		/* of others it does not matter in which order they come */
		backlog->looked_at = backlog->mode != AIO_INDEX_BTREE;
		table->gathers |= backlog->gathers;
	}
	table->next = statement->tables;
	statement->tables = table;
	return table;
}

/* The backlog of a table, which is made if need be. */
static AioTableBacklog *
get_table(ResultRelInfo *rri, EState *estate, CommandId cid,
		  CopyFromState cstate)
{
	AioTableBacklog *table = last_table;
	AioStatementBacklog *statement;
	TableByRri *entry;
	bool		found;

	if (likely(table != NULL && table->rri == rri &&
			   table->statement->estate == estate))
		return table;

	statement = find_statement(estate);
	if (statement == NULL)
		statement = make_statement(estate, cid, cstate);
	entry = hash_search(statement->tables_by_rri, &rri, HASH_FIND, NULL);
	table = entry ? entry->table : make_table(statement, rri);
	if (entry == NULL)
	{
		entry = hash_search(statement->tables_by_rri, &rri, HASH_ENTER, &found);
		entry->table = table;
	}
	last_table = table;
	return table;
}

/*
 * The backlog for nrows more rows that a statement inserts with command id
 * cid, after as many as estate->es_processed says; or NULL if their entries
 * are to be inserted at once.  cstate is COPY's, or NULL.
 *
 * The caller has made sure that the relation's indexes may be inserted into by
 * tasks, as user code is as unwelcome here.
 */
AioTableBacklog *
AioBacklogFor(ResultRelInfo *rri, EState *estate, CommandId cid,
			  CopyFromState cstate, int nrows)
{
	AioTableBacklog *table;

	if (aio_index_batch_memory == 0)
		return NULL;
	table = get_table(rri, estate, cid, cstate);
	table->rows += nrows;
	if (!table->gathers || table->rows - nrows < aio_debug_rows_before_batch)
		return NULL;
	if (table->statement->cid != cid ||
		table->statement->short_drains >= SHORT_DRAINS_MAX)
		return NULL;
	return table;
}

/* The backlogs of all tables of a statement, as a list, or NULL. */
AioTableBacklog *
AioGetTableBacklogs(EState *estate)
{
	AioStatementBacklog *statement = find_statement(estate);

	return statement ? statement->tables : NULL;
}

/*
 * Is it known that entries of all indexes come in order, so that the pages that
 * they go to are in memory?
 */
bool
AioBacklogInOrder(ResultRelInfo *rri, EState *estate)
{
	return last_table != NULL && last_table->rri == rri &&
		last_table->statement->estate == estate && last_table->in_order;
}

/* ------------------------------------------------------------------------
 * Draining
 * ------------------------------------------------------------------------
 */

static void
free_chunks(AioIndexBacklog *backlog, AioStatementBacklog *statement)
{
	while (backlog->first != NULL)
	{
		AioEntryChunk *chunk = backlog->first;

		backlog->first = chunk->next;
		statement->bytes -= chunk->size;
		pfree(chunk);
	}
	backlog->last = NULL;
	if (backlog->gin != NULL)
		statement->bytes -= AioFreeGin(backlog->gin);
	backlog->gin = NULL;
	backlog->nentries = 0;
}

/* AioScopeBody: insert the entries of one index. */
static void
insert_sorted(AioScope *scope, void *arg)
{
	AioIndexBacklog *backlog = arg;

	if (io_method == IOMETHOD_SYNC || !AioTasksCanSuspend() ||
		AioTaskLimit() < 2)
		scope = NULL;
	if (backlog->mode == AIO_INDEX_GIN)
		AioDrainGin(backlog->gin, backlog->index, scope);
	else if (backlog->mode == AIO_INDEX_HASH)
		AioDrainHash(backlog, AioSortEntries(backlog));
	else if (backlog->mode != AIO_INDEX_BTREE)
		AioDrainOrdered(backlog, AioSortEntries(backlog), scope);
	else
		AioDrainBtree(backlog, AioSortEntries(backlog), scope);
}

static void
drain_index(AioIndexBacklog *backlog, AioStatementBacklog *statement)
{
	AioBacklogCounts *counts = &backlog->counts;
	uint64		leaf_visits = aio_session_stats_data.leaf_visits;
	uint64		watched = aio_reads_watched;
	uint32		nentries = backlog->nentries;
	PgStat_Counter reads = 0;
	AioIndexStats *stats;
	MemoryContext context;
	MemoryContext old;

	if (backlog->nentries == 0)
		return;

	stats = AioPendingIndexStats(backlog->index);
	if (stats != NULL)
		reads = stats->reads;
	AioWatchReads(&backlog->index->rd_locator);

	counts->batches++;
	counts->suspended -= aio_task_counters.tasks_suspended;
	aio_leaf_stream_in_flight_max = 0;

	context = AllocSetContextCreate(statement->context, "index backlog drain",
									ALLOCSET_DEFAULT_SIZES);
	old = MemoryContextSwitchTo(context);
	AioScopeRun(insert_sorted, backlog, AioIsDataError);
	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);
	free_chunks(backlog, statement);

	leaf_visits = aio_session_stats_data.leaf_visits - leaf_visits;
	counts->leaf_visits += leaf_visits;
	AioWatchReads(NULL);
	stats = AioPendingIndexStats(backlog->index);
	if (stats != NULL)
	{
		stats->entries += nentries;
		stats->batches++;
		stats->leaf_visits += leaf_visits;
		/* those of tasks have been counted, but there are others */
		stats->reads = reads + aio_reads_watched - watched;
	}
	counts->suspended += aio_task_counters.tasks_suspended;
	counts->in_flight_max = Max(counts->in_flight_max, aio_leaf_stream_in_flight_max);
}

/* qsort comparator: by row, and within a row by index */
static int
compare_conflicts(const void *a, const void *b)
{
	const Conflict *ca = a;
	const Conflict *cb = b;

	if (ca->row.number != cb->row.number)
		return ca->row.number < cb->row.number ? -1 : 1;
	return pg_cmp_size((size_t) ca->backlog, (size_t) cb->backlog);
}

/*
 * The check that a key is unique was not conclusive, or the key was not even
 * inserted because an earlier row of the backlog has it: either will be made up
 * for when all entries are in.
 */
void
AioBacklogConflict(AioIndexBacklog *backlog, IndexTuple tuple)
{
	AioStatementBacklog *statement = backlog->table->statement;
	MemoryContext old = MemoryContextSwitchTo(statement->context);
	Conflict   *conflict;

	if (statement->nconflicts == statement->conflicts_max)
	{
		statement->conflicts_max = Max(16, 2 * statement->conflicts_max);
		statement->conflicts = statement->conflicts == NULL ?
			MemoryContextAllocHuge(statement->context,
								   sizeof(Conflict) * statement->conflicts_max) :
			repalloc_huge(statement->conflicts,
						  sizeof(Conflict) * statement->conflicts_max);
	}
	conflict = &statement->conflicts[statement->nconflicts++];
	conflict->row = *AioGetEntryRow(tuple);
	conflict->backlog = backlog;
	conflict->tuple = CopyIndexTuple(tuple);
	MemoryContextSwitchTo(old);
}

/*
 * Look again at keys that may be duplicates, in the order in which row-by-row
 * inserts would have met them.  Waits for other transactions, and raises the
 * error of the first that is a duplicate.
 */
static void
check_conflicts(AioStatementBacklog *statement)
{
	CopyFromState cstate = statement->cstate;
	uint64		save_lineno = 0;
	bool		save_line_valid = false;
	bool		save_relname_only = false;

	if (statement->nconflicts == 0)
		return;
	if (cstate != NULL)
	{
		save_lineno = cstate->cur_lineno;
		save_line_valid = cstate->line_buf_valid;
		save_relname_only = cstate->relname_only;
		cstate->line_buf_valid = false;
		cstate->relname_only = false;
		cstate->cur_attname = NULL;
	}
	qsort(statement->conflicts, statement->nconflicts, sizeof(Conflict),
		  compare_conflicts);
	for (int i = 0; i < statement->nconflicts; i++)
	{
		Conflict   *conflict = &statement->conflicts[i];

		CHECK_FOR_INTERRUPTS();
		if (cstate != NULL)
			cstate->cur_lineno = statement->base_line + conflict->row.line;
		_bt_doinsert(conflict->backlog->index, conflict->tuple,
					 conflict->row.duplicate ? UNIQUE_CHECK_YES : UNIQUE_CHECK_EXISTING,
					 false, conflict->backlog->heap);
		pfree(conflict->tuple);
	}
	statement->nconflicts = 0;
	if (cstate != NULL)
	{
		cstate->cur_lineno = save_lineno;
		cstate->line_buf_valid = save_line_valid;
		cstate->relname_only = save_relname_only;
	}
}

/* Insert the rows that were kept back. */
static void
flush_rows(AioStatementBacklog *statement)
{
	if (statement->rows_kept == 0)
		return;
	statement->rows_kept = 0;
	statement->bytes_kept = 0;
	for (AioTableBacklog *table = statement->tables; table; table = table->next)
	{
		if (table->rows_kept != NULL)
			AioFlushRows(table->rows_kept);
	}
}

static void
drain(AioStatementBacklog *statement)
{
	if (statement->failed)
		ereport(ERROR,
				(errcode(ERRCODE_IN_FAILED_SQL_TRANSACTION),
				 errmsg("index entries of rows inserted earlier by this statement are missing"),
				 errdetail("An error that occurred while they were being inserted was caught by a function that the statement called.")));
	if (is_empty(statement) || statement->draining)
		return;

	aio_session_stats_data.batches++;
	if (statement->rows < ROWS_WORTH_WHILE)
		statement->short_drains++;
	else
		statement->short_drains = 0;

	PG_TRY();
	{
		statement->draining = true;
		INJECTION_POINT("aio-drain", NULL);
		flush_rows(statement);
		for (AioTableBacklog *table = statement->tables; table; table = table->next)
		{
			for (int i = 0; i < table->nindexes; i++)
				drain_index(&table->indexes[i], statement);
		}
		check_conflicts(statement);
		statement->draining = false;
	}
	PG_CATCH();
	{
		statement->draining = false;
		statement->failed = true;
		PG_RE_THROW();
	}
	PG_END_TRY();
	statement->rows = 0;
	statement->entries_max = 0;
	statement->keys = false;
}

/* Can a statement's drain find out that one of its rows fails? */
bool
AioBacklogIsChecked(EState *estate)
{
	AioStatementBacklog *statement = find_statement(estate);

	return statement != NULL && (statement->keys || statement->rows_kept > 0) &&
		!statement->failed && !statement->draining;
}

/*
 * INSERT is about to put a row into the heap: keep it back?  It counts as
 * inserted, then.
 */
bool
AioBufferRow(ModifyTableState *mtstate, ResultRelInfo *rri,
			 TupleTableSlot *slot, bool canSetTag)
{
	EState	   *estate = mtstate->ps.state;
	AioStatementBacklog *statement;
	AioTableBacklog *table;

	if (!aio_await_index_inserts || aio_index_batch_memory == 0 ||
		mtstate->operation != CMD_INSERT)
		return false;

	table = get_table(rri, estate, estate->es_output_cid, NULL);
	statement = table->statement;
	if (!table->rows_asked)
	{
		table->rows_asked = true;
		if (statement->cid == estate->es_output_cid &&
			AioRowsMayWait(mtstate, rri))
		{
			MemoryContext old = MemoryContextSwitchTo(statement->context);

			table->rows_kept = AioMakeRowBuffer(mtstate, rri);
			MemoryContextSwitchTo(old);
		}
	}
	if (table->rows_kept == NULL ||
		statement->short_drains >= SHORT_DRAINS_MAX)
		return false;

	statement->bytes_kept += AioKeepRow(table->rows_kept, slot);
	statement->rows_kept++;
	if (canSetTag)
		estate->es_processed++;
	if (AioRowsAreEnough(statement->rows_kept, statement->bytes_kept))
		flush_rows(statement);
	return true;
}

/*
 * A statement, or one of its parts that insert rows, has come to its end:
 * insert all that it has gathered.
 *
 * If a row that was kept back fails, the guard calls this again, for the rows
 * before it.
 */
void
AioDrainStatement(EState *estate)
{
	AioStatementBacklog *statement = find_statement(estate);

	if (statement == NULL)
		return;
	if (!statement->draining && !statement->failed)
		flush_rows(statement);
	drain(statement);
}

/*
 * A query is about to run with this snapshot: drain the backlogs of statements
 * whose rows it could see.
 */
void
AioDrainVisibleTo(Snapshot snapshot)
{
	dlist_iter	iter;

	dlist_foreach(iter, &statements)
	{
		AioStatementBacklog *statement = dlist_container(AioStatementBacklog,
														 node, iter.cur);

		if ((!is_empty(statement) || statement->failed) &&
			(snapshot == NULL || snapshot->snapshot_type != SNAPSHOT_MVCC ||
			 snapshot->curcid > statement->cid || statement->frozen) &&
			is_alive(statement))
		{
			aio_session_stats_data.batches_looked_at++;
			drain(statement);
		}
	}
}

/*
 * A subtransaction is about to begin, in a function that a statement calls.
 * Rows that have been kept back until now do not belong to it.
 */
void
AioInsertKeptRows(void)
{
	dlist_iter	iter;

	dlist_foreach(iter, &statements)
	{
		AioStatementBacklog *statement = dlist_container(AioStatementBacklog,
														 node, iter.cur);

		if (!statement->failed && !statement->draining && is_alive(statement))
			flush_rows(statement);
	}
}

/* ------------------------------------------------------------------------
 * Gathering
 * ------------------------------------------------------------------------
 */

/* Memory, in bytes, that the backlog takes now and while it is drained. */
static inline Size
memory_needed(const AioStatementBacklog *statement)
{
	return statement->bytes + statement->entries_max * sizeof(AioEntry);
}

/* Room for a tuple of so many bytes. */
static pg_noinline void
add_chunk(AioIndexBacklog *backlog, AioStatementBacklog *statement, Size bytes)
{
	Size		budget = (Size) aio_index_batch_memory * 1024;
	Size		needed = memory_needed(statement);
	Size		size = backlog->last ? Min(backlog->last->size * 2, CHUNK_MAX) : CHUNK_MIN;
	AioEntryChunk *chunk;

	/* do not take more than is left, unless it is needed for this tuple */
	size = Min(size, budget > needed ? budget - needed : 0);
	size = Max(size, offsetof(AioEntryChunk, tuples) + bytes);

	chunk = MemoryContextAlloc(statement->context, size);
	chunk->next = NULL;
	chunk->used = 0;
	chunk->size = size;
	if (backlog->last != NULL)
		backlog->last->next = chunk;
	else
		backlog->first = chunk;
	backlog->last = chunk;
	statement->bytes += size;
}

/* Append a copy of an index tuple. */
static void
add_tuple(AioIndexBacklog *backlog, AioStatementBacklog *statement,
		  IndexTuple tuple, uint64 line)
{
	AioEntryChunk *chunk = backlog->last;
	Size		tuple_bytes = MAXALIGN(IndexTupleSize(tuple));
	Size		bytes = tuple_bytes + (backlog->unique ? sizeof(AioEntryRow) : 0);

	if (chunk == NULL ||
		chunk->used + bytes > chunk->size - offsetof(AioEntryChunk, tuples))
	{
		add_chunk(backlog, statement, bytes);
		chunk = backlog->last;
	}
	memcpy((char *) chunk->tuples + chunk->used, tuple, tuple_bytes);
	if (backlog->unique)
	{
		AioEntryRow *row = AioGetEntryRow((IndexTuple) ((char *) chunk->tuples + chunk->used));

		/* lines of different partitions do not come in order */
		if (!statement->keys)
			statement->base_line = line - Min(line, PG_INT32_MAX);
		statement->keys = true;
		row->duplicate = false;
		row->number = statement->rows;
		row->line = line - statement->base_line;
	}
	chunk->used += bytes;
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

static inline void
count_entry(AioIndexBacklog *backlog, AioStatementBacklog *statement)
{
	backlog->nentries++;
	backlog->counts.entries++;
	aio_session_stats_data.entries_gathered++;
	/* keys of GIN are not sorted, and have their own limit */
	statement->entries_max = Max(statement->entries_max,
								 backlog->gin ? 1 : backlog->nentries);
}

/*
 * Gather the entry of a row in one of the table's indexes.  'line' is COPY's.
 * Returns false if it is to be inserted at once.  Values are copied.
 */
bool
AioBacklogAdd(AioTableBacklog *table, int index,
			  const Datum *values, const bool *isnull, ItemPointer tid,
			  uint64 line)
{
	AioIndexBacklog *backlog = &table->indexes[index];
	AioStatementBacklog *statement = table->statement;
	IndexTuple	tuple;

	if (!backlog->gathers)
		return false;

	if (backlog->mode == AIO_INDEX_GIN)
	{
		if (!AioGatherGin(&backlog->gin, statement->context, backlog->index,
						  values, isnull, tid, &statement->bytes))
			return false;
		count_entry(backlog, statement);
		return true;
	}
	if (backlog->mode == AIO_INDEX_HASH)
	{
		Datum		hash;
		bool		hash_isnull;

		/* what is null is not in a hash index */
		if (!_hash_convert_tuple(backlog->index,
								 (Datum *) values, (bool *) isnull,
								 &hash, &hash_isnull))
			return true;
		tuple = index_form_tuple(backlog->desc, &hash, &hash_isnull);
	}
	else if (backlog->mode != AIO_INDEX_BTREE && !is_small(backlog->desc, values, isnull))
		return false;
	else
		tuple = index_form_tuple(backlog->desc, values, isnull);

	if (backlog->mode == AIO_INDEX_BTREE &&
		MAXALIGN(IndexTupleSize(tuple)) > BTMaxItemSize)
	{
		pfree(tuple);
		return false;
	}
	tuple->t_tid = *tid;
	add_tuple(backlog, statement, tuple, line);
	count_entry(backlog, statement);
	pfree(tuple);
	return true;
}

/*
 * Keys that grow from row to row are cheapest to insert row by row.  Called by
 * the statement itself: if it fails here, nobody can catch that error on the
 * way.
 */
static void
look_at_order(AioTableBacklog *table, AioScope *scope)
{
	for (int i = 0; i < table->nindexes; i++)
	{
		AioIndexBacklog *backlog = &table->indexes[i];

		if (!backlog->gathers || backlog->looked_at ||
			backlog->nentries < ENTRIES_TO_LOOK_AT)
			continue;
		backlog->looked_at = true;
		if (AioEntriesInOrder(backlog))
		{
			AioScopeJoin(scope);
			drain_index(backlog, table->statement);
			backlog->gathers = false;
		}
	}

	table->gathers = false;
	table->in_order = true;
	for (int i = 0; i < table->nindexes; i++)
	{
		table->gathers |= table->indexes[i].gathers;
		table->in_order &= table->indexes[i].looked_at && !table->indexes[i].gathers;
	}

	/* do not go on for long if there is a duplicate */
	if (table->statement->nconflicts > 0)
		drain(table->statement);
}

/*
 * The entries of one more row have been gathered: see whether to drain.  Before
 * that, the tasks of the scope in which rows are inserted end: they would hold
 * pins all the while.
 */
void
AioBacklogConsider(AioTableBacklog *table, AioScope *scope)
{
	AioStatementBacklog *statement = table->statement;

	statement->rows++;
	if (statement->rows % ENTRIES_TO_LOOK_AT == 0)
		look_at_order(table, scope);
	if (memory_needed(statement) >= (Size) aio_index_batch_memory * 1024 ||
		statement->entries_max >= ENTRIES_MAX)
	{
		AioScopeJoin(scope);
		aio_session_stats_data.batches_full++;
		drain(statement);
	}
}
