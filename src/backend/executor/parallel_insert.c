/*-------------------------------------------------------------------------
 *
 * parallel_insert.c
 *	  CREATE TABLE AS, SELECT INTO and REFRESH MATERIALIZED VIEW: workers of a
 *	  parallel plan insert the rows they find.
 *
 * Upstream's workers send their rows through queues to the leader, which
 * inserts them all.  If the topmost node of the plan is a Gather that only
 * passes rows on, a worker can insert its own: its receiver is replaced, and
 * its queue stays empty.  The leader inserts what it finds itself, as before,
 * and at the end counts what the workers have inserted.
 *
 * The table is new, or a new version, and nobody else can see it.  The usual
 * reasons why a worker cannot insert do not apply: the leader has a
 * transaction ID and a command ID before it starts workers, and passes both to
 * them; no trigger, index, default or constraint is involved.
 *
 * The plan is the one that PostgreSQL makes, once: it takes rows to be sent, at
 * parallel_tuple_cost each.  A parallel plan where PostgreSQL has none would
 * raise the error of another row than the first that fails, so it is for the
 * user to ask for such plans, by that parameter.
 *
 * Upholds INVARIANT-49.
 *
 * Tests: src/test/aio/sql/sql/parallel_insert.sql,
 *		  src/test/aio/index/t/005_parallel_insert.pl.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/heapam.h"
#include "access/hio.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "aio/parallel_insert.h"
#include "aio/preallocate.h"
#include "executor/executor.h"
#include "guard.h"
#include "optimizer/cost.h"
#include "port/atomics.h"
#include "storage/freespace.h"

/* aio.parallel_insert */
bool		aio_parallel_insert = true;

/* among the keys of a parallel query's shared memory */
#define PARALLEL_KEY_INSERT		UINT64CONST(0xA100000000000001)

/* what the workers must know, and the leader wants to know */
typedef struct SharedInsert
{
	Oid			relid;
	CommandId	cid;
	int			options;
	pg_atomic_uint64 ninserted;
} SharedInsert;

/* the leader's statement */
typedef struct LeaderInsert
{
	QueryDesc  *query;
	uint64		ninserted;		/* by workers that have ended */
} LeaderInsert;

/* of the query that runs, if its rows go to a new table */
static LeaderInsert *leader = NULL;

/* a worker's receiver */
typedef struct InsertReceiver
{
	DestReceiver pub;
	DestReceiver *queue;		/* to the leader, which waits for its end */
	SharedInsert *shared;
	Relation	rel;
	BulkInsertState bistate;
	uint64		ninserted;
} InsertReceiver;

/* what this worker inserts into, while it does */
static InsertReceiver *inserting = NULL;

/* ------------------------------------------------------------------------
 * Plans
 * ------------------------------------------------------------------------
 */

/* Are a Gather's rows those of its workers, unchanged? */
static bool
passes_rows_on(const Gather *gather)
{
	if (list_length(gather->plan.targetlist) !=
		list_length(outerPlan(gather)->targetlist))
		return false;
	foreach_node(TargetEntry, entry, gather->plan.targetlist)
	{
		Var		   *var = (Var *) entry->expr;

		if (entry->resjunk || !IsA(var, Var) || var->varno != OUTER_VAR ||
			var->varattno != entry->resno)
			return false;
	}
	return true;
}

/* Does a plan do nothing but gather rows of workers? */
bool
AioInsertsInParallel(const PlannedStmt *plan)
{
	const Gather *gather = (const Gather *) plan->planTree;

	return aio_parallel_insert && plan->commandType == CMD_SELECT &&
		plan->parallelModeNeeded && IsA(gather, Gather) &&
		!gather->single_copy && gather->num_workers > 0 &&
		passes_rows_on(gather);
}

/*
 * Could workers insert into a table of this kind?  Logical decoding expects the
 * pieces of a TOASTed row next to each other in a transaction's log, so tables
 * that it looks at are out.
 */
static bool
may_insert_into(char persistence, bool heap)
{
	return aio_parallel_insert && max_parallel_workers_per_gather > 0 && heap &&
		!IsolationIsSerializable() &&
		(persistence == RELPERSISTENCE_UNLOGGED ||
		 (persistence == RELPERSISTENCE_PERMANENT && !XLogLogicalInfoActive()));
}

