/*-------------------------------------------------------------------------
 *
 * apply.c
 *	  Index entries of rows that logical replication applies.
 *
 * Each change that a subscription's worker receives is a statement of its own:
 * upstream sets up an executor state for it, changes one row, and tears the
 * state down.  The changes of a transaction share a backlog all the same.  It
 * belongs to a statement that we make up, which has the tables of those changes
 * open.
 *
 * DDL, as in a trigger, and TRUNCATE want the tables for themselves; so the
 * made-up statement ends before either, and before the transaction does.
 * Queries of triggers and functions drain it like any other backlog
 * (INVARIANT-32): its command id is that of the first of its rows.
 *
 * INVARIANT-68: a worker searches for the rows that it updates and deletes
 * without the executor, and sees those of other workers that are not
 * committed; but never in an index that lacks entries of its own transaction:
 * index_rescan() has them inserted (backlog_gate.c).  That of the replica
 * identity, or of the primary key, is unique, and so its entries are not
 * collected; if a table has neither, and rows are identified by all of their
 * columns, any index may be searched, and collecting is not tried.  A row that
 * another worker has inserted is searched for only when that has committed, as
 * the publisher's transactions have followed one another.
 *
 * INVARIANT-92: an index is locked as long as entries for it may wait, so that
 * what somebody does to it, such as moving it to another tablespace, is done
 * before the first of them or after the last, and no lock is asked for to
 * insert them: who has it might wait for us.  Upstream has an index locked
 * while it works on a row.  So that nobody waits for an index where he would
 * not in upstream, the statement ends, and its locks are released,
 * - when somebody waits for one of them, between two messages;
 * - before the worker waits for any other lock, as who has that could wait for
 *	 one of these; but for those of catalogs, as the worker may be in the
 *	 middle of a look-up into a cache;
 * - before it waits for its publisher for more than a moment;
 * - before a trigger runs, which may take any time.  When one before a row
 *	 runs, upstream has the indexes of that row's table locked as well;
 * - before a row may run other code that may take any time (apply_code.c).  If
 *	 that is run before upstream has locked the indexes of the row's table, no
 *	 entries are collected for it.
 *
 * INVARIANT-100: whoever inserts a row's entries has its backlog at hand,
 * and may come to user code between two of its indexes, which may end the
 * statement: from then on the backlog collects nothing, and what it is made of
 * is freed when the row is done.
 *
 * INVARIANT-33: a version of a row that the transaction has replaced or deleted
 * cannot die before the transaction ends.
 *
 * Entries are not collected in a subtransaction; only parallel apply workers
 * make subtransactions.
 *
 * Tests: src/test/aio/index/t/003_apply.pl.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/table.h"
#include "access/twophase.h"
#include "access/xact.h"
#include "aio/apply_ahead.h"
#include "aio/backlog.h"
#include "aio/index_backlog.h"
#include "aio/sibling_locks.h"
#include "apply_code.h"
#include "commands/trigger.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "portability/instr_time.h"
#include "replication/logicalproto.h"
#include "replication/logicalrelation.h"
#include "replication/logicalworker.h"
#include "storage/lmgr.h"
#include "storage/lock.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/resowner.h"

/* tables that are open at a time, with their indexes */
#define TABLES_MAX	32

/* of the locks for which there is room, these indexes may have so many */
#define LOCKS_SHARE	16

/*
 * after so many messages, or milliseconds, see whether somebody waits for an
 * index
 */
#define MESSAGES_TO_LOOK	16
#define TIME_TO_LOOK		10.0

typedef struct ApplyTable
{
	Oid			relid;			/* hash key */
	ResultRelInfo *rri;			/* NULL if its entries are not collected */
} ApplyTable;

/* The statement, in memory of the transaction. */
typedef struct ApplyStatement
{
	EState	   *estate;
	CommandId	cid;
	HTAB	   *tables;			/* ApplyTable */
	int			nopen;			/* of these */
	int			nindexes;		/* of theirs */
	bool		ended;			/* is kept for the row that is under way */
} ApplyStatement;

/* rows whose index entries may be collected, since something ended that */
uint64		aio_rows_applied = 0;

static ApplyStatement *statement = NULL;

/* somebody inserts a row's entries, and has its backlog */
static bool row_under_way = false;

/* the statement is being changed here, and cannot end */
static bool at_work = false;

