/*-------------------------------------------------------------------------
 *
 * apply.c
 *	  Index entries of rows that logical replication applies.
 *
 * Each change that a subscription's worker receives is a statement of its own:
 * upstream sets up an executor state for it, inserts one row, and tears the
 * state down.  Insertions that follow one another in a transaction share a
 * backlog all the same.  It belongs to a statement that we make up, which has
 * the tables of those insertions open.
 *
 * Changes of other kinds search for rows without the executor, and may want
 * the tables for themselves; so the made-up statement ends before each of
 * them, and before the transaction does.  Queries of triggers and functions
 * drain it like any other backlog (INVARIANT-32): its command id is that of the
 * first of its rows.
 *
 * Rows of a subtransaction do not gather; only parallel apply workers make
 * subtransactions.
 *
 * Tests: src/test/aio/t/009_apply.pl.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/table.h"
#include "access/xact.h"
#include "aio/backlog.h"
#include "backlog.h"
#include "executor/executor.h"
#include "replication/logicalproto.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/resowner.h"

typedef struct ApplyTable
{
	Oid			relid;			/* hash key */
	ResultRelInfo *rri;
} ApplyTable;

/* The statement, in memory of the transaction. */
typedef struct ApplyStatement
{
	EState	   *estate;
	CommandId	cid;
	HTAB	   *tables;			/* ApplyTable */
} ApplyStatement;

/* rows that have been inserted since a change of another kind */
uint64		aio_rows_applied = 0;

static ApplyStatement *statement = NULL;

static void end_statement(void);

/* XactCallback */
static void
at_end_of_transaction(XactEvent event, void *arg)
{
	switch (event)
	{
		case XACT_EVENT_PRE_COMMIT:
		case XACT_EVENT_PARALLEL_PRE_COMMIT:
		case XACT_EVENT_PRE_PREPARE:
			if (aio_rows_applied > 0)
				end_statement();
			break;
		case XACT_EVENT_ABORT:
		case XACT_EVENT_PARALLEL_ABORT:
			/* the memory goes with the transaction's */
			statement = NULL;
			aio_rows_applied = 0;
			break;
		default:
			break;
	}
}

static void
begin_statement(CommandId cid)
{
	MemoryContext old = MemoryContextSwitchTo(TopTransactionContext);
	EState	   *estate = CreateExecutorState();
	HASHCTL		ctl;

	MemoryContextSwitchTo(estate->es_query_cxt);
	statement = palloc(sizeof(ApplyStatement));
	statement->estate = estate;
	statement->cid = cid;
	ctl.keysize = sizeof(Oid);
	ctl.entrysize = sizeof(ApplyTable);
	ctl.hcxt = estate->es_query_cxt;
	statement->tables = hash_create("applied tables", 16, &ctl,
									HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	MemoryContextSwitchTo(old);
}

/* Open a table once more, for as long as the statement lasts. */
static ResultRelInfo *
open_table(Oid relid)
{
	MemoryContext old = MemoryContextSwitchTo(statement->estate->es_query_cxt);
	ResourceOwner save = CurrentResourceOwner;
	ResultRelInfo *rri = makeNode(ResultRelInfo);

	/* all of this belongs to the transaction, not to the portal of a message */
	CurrentResourceOwner = TopTransactionResourceOwner;
	InitResultRelInfo(rri, table_open(relid, NoLock), 0, NULL, 0);
	ExecOpenIndices(rri, false);
	CurrentResourceOwner = save;
	MemoryContextSwitchTo(old);
	return rri;
}

static void
close_tables(void)
{
	ResourceOwner save = CurrentResourceOwner;
	HASH_SEQ_STATUS status;
	ApplyTable *table;

	CurrentResourceOwner = TopTransactionResourceOwner;
	hash_seq_init(&status, statement->tables);
	while ((table = hash_seq_search(&status)) != NULL)
	{
		ExecCloseIndices(table->rri);
		table_close(table->rri->ri_RelationDesc, NoLock);
	}
	CurrentResourceOwner = save;
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

/*
 * The backlog for a row that has been received and inserted into the heap, or
 * NULL if its index entries are to be inserted at once.  rri is the message's
 * own, as is the row's command id.
 */
AioTableBacklog *
AioApplyBacklog(ResultRelInfo *rri, CommandId cid)
{
	static bool registered = false;
	Oid			relid = RelationGetRelid(rri->ri_RelationDesc);
	ApplyTable *table;
	bool		found;

	if (aio_index_batch_memory == 0 ||
		aio_rows_applied++ < (uint64) aio_debug_rows_before_batch ||
		GetCurrentTransactionNestLevel() > 1)
		return NULL;

	if (!registered)
		RegisterXactCallback(at_end_of_transaction, NULL);
	registered = true;

	if (statement == NULL)
		begin_statement(cid);
	table = hash_search(statement->tables, &relid, HASH_FIND, NULL);
	if (table == NULL)
	{
		ResultRelInfo *ours = open_table(relid);

		table = hash_search(statement->tables, &relid, HASH_ENTER, &found);
		table->rri = ours;
	}
	if (!same_indexes(table->rri, rri))
	{
		/* somebody makes or drops one concurrently */
		end_statement();
		return NULL;
	}
	statement->estate->es_processed = aio_rows_applied;
	return AioBacklogFor(table->rri, statement->estate, statement->cid, NULL, 1);
}

/* Insert all that has been gathered, and close the tables. */
static void
end_statement(void)
{
	aio_rows_applied = 0;
	if (statement == NULL)
		return;
	AioDrainStatement(statement->estate);
	close_tables();
	FreeExecutorState(statement->estate);
	statement = NULL;
}

/*
 * This message of the logical replication protocol comes next.
 */
void
AioEndApplyFor(int action)
{
	switch ((LogicalRepMsgType) action)
	{
		case LOGICAL_REP_MSG_INSERT:
		case LOGICAL_REP_MSG_RELATION:
		case LOGICAL_REP_MSG_TYPE:
			/* tables and types are described as they are met */
			break;
		default:
			end_statement();
			break;
	}
}
