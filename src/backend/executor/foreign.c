/*-------------------------------------------------------------------------
 *
 * foreign.c
 *	  Batches of rows that foreign servers insert while we go on.
 *
 * A statement that inserts into foreign tables, most often partitions on
 * several servers, hands each batch to the foreign data wrapper.  One that
 * knows foreign.h sends it and does not wait.  The statement awaits all of its
 * batches before its AFTER STATEMENT triggers fire, and before it ends.
 *
 * Rows are counted when they are sent; if the server has inserted fewer, the
 * count is corrected when that is known.  Errors are raised then, too.  If it
 * was not the statement itself that came across one, but a function that it has
 * called and which may have caught it, the statement raises it once more.
 *
 * A wrapper finishes what is pending on a connection before it uses it for
 * anything else, so whoever looks at a foreign table sees these rows.
 *
 * Tests: src/test/aio/t/028_foreign.pl.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "aio/foreign.h"
#include "aio/pgstat_aio.h"
#include "foreign/fdwapi.h"
#include "utils/memutils.h"

/* aio.await_foreign_inserts */
bool		aio_await_foreign_inserts = false;

bool		aio_foreign_inserts_pending = false;

/* AioForeignInsert.node, of all statements of this session */
static dlist_head pending = DLIST_STATIC_INIT(pending);

/* the batch that is being handed over; NULL if it may not be deferred */
static AioForeignInsert *handed_over = NULL;
static Relation handed_over_for;

static void
forget(AioForeignInsert *insert)
{
	dlist_delete(&insert->node);
	aio_foreign_inserts_pending = !dlist_is_empty(&pending);
}

/* Raise the error of a batch of this statement that has failed. */
static void
raise_failure(EState *estate)
{
	dlist_iter	iter;

	dlist_foreach(iter, &pending)
	{
		AioForeignInsert *insert = dlist_container(AioForeignInsert, node, iter.cur);

		if (insert->estate == estate && insert->error != NULL)
			ReThrowError(insert->error);
	}
}

/*
 * In place of ExecForeignBatchInsert: the arguments are its own, but for the
 * counter to which the caller adds the rows that it returns, and COPY's flag
 * that the context of an error does not name a line; or NULL.
 */
TupleTableSlot **
AioForeignBatchInsert(EState *estate, ResultRelInfo *rri,
					  TupleTableSlot **slots, TupleTableSlot **planSlots,
					  int *nslots, uint64 *processed,
					  bool *relname_only)
{
	AioForeignInsert *insert = NULL;
	AioForeignInsert *outer = handed_over;
	Relation	outer_rel = handed_over_for;
	TupleTableSlot **inserted;

	raise_failure(estate);
	if (aio_await_foreign_inserts)
	{
		/* the statement's memory is gone when its transaction's abort looks */
		insert = MemoryContextAllocZero(TopTransactionContext, sizeof(AioForeignInsert));
		insert->estate = estate;
		insert->processed = processed;
		insert->relname_only = relname_only;
		insert->nslots = *nslots;
	}

	/* an error must not leave it behind */
	PG_TRY();
	{
		handed_over = insert;
		handed_over_for = rri->ri_RelationDesc;
		inserted = rri->ri_FdwRoutine->ExecForeignBatchInsert(estate, rri, slots,
															  planSlots, nslots);
	}
	PG_FINALLY();
	{
		if (insert != NULL && handed_over == insert)
			pfree(insert);
		handed_over = outer;
		handed_over_for = outer_rel;
	}
	PG_END_TRY();
	return inserted;
}

/*
 * For wrappers, in ExecForeignBatchInsert into this table: may they call
 * AioDeferForeignInsert()?  Not for what is inserted on the way, into others.
 */
bool
AioMayDeferForeignInsert(Relation rel)
{
	return handed_over != NULL && handed_over_for == rel;
}