/* The same for the new table of CREATE TABLE AS. */
bool
AioMayInsertInto(const IntoClause *into)
{
	const char *method;

	if (into == NULL || into->skipData)
		return false;
	method = into->accessMethod ? into->accessMethod : default_table_access_method;
	return may_insert_into(into->rel->relpersistence,
						   strcmp(method, DEFAULT_TABLE_ACCESS_METHOD) == 0);
}

/* ------------------------------------------------------------------------
 * Leader
 * ------------------------------------------------------------------------
 */

static pg_noinline void
run_inserting(ExecutorRun_hook_type run, QueryDesc *query,
			  ScanDirection direction, uint64 count, bool inserts)
{
	LeaderInsert *outer = leader;
	LeaderInsert mine = {.query = query};

	PG_TRY();
	{
		leader = inserts ? &mine : NULL;
		run(query, direction, count);
	}
	PG_FINALLY();
	{
		leader = outer;
	}
	PG_END_TRY();
	Assert(inserts || mine.ninserted == 0);
	query->estate->es_processed += mine.ninserted;
	query->estate->es_total_processed += mine.ninserted;
}

/* Run a plan by that function, whose workers may insert its rows. */
void
AioRunInserting(ExecutorRun_hook_type run, QueryDesc *query,
				ScanDirection direction, uint64 count)
{
	bool		inserts = unlikely(AioIsIntoRel(query->dest) ||
								   AioIsTransientRel(query->dest)) &&
		count == 0 && AioInsertsInParallel(query->plannedstmt);

	/* most have nothing of this on the stack */
	if (inserts || unlikely(leader != NULL))
		run_inserting(run, query, direction, count, inserts);
	else
		run(query, direction, count);
}

/* The table into which workers can insert the rows of this plan; or no rel. */
static AioInsertTarget
target_of(PlanState *planstate)
{
	AioInsertTarget target = {NULL};
	QueryDesc  *query;
	PlanState  *top;

	if (leader == NULL)
		return target;
	query = leader->query;
	top = query->planstate;
	Assert(AioInsertsInParallel(query->plannedstmt));
	if (planstate->state != query->estate || !IsA(top, GatherState) ||
		outerPlanState(top) != planstate || top->ps_ProjInfo != NULL ||
		query->estate->es_junkFilter != NULL)
		return target;
	target = AioIsIntoRel(query->dest) ?
		AioIntoTarget(query->dest) : AioTransientTarget(query->dest);
	if (target.rel != NULL &&
		!may_insert_into(target.rel->rd_rel->relpersistence,
						 AioIsHeap(target.rel)))
		target.rel = NULL;
	return target;
}

/*
 * Room for what AioShareInsert() tells the workers that are going to execute
 * this node of the leader's plan.  Returns where they are to insert, or no rel.
 */
AioInsertTarget
AioEstimateInsert(ParallelContext *pcxt, PlanState *planstate)
{
	AioInsertTarget target = target_of(planstate);

	if (target.rel != NULL)
	{
		/* nobody else sees it, and workers have no IDs of their own */
		Assert(target.rel->rd_createSubid != InvalidSubTransactionId);
		Assert(TransactionIdIsValid(GetTopTransactionIdIfAny()));
		AioJoinPreallocation(target.rel);

		shm_toc_estimate_chunk(&pcxt->estimator, sizeof(SharedInsert));
		shm_toc_estimate_keys(&pcxt->estimator, 1);
	}
	return target;
}

/* Tell the workers where they are to insert. */
void
AioShareInsert(ParallelContext *pcxt, const AioInsertTarget *target)
{
	SharedInsert *shared;

	if (target->rel == NULL)
		return;
	shared = shm_toc_allocate(pcxt->toc, sizeof(SharedInsert));
	shared->relid = RelationGetRelid(target->rel);
	shared->cid = target->cid;
	shared->options = target->options;
	pg_atomic_init_u64(&shared->ninserted, 0);
	shm_toc_insert(pcxt->toc, PARALLEL_KEY_INSERT, shared);
}

