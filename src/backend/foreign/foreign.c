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
 * The streams of a statement are futures, and it waits for all of them at once,
 * so that a server's error is not kept back by another one that is slow.  An
 * Append that waits for scans of other servers takes their answers, too.
 *
 * Rows are counted when they are sent; if the server has inserted fewer, the
 * count is corrected when that is known.  Errors are raised then, too.  If a
 * function that the statement has called came across an error, it may have
 * caught it, so the statement raises the error once more.
 *
 * A wrapper finishes what is pending on a connection before it uses it for
 * anything else, so whoever looks at a foreign table sees these rows.
 *
 * Tests: src/test/aio/foreign/t/001_insert.pl.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "aio/foreign.h"
#include "aio/pgstat_aio.h"
#include "aio/wait.h"
#include "utils/memutils.h"
#include "utils/wait_event.h"

/* aio.await_foreign_inserts */
int			aio_await_foreign_inserts = AIO_AWAIT_FOREIGN_ASYNC_CAPABLE;

bool		aio_foreign_inserts_pending = false;

/* What a statement has sent on one connection, and has not been answered. */
typedef struct AioForeignStream
{
	dlist_node	node;			/* in order of first sending */
	EState	   *estate;
	const AioForeignInsertRoutine *routine;
	void	   *arg;
	int			ninserts;
} AioForeignStream;

/* AioForeignInsert.node, of all statements of this session */
static dlist_head pending = DLIST_STATIC_INIT(pending);

/* AioForeignStream.node, likewise */
static dlist_head streams = DLIST_STATIC_INIT(streams);

/* AioFdwRoutine */
static List *routines = NIL;

/* the batch that is being handed over; NULL if it may not be deferred */
static AioForeignInsert *handed_over = NULL;
static Relation handed_over_for;


/* The stream with this argument, of a statement, or NULL. */
static AioForeignStream *
find_stream(const EState *estate, const void *arg)
{
	dlist_iter	iter;

	dlist_foreach(iter, &streams)
	{
		AioForeignStream *stream = dlist_container(AioForeignStream, node, iter.cur);

		if (stream->estate == estate && stream->arg == arg)
			return stream;
	}
	return NULL;
}

/* Remove an insert from its stream. */
static void
leave_stream(AioForeignInsert *insert)
{
	AioForeignStream *stream = insert->stream;

	insert->stream = NULL;
	Assert(stream == NULL || stream->ninserts > 0);
	if (stream == NULL || --stream->ninserts > 0)
		return;
	dlist_delete(&stream->node);
	pfree(stream);
}

