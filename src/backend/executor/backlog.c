/*-------------------------------------------------------------------------
 *
 * backlog.c
 *	  Index entries that a statement has still to insert: which there are.
 *
 * A statement that inserts many rows puts them into the heap as usual, and
 * collects their index entries in memory (backlog_collect.c).  When its budget
 * is used up, when it ends, or when anybody could look, the backlog is drained
 * (backlog_drain.c): each index's entries are sorted and inserted in index
 * order, such that neighbours share the reading, the searching and the cache
 * lines of their page.  Keys that are enforced come first (backlog_keys.c).
 *
 * This file keeps the list of statements with a backlog, and decides which of
 * their indexes take part, and with what kind of entries.  All of it is in the
 * memory of the statement's executor state, and goes with that.
 *
 * INVARIANT-32: whoever could see rows of the statement finds them in every
 * index.  Another transaction cannot before the statement ends.  This one can,
 * through a snapshot with a later command id than the statement's: no query
 * runs with such a snapshot while a backlog is not empty (AioDrainVisibleTo()
 * at the start of each executor run), nor does anybody else look in one of its
 * indexes (backlog_gate.c).
 *
 * INVARIANT-33: no row dies while its entries are in a backlog, as VACUUM
 * could then give its place to another one.  Rows of a running statement are
 * killed by speculative insertion only, which drains before (index_insert.c);
 * those of logical replication, not before their transaction ends (apply.c).  A
 * statement whose subtransaction has been rolled back drains no more.
 *
 * Tests: src/test/aio/sql, src/test/aio/index/t.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/tupmacs.h"
#include "access/xact.h"
#include "aio/error_point.h"
#include "aio/index_backlog.h"
#include "aio/index_policy.h"
#include "aio/sibling_locks.h"
#include "catalog/partition.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_subscription_rel.h"
#include "commands/copyfrom_internal.h"
#include "guard.h"
#include "nodes/nodeFuncs.h"
#include "replication/logicalworker.h"
#include "replication/worker_internal.h"
#include "storage/lmgr.h"
#include "utils/catcache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/syscache.h"

/* aio.index_batch_memory, in kB */
int			aio_index_batch_memory = 64 * 1024;

#ifdef USE_ASSERT_CHECKING
/* aio.debug_rows_before_batch */
int			aio_debug_rows_before_batch = AIO_ROWS_BEFORE_BATCH;
#endif

/* aio.batch_unique_keys */
int			aio_batch_unique_keys = AIO_BATCH_UNIQUE_KEYS_AUTO;

typedef struct TableByRri
{
	ResultRelInfo *rri;			/* hash key */
	AioTableBacklog *table;
} TableByRri;

typedef struct IndexByOid
{
	Oid			indexid;		/* hash key */
	AioIndexBacklog *first;		/* linked by same_index */
} IndexByOid;

bool		aio_backlogs_exist = false;

/* running statements that have had a backlog */
static dlist_head statements = DLIST_STATIC_INIT(statements);

/* the one asked for last, as each row asks */
static AioTableBacklog *last_table = NULL;

/* Has the (sub)transaction that the statement runs in not been rolled back? */
bool
AioStatementIsAlive(const AioStatementBacklog *statement)
{
	return statement->lxid == MyProc->vxid.lxid &&
		SubTransactionIsActive(statement->subid);
}

/* Could somebody who looks through this snapshot, or NULL, see its rows? */
bool
AioStatementIsVisible(const AioStatementBacklog *statement, Snapshot snapshot)
{
	return snapshot == NULL || snapshot->snapshot_type != SNAPSHOT_MVCC ||
		snapshot->curcid > statement->cid || statement->frozen;
}

/* The statement's memory goes away. */
static void
forget_statement(void *arg)
{
	AioStatementBacklog *statement = arg;

	Assert(AioBacklogIsEmpty(statement) || statement->failed ||
		   statement->sorting || !AioStatementIsAlive(statement));
	Assert(aio_backlogs_exist);
	dlist_delete(&statement->node);
	aio_backlogs_exist = !dlist_is_empty(&statements);
	last_table = NULL;
}