static void
begin_statement(CommandId cid)
{
	MemoryContext old = MemoryContextSwitchTo(TopTransactionContext);
	EState	   *estate = CreateExecutorState();
	HASHCTL		ctl;

	Assert(statement == NULL);
	MemoryContextSwitchTo(estate->es_query_cxt);
	statement = palloc(sizeof(ApplyStatement));
	statement->estate = estate;
	statement->cid = cid;
	statement->nopen = 0;
	statement->nindexes = 0;
	statement->ended = false;
	ctl.keysize = sizeof(Oid);
	ctl.entrysize = sizeof(ApplyTable);
	ctl.hcxt = estate->es_query_cxt;
	statement->tables = hash_create("applied tables", 16, &ctl,
									HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	MemoryContextSwitchTo(old);
}

/*
 * Open a table once more, and lock its indexes, for as long as the statement
 * lasts.  The row that is worked on has the same locks, so this waits for
 * nobody.
 */
static ResultRelInfo *
open_table(Oid relid)
{
	MemoryContext old = MemoryContextSwitchTo(statement->estate->es_query_cxt);
	ResourceOwner save = CurrentResourceOwner;
	ResultRelInfo *rri = makeNode(ResultRelInfo);

	Assert(statement->nopen < TABLES_MAX);
	CurrentResourceOwner = TopTransactionResourceOwner;
	InitResultRelInfo(rri, table_open(relid, NoLock), 0, NULL, 0);
	ExecOpenIndices(rri, false);
	CurrentResourceOwner = save;
	MemoryContextSwitchTo(old);
	statement->nopen++;
	statement->nindexes += rri->ri_NumIndices;
	Assert(statement->nopen <= TABLES_MAX);
	return rri;
}

/*
 * Close a table and its indexes, and unlock these.  ExecCloseIndices() would
 * have access methods clean up after inserts, which have not used our
 * IndexInfos.
 */
static void
close_table(ApplyTable *table)
{
	ResourceOwner save = CurrentResourceOwner;
	ResultRelInfo *rri = table->rri;

	Assert(statement->nopen > 0);
	AioDrainBeforeClosing(rri);
	CurrentResourceOwner = TopTransactionResourceOwner;
	for (int i = 0; i < rri->ri_NumIndices; i++)
	{
		index_close(rri->ri_IndexRelationDescs[i], RowExclusiveLock);
		rri->ri_IndexRelationDescs[i] = NULL;
	}
	table_close(rri->ri_RelationDesc, NoLock);
	CurrentResourceOwner = save;
	table->rri = NULL;
	Assert(statement->nopen > 0);
	statement->nopen--;
	Assert(statement->nindexes >= rri->ri_NumIndices);
	statement->nindexes -= rri->ri_NumIndices;
}

/*
 * Would the indexes of one more table take more locks than we may have?  For
 * PostgreSQL the worker has those of one table at a time, which it has in any
 * case.  Who fails for want of room fails again when it has been restarted.
 */
static bool
are_too_many(const ResultRelInfo *rri)
{
	int64		room = (int64) max_locks_per_xact * (MaxBackends + max_prepared_xacts);

	return statement->nopen >= TABLES_MAX ||
		(statement->nopen > 0 &&
		 statement->nindexes + rri->ri_NumIndices > room / LOCKS_SHARE);
}

/* The table is closed: the rest of its row's entries is inserted at once. */
static void
collect_no_more(AioTableBacklog *backlog)
{
	for (int i = 0; i < backlog->nindexes; i++)
		backlog->indexes[i].collects = false;
	AioSumUpTable(backlog);
}

/* Insert all that has been collected, and close the tables. */
static void
end_statement(void)
{
	HASH_SEQ_STATUS status;
	ApplyTable *table;

	AioDrainStatement(statement->estate);
	hash_seq_init(&status, statement->tables);
	while ((table = hash_seq_search(&status)) != NULL)
	{
		if (table->rri != NULL)
			close_table(table);
	}
	Assert(statement->nopen == 0);

	for (AioTableBacklog *backlog = AioGetTableBacklogs(statement->estate);
		 backlog != NULL; backlog = backlog->next)
		collect_no_more(backlog);
	statement->ended = true;
}

static void
free_statement(void)
{
	Assert(statement->ended && !row_under_way);
	FreeExecutorState(statement->estate);
	statement = NULL;
}

/*
 * Insert all that has been collected, and close the tables.  May be called by
 * user code in the middle of a row.
 */
void
AioEndApply(void)
{
	if (statement != NULL)
	{
		if (!statement->ended)
			end_statement();
		if (!row_under_way)
			free_statement();
	}
	/* not before: if a drain fails and somebody catches that, ask again */
	aio_rows_applied = 0;
}

/*
 * The entries of the row are inserted, or collected, for which
 * AioApplyBacklog() has given a backlog.
 */
void
AioAppliedRow(void)
{
	Assert(row_under_way);
	row_under_way = false;
	if (statement->ended)
		free_statement();
}

/*
 * Is the statement in progress, with tables open, such that it may be ended
 * now?  Not while it is being drained.
 */
static bool
may_end(void)
{
	AioStatementBacklog *backlog;

	if (at_work || statement == NULL || statement->ended ||
		statement->nopen == 0 || !IsTransactionState())
		return false;
	backlog = AioFindStatement(statement->estate);
	return backlog == NULL ||
		!(backlog->draining || backlog->sorting || AioPageIsInTheWay(backlog));
}

/* Does anybody wait for a lock on an index that the statement has open? */
static bool
somebody_waits(void)
{
	HASH_SEQ_STATUS status;
	ApplyTable *table;
	bool		result = false;

	hash_seq_init(&status, statement->tables);
	while ((table = hash_seq_search(&status)) != NULL)
	{
		for (int i = 0; !result && table->rri != NULL &&
			 i < table->rri->ri_NumIndices; i++)
			result = AioSomebodyWaitsFor(table->rri->ri_IndexRelationDescs[i]);
	}
	return result;
}

/* Has it been a while since that was asked last? */
static bool
time_to_look(void)
{
	static uint32 messages = 0;
	static instr_time last;
	instr_time	now,
				passed;

	INSTR_TIME_SET_CURRENT(now);
	passed = now;
	INSTR_TIME_SUBTRACT(passed, last);
	if (++messages < MESSAGES_TO_LOOK && INSTR_TIME_GET_MILLISEC(passed) < TIME_TO_LOOK)
		return false;
	messages = 0;
	last = now;
	return true;
}

/* Does the worker have indexes locked between two messages? */
bool
AioApplyHasLocks(void)
{
	return may_end();
}

/* Has the statement only this table open? */
static bool
has_only(Oid relid)
{
	ApplyTable *own = hash_search(statement->tables, &relid, HASH_FIND, NULL);

	return statement->nopen == 1 && own != NULL && own->rri != NULL;
}

/*
 * A row is about to be looked for in this table, or inserted into it.  If that
 * runs code that may take any time, only indexes are locked meanwhile that
 * upstream has locked, too.
 */
void
AioEndApplyBeforeRow(Relation rel)
{
	AioRowCode	code;

	if (!may_end())
		return;
	code = AioApplyRowCode(rel);

	/* unless it has ended meanwhile, as something was locked */
	if (!may_end())
		return;
	if (code == AIO_ROW_RUNS_EARLY ||
		(code == AIO_ROW_RUNS_LATE && !has_only(RelationGetRelid(rel))))
		AioEndApply();
}

/*
 * The worker is about to get a lock: if somebody else has it, give ours back
 * before.
 */
void
AioEndApplyBeforeLock(const LOCKTAG *tag, LOCKMODE mode, bool session)
{
	/* those who have one of these wait for nobody who could wait for us */
	if (tag->locktag_type == LOCKTAG_RELATION_EXTEND ||
		tag->locktag_type == LOCKTAG_PAGE ||
		!may_end() || !AioMayDrainBeforeLock(tag) ||
		LockHeldByMe(tag, mode, false))
		return;

	/* tell standbys of no lock twice; only DDL gets one of these */
	if ((tag->locktag_type == LOCKTAG_RELATION && mode == AccessExclusiveLock) ||
		!AioLockIsToBeHad(tag, mode, session))
		AioEndApply();
}

/*
 * A trigger's function is about to be called.
 */
void
AioEndApplyForTrigger(const TriggerData *trigger)
{
	if (!may_end() ||
		(TRIGGER_FIRED_BEFORE(trigger->tg_event) &&
		 has_only(RelationGetRelid(trigger->tg_relation))))
		return;
	AioEndApply();
}

/*
 * This message of the logical replication protocol comes next.
 */
void
AioEndApplyFor(int action)
{
	/* unless an error of the last one has been caught without us */
	row_under_way = false;
	at_work = false;
	switch ((LogicalRepMsgType) action)
	{
		case LOGICAL_REP_MSG_INSERT:
		case LOGICAL_REP_MSG_UPDATE:
		case LOGICAL_REP_MSG_DELETE:
		case LOGICAL_REP_MSG_RELATION:
		case LOGICAL_REP_MSG_TYPE:
			/* tables and types are described as they are met */
			if (may_end() && time_to_look() && somebody_waits())
				AioEndApply();
			break;
		default:
			AioEndApply();
			break;
	}
}

/* XactCallback */
static void
at_end_of_transaction(XactEvent event, void *arg)
{
	switch (event)
	{
		case XACT_EVENT_PRE_COMMIT:
		case XACT_EVENT_PARALLEL_PRE_COMMIT:
		case XACT_EVENT_PRE_PREPARE:
			row_under_way = false;
			at_work = false;
			if (aio_rows_applied > 0 || statement != NULL)
				AioEndApply();
			break;
		case XACT_EVENT_ABORT:
		case XACT_EVENT_PARALLEL_ABORT:
			/* the memory goes with the transaction's */
			statement = NULL;
			row_under_way = false;
			at_work = false;
			aio_rows_applied = 0;
			break;
		default:
			break;
	}
}

/* Are these the same indexes in the same order? */
static bool
same_indexes(const ResultRelInfo *a, const ResultRelInfo *b)
{
	if (a->ri_NumIndices != b->ri_NumIndices)
		return false;
	for (int i = 0; i < a->ri_NumIndices; i++)
	{
		if (a->ri_IndexRelationDescs[i] != b->ri_IndexRelationDescs[i])
			return false;
	}
	return true;
}

/* The backlog of the statement for a row of this table, or NULL. */
static AioTableBacklog *
backlog_for_row(ResultRelInfo *rri, CommandId cid)
{
	Oid			relid = RelationGetRelid(rri->ri_RelationDesc);
	AioTableBacklog *backlog;
	ApplyTable *table;
	bool		found;

	/* the next row of this table would end the statement */
	if (AioApplyRowCode(rri->ri_RelationDesc) == AIO_ROW_RUNS_EARLY)
		return NULL;

	/* a row whose error has been caught, and that had ended it, is under way */
	Assert(statement == NULL || !statement->ended);
	if (statement == NULL)
		begin_statement(cid);
	table = hash_search(statement->tables, &relid, HASH_FIND, NULL);
	if (table == NULL)
	{
		ResultRelInfo *ours;

		if (are_too_many(rri))
		{
			AioEndApply();
			return NULL;
		}
		ours = open_table(relid);
		table = hash_search(statement->tables, &relid, HASH_ENTER, &found);
		table->rri = ours;
	}
	if (table->rri == NULL)
		return NULL;
	if (!same_indexes(table->rri, rri))
	{
		/* somebody makes or drops one concurrently */
		AioEndApply();
		return NULL;
	}

	/* a query that sees one of its rows may see the first */
	Assert(statement->cid <= cid);

	statement->estate->es_processed = aio_rows_applied;
	backlog = AioGetTableBacklog(table->rri, statement->estate, statement->cid, NULL);
	if (backlog != NULL && AioBacklogTakes(backlog, statement->cid, 1))
	{
		row_under_way = true;
		return backlog;
	}

	/*
	 * if its entries are not collected now, they will not be in this
	 * statement; those that wait are inserted before it is closed
	 */
	close_table(table);
	if (backlog != NULL)
		collect_no_more(backlog);
	return NULL;
}

/*
 * The backlog for a row, or a new version of one, that has been received and
 * put into the heap, or NULL if its index entries are to be inserted at once.
 * rri is the message's own, as is the row's command id.  If there is one, the
 * caller calls AioAppliedRow() when it has no more use for it, unless there is
 * an error.
 */
AioTableBacklog *
AioApplyBacklog(ResultRelInfo *rri, CommandId cid)
{
	static bool registered = false;
	AioTableBacklog *backlog;

	/*
	 * Others who insert like this would not tell us when to stop; nor would a
	 * function that does so in the middle of a row
	 */
	if (!IsLogicalWorker() || row_under_way)
		return NULL;
	if (!registered)
		RegisterXactCallback(at_end_of_transaction, NULL);
	registered = true;

	if (aio_rows_applied++ < (uint64) aio_debug_rows_before_batch ||
		aio_index_batch_memory == 0 || GetCurrentTransactionNestLevel() > 1 ||
		(AioAppliedIdentityIsFull() &&
		 !OidIsValid(GetRelationIdentityOrPK(rri->ri_RelationDesc))))
		return NULL;

	/* what is looked up there may have to wait for a lock on a catalog */
	at_work = true;
	backlog = backlog_for_row(rri, cid);
	at_work = false;
	return backlog;
}