static void
forget(AioForeignInsert *insert)
{
	leave_stream(insert);
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
 * Is the executor's batch handed to a wrapper that may defer it, as it is?  Who
 * stands in for one may hand it on in parts, and counts what each has inserted.
 */
static bool
may_be_deferred(const FdwRoutine *fdw)
{
	ListCell   *cell;

	if (aio_await_foreign_inserts == AIO_AWAIT_FOREIGN_OFF)
		return false;
	foreach(cell, routines)
	{
		const AioFdwRoutine *routine = lfirst(cell);

		if (routine->ExecForeignBatchInsert == fdw->ExecForeignBatchInsert)
			return true;
	}
	return false;
}

/*
 * In place of ExecForeignBatchInsert.  Before its own arguments come the
 * counter to which the caller adds the rows that it returns, and COPY's flag
 * that the context of an error does not name a line; or NULL.
 */
TupleTableSlot **
AioForeignBatchInsert(uint64 *processed, bool *relname_only,
					  EState *estate, ResultRelInfo *rri,
					  TupleTableSlot **slots, TupleTableSlot **planSlots,
					  int *nslots)
{
	AioForeignInsert *insert = NULL;
	AioForeignInsert *outer = handed_over;
	Relation	outer_rel = handed_over_for;
	TupleTableSlot **inserted;

	raise_failure(estate);
	if (may_be_deferred(rri->ri_FdwRoutine))
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
 * AioDeferForeignInsert()?  Not for what is inserted on the way, into others;
 * and unless aio.await_foreign_inserts is on, only if whoever owns the table
 * has said that it may be worked on while others are.
 */
bool
AioMayDeferForeignInsert(Relation rel)
{
	return handed_over != NULL && handed_over_for == rel;
}

/*
 * For wrappers, in ExecForeignBatchInsert, where that may be: rows have been
 * sent on this stream.  Raises if there is no memory.
 */
AioForeignInsert *
AioDeferForeignInsert(Relation rel, const AioForeignInsertRoutine *routine,
					  void *arg)
{
	AioForeignInsert *insert = handed_over;
	AioForeignStream *stream;

	Assert(AioMayDeferForeignInsert(rel));
	stream = find_stream(insert->estate, arg);
	Assert(stream == NULL || stream->routine == routine);
	if (stream == NULL)
	{
		stream = MemoryContextAlloc(TopTransactionContext, sizeof(AioForeignStream));
		stream->estate = insert->estate;
		stream->routine = routine;
		stream->arg = arg;
		stream->ninserts = 0;
		dlist_push_tail(&streams, &stream->node);
	}
	stream->ninserts++;
	handed_over = NULL;
	insert->stream = stream;
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

	Assert(insert->error == NULL);
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
	Assert(insert->error == NULL);
	insert->error = error;
	leave_stream(insert);
	AioStatFailure(MyBackendType, AIO_KIND_FOREIGN);
}

/* ------------------------------------------------------------------------
 * Streams, as futures
 * ------------------------------------------------------------------------
 */

/* complete when none of its inserts is pending */
typedef struct StreamFuture
{
	AioFuture	future;			/* must be first */
	EState	   *estate;
	const AioForeignInsertRoutine *routine;
	void	   *arg;
	bool		last;			/* its statement sends no more */
} StreamFuture;

static bool
stream_poll(AioFuture *future)
{
	StreamFuture *stream = (StreamFuture *) future;

	return find_stream(stream->estate, stream->arg) == NULL;
}

static void
stream_wait(AioFuture *future)
{
	StreamFuture *stream = (StreamFuture *) future;

	stream->routine->Finish(stream->arg);
}

static pgsocket
stream_configure(AioFuture *future, uint32 *events)
{
	StreamFuture *stream = (StreamFuture *) future;

	if (stream->routine->ConfigureWait == NULL)
		return PGINVALID_SOCKET;
	return stream->routine->ConfigureWait(stream->arg, stream->last, events);
}

static void
stream_notify(AioFuture *future, uint32 events)
{
	StreamFuture *stream = (StreamFuture *) future;

	stream->routine->Notify(stream->arg);
}

static const AioFutureOps stream_ops = {
	.name = "foreign",
	.kind = AIO_KIND_FOREIGN,
	.external = true,
	.remote = true,
	.poll = stream_poll,
	.wait = stream_wait,
	.configure = stream_configure,
	.notify = stream_notify,
};

/*
 * Futures of the streams of a statement, or of all if 'estate' is NULL, each in
 * memory of its own.
 */
static AioFuture **
get_streams(EState *estate, int *n)
{
	AioFuture **futures = NULL;
	dlist_iter	iter;
	int			size = 0;

	*n = 0;
	dlist_foreach(iter, &streams)
	{
		AioForeignStream *stream = dlist_container(AioForeignStream, node, iter.cur);
		StreamFuture *future;

		if (estate != NULL && stream->estate != estate)
			continue;
		if (*n == size)
		{
			size = Max(size * 2, 8);
			futures = futures == NULL ? palloc_array(AioFuture *, size) :
				repalloc_array(futures, AioFuture *, size);
		}
		future = palloc_object(StreamFuture);
		future->future.ops = &stream_ops;
		future->estate = stream->estate;
		future->routine = stream->routine;
		future->arg = stream->arg;
		future->last = estate != NULL;
		futures[(*n)++] = &future->future;
	}
	return futures;
}

static void
free_streams(AioFuture **futures, int n)
{
	for (int i = 0; i < n; i++)
		pfree(futures[i]);
	if (futures != NULL)
		pfree(futures);
}

/* How many streams are there, of all statements of this session? */
int
AioForeignStreams(void)
{
	dlist_iter	iter;
	int			n = 0;

	dlist_foreach(iter, &streams)
		n++;
	return n;
}

static uint32
get_await_event(void)
{
	static uint32 await_event = 0;

	if (await_event == 0)
		await_event = WaitEventExtensionNew("AioForeignInserts");
	return await_event;
}

/* Wait until some batch of a statement is complete.  False: there is none. */
static bool
wait_for_some(EState *estate)
{
	int			n;
	AioFuture **futures = get_streams(estate, &n);

	if (n == 1)
		stream_wait(futures[0]);
	else if (n > 1)
		AioWaitForAny(futures, n, get_await_event());
	free_streams(futures, n);
	return n > 0;
}

/*
 * For wrappers that have sent as much as they want to: wait until a batch of
 * this session is complete, or several.  Raises the errors of servers.
 */
void
AioAwaitSomeForeignInserts(void)
{
	int			n;
	AioFuture **futures = get_streams(NULL, &n);

	/* or there never is one that is complete */
	Assert(n > 0);
	AioWaitForAny(futures, n, get_await_event());
	free_streams(futures, n);
}

/*
 * Await all batches of a statement.  Raises the errors that servers have
 * reported, that of the batch sent first before others.
 */
void
AioFinishForeignInserts(EState *estate)
{
	bool	   *relname_only = NULL;
	instr_time	start;
	dlist_iter	iter;

	raise_failure(estate);
	dlist_foreach(iter, &pending)
	{
		AioForeignInsert *insert = dlist_container(AioForeignInsert, node, iter.cur);

		/* all rows of a statement come from one input */
		if (insert->estate == estate)
			relname_only = insert->relname_only;
	}
	if (relname_only != NULL)
		*relname_only = true;
	INSTR_TIME_SET_CURRENT(start);
	while (wait_for_some(estate))
		raise_failure(estate);
	AioCountWait(AIO_KIND_FOREIGN, start);
	if (relname_only != NULL)
		*relname_only = false;
}

/*
 * In place of WaitEventSetWait(), for an Append that waits for its children:
 * for streams of inserts, too, for which AioForeignStreams() has had it leave
 * room in the set.  A scan may have to wait until the connection that it shares
 * with one of them is free.
 */
int
AioWaitForAppend(WaitEventSet *set, long timeout, WaitEvent *events,
				 int nevents, uint32 wait_event_info)
{
	int			n;
	AioFuture **futures = get_streams(NULL, &n);

	if (n == 0)
		return WaitEventSetWait(set, timeout, events, nevents, wait_event_info);
	nevents = AioWaitEventSetWait(set, timeout, events, nevents,
								  futures, n, wait_event_info);
	free_streams(futures, n);
	return nevents;
}

/* ------------------------------------------------------------------------
 * Wrappers
 * ------------------------------------------------------------------------
 */

/*
 * For wrappers, when they are loaded.  The routine stays.
 */
void
AioRegisterFdw(const AioFdwRoutine *routine)
{
	MemoryContext context = MemoryContextSwitchTo(TopMemoryContext);

	Assert(routine->ReadAhead != NULL && routine->IterateForeignScan != NULL);
	routines = lappend(routines, unconstify(AioFdwRoutine *, routine));
	MemoryContextSwitchTo(context);
}

bool
AioAnyFdw(void)
{
	return routines != NIL;
}

/* What a wrapper has registered, or NULL. */
const AioFdwRoutine *
AioFindFdw(const FdwRoutine *fdw)
{
	ListCell   *cell;

	if (fdw == NULL)
		return NULL;
	foreach(cell, routines)
	{
		const AioFdwRoutine *routine = lfirst(cell);

		if (routine->IterateForeignScan == fdw->IterateForeignScan)
			return routine;
	}
	return NULL;
}

/* ------------------------------------------------------------------------
 * Ends of transactions
 * ------------------------------------------------------------------------
 */

/* Forget the batches of a transaction that has ended. */
static void
forget_pending(int nest_level)
{
	dlist_mutable_iter iter;

	dlist_foreach_modify(iter, &pending)
	{
		AioForeignInsert *insert = dlist_container(AioForeignInsert, node, iter.cur);

		if (insert->nest_level >= nest_level)
		{
			Assert(aio_usage[AIO_KIND_FOREIGN].in_flight > 0);
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
	{
		forget_pending(0);
		Assert(dlist_is_empty(&streams));
	}
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