/* The backlogs of the statement that is running with this EState, or NULL. */
AioStatementBacklog *
AioFindStatement(EState *estate)
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

/* The backlog of a result relation, or NULL. */
AioTableBacklog *
AioFindTableBacklog(AioStatementBacklog *statement, ResultRelInfo *rri)
{
	TableByRri *entry = hash_search(statement->tables_by_rri, &rri, HASH_FIND, NULL);

	return entry ? entry->table : NULL;
}

/* Those of an index, linked by same_index, or NULL. */
AioIndexBacklog *
AioFindIndexBacklogs(AioStatementBacklog *statement, Oid indexid)
{
	IndexByOid *entry = hash_search(statement->indexes_by_oid, &indexid, HASH_FIND, NULL);

	return entry ? entry->first : NULL;
}

/* The next of all statements after another one, or after NULL the first. */
AioStatementBacklog *
AioNextStatement(AioStatementBacklog *previous)
{
	if (previous == NULL)
		return dlist_is_empty(&statements) ? NULL :
			dlist_head_element(AioStatementBacklog, node, &statements);
	Assert(aio_backlogs_exist);
	return dlist_has_next(&statements, &previous->node) ?
		dlist_container(AioStatementBacklog, node,
						dlist_next_node(&statements, &previous->node)) : NULL;
}