/* All workers have ended: how much have they done? */
void
AioCountInserted(ParallelContext *pcxt)
{
	SharedInsert *shared;

	if (leader == NULL)
		return;
	shared = shm_toc_lookup(pcxt->toc, PARALLEL_KEY_INSERT, true);
	if (shared != NULL)
		leader->ninserted += pg_atomic_exchange_u64(&shared->ninserted, 0);
}

/* ------------------------------------------------------------------------
 * Worker
 * ------------------------------------------------------------------------
 */

static void
insert_startup(DestReceiver *self, int operation, TupleDesc typeinfo)
{
	InsertReceiver *receiver = (InsertReceiver *) self;

	Assert(IsParallelWorker());
	Assert(TransactionIdIsValid(GetTopTransactionIdIfAny()));
	receiver->queue->rStartup(receiver->queue, operation, typeinfo);

	/* the leader's lock does not exclude us */
	receiver->rel = table_open(receiver->shared->relid, RowExclusiveLock);
	receiver->bistate = GetBulkInsertState();
}

static bool
insert_receive(TupleTableSlot *slot, DestReceiver *self)
{
	InsertReceiver *receiver = (InsertReceiver *) self;

	Assert(inserting == NULL);
	inserting = receiver;
	table_tuple_insert(receiver->rel, slot, receiver->shared->cid,
					   receiver->shared->options, receiver->bistate);
	inserting = NULL;
	receiver->ninserted++;
	return true;
}

/* Let others find the pages that this worker has added and not used. */
static void
record_unused_pages(InsertReceiver *receiver)
{
	BlockNumber first = receiver->bistate->next_free;
	BlockNumber last = receiver->bistate->last_free;

	if (first == InvalidBlockNumber || first > last)
		return;
	Assert(last < RelationGetNumberOfBlocks(receiver->rel));
	for (BlockNumber block = first; block <= last; block++)
		RecordPageWithFreeSpace(receiver->rel, block,
								BLCKSZ - SizeOfPageHeaderData);
	FreeSpaceMapVacuumRange(receiver->rel, first, last + 1);
}

static void
insert_shutdown(DestReceiver *self)
{
	InsertReceiver *receiver = (InsertReceiver *) self;

	record_unused_pages(receiver);
	FreeBulkInsertState(receiver->bistate);
	table_finish_bulk_insert(receiver->rel, receiver->shared->options);
	table_close(receiver->rel, NoLock);
	pg_atomic_fetch_add_u64(&receiver->shared->ninserted, receiver->ninserted);
	receiver->queue->rShutdown(receiver->queue);
}

static void
insert_destroy(DestReceiver *self)
{
	InsertReceiver *receiver = (InsertReceiver *) self;

	receiver->queue->rDestroy(receiver->queue);
	pfree(receiver);
}

/*
 * The receiver of a worker's rows: 'queue', which leads to the leader, or one
 * that inserts them.
 */
DestReceiver *
AioInsertingReceiver(shm_toc *toc, DestReceiver *queue)
{
	SharedInsert *shared = shm_toc_lookup(toc, PARALLEL_KEY_INSERT, true);
	InsertReceiver *receiver;

	if (shared == NULL)
		return queue;
	receiver = palloc0(sizeof(InsertReceiver));
	receiver->pub.receiveSlot = insert_receive;
	receiver->pub.rStartup = insert_startup;
	receiver->pub.rShutdown = insert_shutdown;
	receiver->pub.rDestroy = insert_destroy;
	receiver->pub.mydest = DestTupleQueue;
	receiver->queue = queue;
	receiver->shared = shared;
	return &receiver->pub;
}

/* Is it the receiver of a worker that inserts its rows? */
bool
AioReceiverInserts(const DestReceiver *dest)
{
	return dest->receiveSlot == insert_receive;
}

/* heap_prepare_insert(): is this a worker that must not insert? */
bool
AioForbidsInsert(void)
{
	return IsParallelWorker() && inserting == NULL;
}

/*
 * toast_save_datum(): GetCurrentCommandId(), which a worker may not use up; the
 * leader has.
 */
CommandId
AioInsertCommandId(bool used)
{
	return inserting != NULL ? inserting->shared->cid : GetCurrentCommandId(used);
}