/*
 * For wrappers, in ExecForeignBatchInsert, where that may be: rows have been
 * sent, and 'finish' will see to the end of it.  Raises nothing.
 */
AioForeignInsert *
AioDeferForeignInsert(Relation rel, AioForeignFinish finish, void *arg)
{
	AioForeignInsert *insert = handed_over;

	Assert(AioMayDeferForeignInsert(rel));
	handed_over = NULL;
	insert->finish = finish;
	insert->arg = arg;
	insert->nest_level = GetCurrentTransactionNestLevel();
	dlist_push_tail(&pending, &insert->node);
	aio_foreign_inserts_pending = true;
	AioCountStart(AIO_KIND_FOREIGN, 0);
	return insert;
}

/*
 * For wrappers: the server has inserted so many rows.  The insert is not to be
 * used any more.  Raises nothing.
 */
void
AioForeignInsertDone(AioForeignInsert *insert, int ninserted)
{
	instr_time	unknown;

	if (insert->processed != NULL)
		*insert->processed -= insert->nslots - ninserted;
	forget(insert);
	INSTR_TIME_SET_ZERO(unknown);
	AioCountEnd(AIO_KIND_FOREIGN, unknown);
	pfree(insert);
}

/*
 * For wrappers: it has failed, as all batches of the connection that have been
 * sent since, with this error.  It lives as long as the transaction, and is to
 * be raised by the caller.  Raises nothing.
 */
void
AioForeignInsertFailed(AioForeignInsert *insert, ErrorData *error)
{
	insert->error = error;
	insert->arg = NULL;
	AioStatFailure(MyBackendType, AIO_KIND_FOREIGN);
}

/*
 * Await all batches of a statement.  Raises the errors that servers have
 * reported, that of the batch sent first before others.
 */
void
AioFinishForeignInserts(EState *estate)
{
	dlist_iter	iter;
	bool		found;

	do
	{
		raise_failure(estate);
		found = false;
		dlist_foreach(iter, &pending)
		{
			AioForeignInsert *insert = dlist_container(AioForeignInsert, node, iter.cur);

			if (insert->estate == estate)
			{
				bool	   *relname_only = insert->relname_only;
				instr_time	start;

				INSTR_TIME_SET_CURRENT(start);
				if (relname_only != NULL)
					*relname_only = true;
				insert->finish(insert->arg);
				if (relname_only != NULL)
					*relname_only = false;
				AioCountWait(AIO_KIND_FOREIGN, start);

				/* others may be gone as well */
				found = true;
				break;
			}
		}
	} while (found);
}

/* Batches of a transaction that has gone are of no interest any more. */
static void
forget_pending(int nest_level)
{
	dlist_mutable_iter iter;

	dlist_foreach_modify(iter, &pending)
	{
		AioForeignInsert *insert = dlist_container(AioForeignInsert, node, iter.cur);

		if (insert->nest_level >= nest_level)
		{
			aio_usage[AIO_KIND_FOREIGN].in_flight--;
			aio_usage[AIO_KIND_FOREIGN].cancelled++;
			forget(insert);
			pfree(insert);
		}
	}
}

static void
at_xact_event(XactEvent event, void *arg)
{
	if (event == XACT_EVENT_ABORT)
		forget_pending(0);
	else if ((event == XACT_EVENT_PRE_COMMIT || event == XACT_EVENT_PRE_PREPARE) &&
			 !dlist_is_empty(&pending))
		elog(ERROR, "rows have been sent to a foreign server and were not awaited");
}

static void
at_subxact_event(SubXactEvent event, SubTransactionId mySubid,
				 SubTransactionId parentSubid, void *arg)
{
	if (event == SUBXACT_EVENT_ABORT_SUB)
		forget_pending(GetCurrentTransactionNestLevel());
}

/* While libraries are preloaded. */
void
AioForeignInitialize(void)
{
	RegisterXactCallback(at_xact_event, NULL);
	RegisterSubXactCallback(at_subxact_event, NULL);
}