static AioStatementBacklog *
make_statement(EState *estate, CommandId cid, CopyFromState cstate)
{
	AioStatementBacklog *statement;
	HASHCTL		ctl;
	MemoryContext context;

	Assert(AioFindStatement(estate) == NULL);
	Assert(MyProc->vxid.lxid != InvalidLocalTransactionId);
	context = AllocSetContextCreate(estate->es_query_cxt,
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
	statement->owner = CurrentResourceOwner;
	statement->callback.func = forget_statement;
	statement->callback.arg = statement;
	MemoryContextRegisterResetCallback(context, &statement->callback);
	ctl.keysize = sizeof(ResultRelInfo *);
	ctl.entrysize = sizeof(TableByRri);
	ctl.hcxt = context;
	statement->tables_by_rri = hash_create("index backlog tables", 16, &ctl,
										   HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	ctl.keysize = sizeof(Oid);
	ctl.entrysize = sizeof(IndexByOid);
	statement->indexes_by_oid = hash_create("index backlog indexes", 16, &ctl,
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
may_collect(const AioIndexBacklog *backlog)
{
	const AioIndexBatch *batch = &backlog->batch;
	const AioIndexAmOps *ops = backlog->ops;

	if (ops == NULL || ops->collect == NULL)
		return false;
	if (batch->info->ii_ExclusionOps != NULL || !batch->info->ii_ReadyForInserts)
		return false;
	if (batch->unique &&
		(ops->check_again == NULL || !batch->index->rd_index->indimmediate))
		return false;
	return ops->may_collect(batch);
}

/*
 * What the backlog's entries are made of: what is in the index, or what goes
 * in, if the access method changes that.
 */
static TupleDesc
entry_desc(const AioIndexBacklog *backlog)
{
	const AioIndexBatch *batch = &backlog->batch;
	IndexInfo  *info = batch->info;
	ListCell   *expression = list_head(info->ii_Expressions);
	MemoryContext old;
	TupleDesc	desc;

	if (backlog->ops == NULL || !backlog->ops->collects_input)
		return RelationGetDescr(batch->index);

	old = MemoryContextSwitchTo(batch->context);
	desc = CreateTemplateTupleDesc(info->ii_NumIndexAttrs);
	for (int i = 0; i < info->ii_NumIndexAttrs; i++)
	{
		AttrNumber	attnum = info->ii_IndexAttrNumbers[i];

		if (attnum > 0)
			TupleDescCopyEntry(desc, i + 1, RelationGetDescr(batch->heap), attnum);
		else
		{
			Node	   *node = lfirst(expression);

			TupleDescInitEntry(desc, i + 1, NULL, exprType(node), exprTypmod(node), 0);
			expression = lnext(info->ii_Expressions, expression);
		}
	}
	Assert(expression == NULL);
	MemoryContextSwitchTo(old);
	return desc;
}

/*
 * The bytes of any index tuple of these columns that has no nulls; 0 if they
 * depend on the values, or may be too many for a page.
 */
static Size
fixed_bytes(TupleDesc desc)
{
	Size		bytes = sizeof(IndexTupleData);

	for (int i = 0; i < desc->natts; i++)
	{
		const CompactAttribute *column = TupleDescCompactAttr(desc, i);

		if (column->attlen <= 0)
			return 0;
		bytes = att_nominal_alignby(bytes, column->attalignby) + column->attlen;
	}
	return bytes <= AIO_SMALL_ENTRY ? MAXALIGN(bytes) : 0;
}

/*
 * Is it known of all indexes of a table that enforce something that their
 * entries may wait?  One of which they may not has each row wait for others, or
 * has others wait for it.
 */
static bool
all_keys_may_be_collected(const AioTableBacklog *table)
{
	for (int i = 0; i < table->nindexes; i++)
	{
		const AioIndexBacklog *backlog = &table->indexes[i];
		const AioIndexBatch *batch = &backlog->batch;

		if (batch->index != NULL && batch->info->ii_ReadyForInserts &&
			(batch->unique || batch->info->ii_ExclusionOps != NULL) &&
			!backlog->collects)
			return false;
	}
	return true;
}

/*
 * May keys that are enforced wait?  How they are inserted then is decided for
 * each drain (backlog_keys.c), if nobody knows yet that nobody else can write
 * to the table, or has asked for it.
 */
static bool
keys_can_wait(const AioTableBacklog *table)
{
	return aio_batch_unique_keys == AIO_BATCH_UNIQUE_KEYS_ON ||
		CheckRelationLockedByMe(table->rri->ri_RelationDesc, ShareLock, true) ||
		(aio_batch_unique_keys == AIO_BATCH_UNIQUE_KEYS_AUTO &&
		 all_keys_may_be_collected(table));
}

/* One of a table's indexes, with all but whether its entries are collected. */
static void
init_index(AioIndexBacklog *backlog, AioTableBacklog *table, int i)
{
	ResultRelInfo *rri = table->rri;
	AioIndexBatch *batch = &backlog->batch;

	batch->index = rri->ri_IndexRelationDescs[i];
	batch->heap = rri->ri_RelationDesc;
	batch->info = rri->ri_IndexRelationInfo[i];
	batch->context = table->statement->context;
	backlog->table = table;
	if (batch->index == NULL)
		return;
	/* what is asked for other indexes may have policies made anew */
	backlog->ops = AioGetTablePolicy(rri)->indexes[i].ops;
	batch->desc = entry_desc(backlog);
	backlog->fixed_bytes = fixed_bytes(batch->desc);
	batch->unique = batch->index->rd_index->indisunique;
	/* of others it does not matter in which order they come */
	backlog->order_checked = !batch->unique || backlog->ops == NULL ||
		backlog->ops->in_order == NULL;
}

/* Note what the state of its indexes comes to. */
void
AioSumUpTable(AioTableBacklog *table)
{
	table->collects = false;
	table->in_order = true;
	for (int i = 0; i < table->nindexes; i++)
	{
		AioIndexBacklog *backlog = &table->indexes[i];

		table->collects |= backlog->collects;
		table->only_collects &= backlog->collects || backlog->batch.index == NULL;
		table->in_order &= backlog->order_checked && !backlog->collects;
	}
}

/* Have AioFindIndexBacklogs() find an index. */
static void
add_index(AioIndexBacklog *backlog)
{
	Oid			indexid = RelationGetRelid(backlog->batch.index);
	bool		found;
	IndexByOid *entry = hash_search(backlog->table->statement->indexes_by_oid,
									&indexid, HASH_ENTER, &found);

	backlog->same_index = found ? entry->first : NULL;
	entry->first = backlog;
}

/* Does a subscription have this table, other than that whose worker we are? */
static bool
others_subscribe_to(Oid relid)
{
	Oid			own = IsLogicalWorker() ? MyLogicalRepWorker->subid : InvalidOid;
	CatCList   *list = SearchSysCacheList1(SUBSCRIPTIONRELMAP,
										   ObjectIdGetDatum(relid));
	bool		result = false;

	for (int i = 0; i < list->n_members && !result; i++)
	{
		HeapTuple	tuple = &list->members[i]->tuple;

		result = ((Form_pg_subscription_rel) GETSTRUCT(tuple))->srsubid != own;
	}
	ReleaseSysCacheList(list);
	return result;
}

/*
 * Does a subscription write to this table, or to one of which it is a
 * partition, besides that whose worker we are?  Its worker searches indexes for
 * rows that others have inserted, and waits for the transactions of these
 * before it says that a row is missing.
 */
static bool
is_subscribed(Relation rel)
{
	static const Oid catalogs[] = {
		SubscriptionRelRelationId, SubscriptionRelSrrelidSrsubidIndexId,
		InheritsRelationId, InheritsRelidSeqnoIndexId
	};
	int			ncatalogs = rel->rd_rel->relispartition ? 4 : 2;
	int			nlocked = 0;
	bool		result = true;

	if (rel->rd_rel->relpersistence == RELPERSISTENCE_TEMP)
		return false;

	/*
	 * ALTER SUBSCRIPTION has the catalog locked while it talks to a
	 * publisher, which may wait for us.
	 */
	while (nlocked < ncatalogs &&
		   AioLockIfFree(catalogs[nlocked], AccessShareLock))
		nlocked++;
	if (nlocked == ncatalogs)
	{
		result = others_subscribe_to(RelationGetRelid(rel));
		if (!result && rel->rd_rel->relispartition)
		{
			List	   *ancestors = get_partition_ancestors(RelationGetRelid(rel));

			foreach_oid(relid, ancestors)
				result |= others_subscribe_to(relid);
			list_free(ancestors);
		}
	}
	while (nlocked > 0)
		UnlockRelationOid(catalogs[--nlocked], AccessShareLock);
	return result;
}

static AioTableBacklog *
make_table(AioStatementBacklog *statement, ResultRelInfo *rri)
{
	AioTableBacklog *table;
	bool		keys = false;

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

		init_index(backlog, table, i);
		if (backlog->batch.index == NULL)
			continue;
		backlog->collects = may_collect(backlog);
		keys |= backlog->collects && backlog->batch.unique;
	}
	if (keys && !(keys_can_wait(table) &&
				  AioLaterRowsHaveNoSideEffects(rri, statement->estate,
												statement->cstate)))
	{
		for (int i = 0; i < table->nindexes; i++)
			table->indexes[i].collects &= !table->indexes[i].batch.unique;
	}
	table->only_collects = true;
	AioSumUpTable(table);
	/* not known before any entry has come */
	table->in_order = false;
	for (int i = 0; i < table->nindexes; i++)
	{
		if (table->indexes[i].batch.index != NULL)
			add_index(&table->indexes[i]);
	}
	table->next = statement->tables;
	statement->tables = table;
	return table;
}

/*
 * The backlog of a table, which is made if need be.  cid is the command id of
 * the statement's rows, cstate COPY's or NULL.  Returns NULL if no statement is
 * to have a backlog.
 *
 * Before entries are collected, the caller makes sure that the relation's
 * indexes may be inserted into by tasks, as user code is as unwelcome here.
 */
AioTableBacklog *
AioGetTableBacklog(ResultRelInfo *rri, EState *estate, CommandId cid,
				   CopyFromState cstate)
{
	AioTableBacklog *table = last_table;
	AioStatementBacklog *statement;
	TableByRri *entry;
	bool		found;

	Assert(!IsolationIsSerializable());
	if (aio_index_batch_memory == 0)
		return NULL;
	if (likely(table != NULL && table->rri == rri &&
			   table->statement->estate == estate))
		return table;

	statement = AioFindStatement(estate);
	if (statement == NULL)
		statement = make_statement(estate, cid, cstate);
	table = AioFindTableBacklog(statement, rri);
	if (table == NULL)
	{
#ifdef USE_ASSERT_CHECKING
		long		nlocks = hash_get_num_entries(GetLockMethodLocalHash());
#endif

		table = make_table(statement, rri);

		/* INVARIANT-102: nothing is locked that the statement would not */
		Assert(hash_get_num_entries(GetLockMethodLocalHash()) == nlocks);
		entry = hash_search(statement->tables_by_rri, &rri, HASH_ENTER, &found);
		entry->table = table;
	}
	Assert(table->rri == rri && table->statement == statement);
	Assert(table->nindexes == rri->ri_NumIndices);
	last_table = table;
	return table;
}

/*
 * Entries of a table are about to be collected, or rows kept back: is there no
 * subscription's worker who would look for them?  Else none are collected for
 * it.  Asked once, and not by statements of few rows.
 */
bool
AioNobodyLooks(AioTableBacklog *table)
{
	if (likely(table->nobody_looks))
		return true;
	table->nobody_looks = !is_subscribed(table->rri->ri_RelationDesc);
	if (!table->nobody_looks)
	{
		for (int i = 0; i < table->nindexes; i++)
			table->indexes[i].collects = false;
		AioSumUpTable(table);
	}
	return table->nobody_looks;
}

/*
 * The statement inserts nrows more rows with command id cid, after as many as
 * estate->es_processed says.  Returns whether entries of them are collected,
 * in those indexes that do.
 */
bool
AioBacklogTakes(AioTableBacklog *table, CommandId cid, int nrows)
{
	Assert(nrows > 0);
	table->rows += nrows;
	table->statement->rows_taken += nrows;
	return table->collects &&
		table->rows - nrows >= (uint64) aio_debug_rows_before_batch &&
		table->statement->cid == cid &&
		table->statement->short_drains < AIO_SHORT_DRAINS_MAX &&
		AioNobodyLooks(table);
}

/* Are keys that are enforced collected for a table? */
bool
AioBacklogCollectsKeys(const AioTableBacklog *table)
{
	for (int i = 0; i < table->nindexes; i++)
	{
		if (table->indexes[i].collects && table->indexes[i].batch.unique)
			return true;
	}
	return false;
}

/* The backlogs of all tables of a statement, as a list, or NULL. */
AioTableBacklog *
AioGetTableBacklogs(EState *estate)
{
	AioStatementBacklog *statement = AioFindStatement(estate);

	return statement ? statement->tables : NULL;
}

/* Can a statement's drain find out that one of its rows fails? */
bool
AioBacklogIsChecked(EState *estate)
{
	AioStatementBacklog *statement = AioFindStatement(estate);

	return statement != NULL && (statement->keys || statement->rows_kept > 0) &&
		!statement->failed && !statement->draining && !statement->sorting;
}

/*
 * Raise an error if a statement's drain has failed, or a sort of its entries,
 * and a function has caught that: again that of the drain.
 */
void
AioCheckDrains(const AioStatementBacklog *statement)
{
	if (statement->error != NULL)
		ReThrowError(statement->error);
	if (statement->failed || (statement->sorting && !statement->draining))
		ereport(ERROR,
				(errcode(ERRCODE_IN_FAILED_SQL_TRANSACTION),
				 errmsg("index entries of rows inserted earlier by this statement are missing"),
				 errdetail("An error that occurred while they were being inserted was caught by a function that the statement called.")));
}

/* Put the rows that were kept back into the heap. */
void
AioFlushKeptRows(AioStatementBacklog *statement)
{
	if (statement->rows_kept == 0)
		return;
	Assert(!statement->failed);
	statement->rows_kept = 0;
	statement->bytes_kept = 0;
	PG_TRY();
	{
		for (AioTableBacklog *table = statement->tables; table; table = table->next)
		{
			if (table->rows_kept != NULL)
				table->rows_kept->flush(table->rows_kept);
		}
	}
	PG_CATCH();
	{
		aio_earlier_errors++;
		PG_RE_THROW();
	}
	PG_END_TRY();
}
