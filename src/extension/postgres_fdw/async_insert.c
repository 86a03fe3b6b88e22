/*-------------------------------------------------------------------------
 *
 * async_insert.c
 *	  postgres_fdw: batches of rows that are sent without waiting.
 *
 * Included at the end of upstream's postgres_fdw.c.  While batches are on their
 * way, the connection is in libpq's pipeline mode, and a pipeline of ours says
 * which results are to come: of statements that are prepared and closed, as the
 * size of batches changes, and of batches.  Nothing else is sent meanwhile.
 *
 * The connection's pending request, for which upstream looks before it uses a
 * connection for anything, stands for the pipeline: an AsyncRequest without a
 * requestor or requestee.
 *
 * A pipeline ends when all results are there.  If one is an error, the others
 * are read, all batches of the pipeline have failed, and the error is raised:
 * here, by whoever needed the connection, and again by the statement whose
 * batches they are, even if somebody has caught it in between.  Any other
 * error leaves the pipeline as it is, until somebody waits for it again, or
 * the (sub)transaction ends.
 *
 * Tests: src/test/aio/foreign/t/001_insert.pl.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "aio/foreign.h"
#include "async_fdw.h"
#include "lib/ilist.h"
#include "libpq/libpq-be-fe-helpers.h"
#include "utils/memutils.h"
#include "utils/wait_event.h"

/* batches on their way on one connection, beyond which some are awaited */
#define BATCHES_MAX		16

/* Until a server is asked once more to stop, in milliseconds; as upstream's. */
#define CANCEL_AGAIN	1000

/* A statement's text, for error messages; as long as a result is to come. */
typedef struct RemoteText
{
	int			refs;
	char		sql[FLEXIBLE_ARRAY_MEMBER];
} RemoteText;

typedef struct Pipeline
{
	AsyncRequest request;		/* must be first; all zero */
	MemoryContext context;		/* has all of it */
	PGconn	   *conn;
	PgFdwConnState *conn_state;
	dlist_head	expected;		/* Expected.node, in order */
	int			nbatches;
	bool		synced;			/* a sync has been sent behind the last one */
	RemoteText *sql;			/* of what is sent next */
} Pipeline;

StaticAssertDecl(offsetof(Pipeline, request) == 0,
				 "a request can stand for its pipeline");

/* A result that is to come. */
typedef struct Expected
{
	dlist_node	node;
	AioForeignInsert *insert;	/* NULL if it is not that of a batch */
	ErrorData  *error;			/* by which it has failed; its statement's */
	RemoteText *sql;
} Expected;

/*
 * The pipeline that a request stands for, or NULL.  Upstream's requests end
 * with the memory of their statement: not for one whose statement may be over.
 */
static Pipeline *
pipeline_of(AsyncRequest *areq)
{
	return areq != NULL && areq->requestor == NULL && areq->requestee == NULL ?
		(Pipeline *) areq : NULL;
}

static void
release_sql(RemoteText *sql)
{
	Assert(sql == NULL || sql->refs > 0);
	if (sql != NULL && --sql->refs == 0)
		pfree(sql);
}

/* What is sent next has this text. */
static void
set_sql(Pipeline *pipeline, const char *sql)
{
	Size		size = strlen(sql) + 1;

	if (pipeline->sql != NULL && strcmp(pipeline->sql->sql, sql) == 0)
		return;
	release_sql(pipeline->sql);
	pipeline->sql = MemoryContextAlloc(pipeline->context,
									   offsetof(RemoteText, sql) + size);
	pipeline->sql->refs = 1;
	memcpy(pipeline->sql->sql, sql, size);
}

static void
expect(Pipeline *pipeline, AioForeignInsert *insert)
{
	Expected   *expected = MemoryContextAlloc(pipeline->context, sizeof(Expected));

	/* what comes behind the sync is not ours to read */
	Assert(!pipeline->synced);
	expected->insert = insert;
	expected->error = NULL;
	expected->sql = pipeline->sql;
	expected->sql->refs++;
	dlist_push_tail(&pipeline->expected, &expected->node);
}

/* Nothing of this pipeline is of interest any more. */
static void
delete_pipeline(Pipeline *pipeline)
{
	Assert(pipeline->conn_state->pendingAreq == &pipeline->request);
	pipeline->conn_state->pendingAreq = NULL;
	MemoryContextDelete(pipeline->context);
}

/*
 * Send what libpq has; the server may be busy with something else for long.
 * Returns false if that fails.
 */
static bool
flush_all(PGconn *conn)
{
	for (;;)
	{
		int			left = PQflush(conn);
		int			events;

		if (left <= 0)
			return left == 0;
		events = WaitLatchOrSocket(MyLatch,
								   WL_LATCH_SET | WL_SOCKET_READABLE |
								   WL_SOCKET_WRITEABLE | WL_EXIT_ON_PM_DEATH,
								   PQsocket(conn), -1, PG_WAIT_EXTENSION);
		if (events & WL_LATCH_SET)
		{
			ResetLatch(MyLatch);
			CHECK_FOR_INTERRUPTS();
		}
		if ((events & WL_SOCKET_READABLE) && !PQconsumeInput(conn))
			return false;
	}
}

/*
 * Read the results of so many statements that are not executed any more, and
 * leave pipeline mode.  If that fails, the end of the transaction does it.
 */
static void
skip_results(Pipeline *pipeline, int n)
{
	PGconn	   *conn = pipeline->conn;

	if (PQstatus(conn) != CONNECTION_OK ||
		(!pipeline->synced && !PQpipelineSync(conn)))
		return;
	pipeline->synced = true;
	if (!flush_all(conn))
		return;

	/* and that of the sync */
	for (int i = 0; i <= n; i++)
		PQclear(pgfdw_get_result(conn));
	if (PQexitPipelineMode(conn))
		PQsetnonblocking(conn, 0);
}

/*
 * Give each statement that has sent a batch of a pipeline a copy of the error
 * that has just been caught, which lives as long as that.
 */
static void
copy_error(Pipeline *pipeline)
{
	const Expected *previous = NULL;
	dlist_iter	iter;

	dlist_foreach(iter, &pipeline->expected)
	{
		Expected   *expected = dlist_container(Expected, node, iter.cur);

		if (expected->insert == NULL)
			continue;
		if (previous != NULL && previous->insert->estate == expected->insert->estate)
			expected->error = previous->error;
		else
		{
			MemoryContextSwitchTo(expected->insert->estate->es_query_cxt);
			expected->error = CopyErrorData();
		}
		previous = expected;
	}
}

/*
 * A result that is a server's last words.  Outside of a pipeline, libpq goes on
 * to the end of the connection, and that is the error.
 */
static bool
is_last(const PGresult *res)
{
	const char *severity = PQresultErrorField(res, PG_DIAG_SEVERITY_NONLOCALIZED);

	return severity != NULL &&
		(strcmp(severity, "FATAL") == 0 || strcmp(severity, "PANIC") == 0);
}

/* Raise such a one as the lost connection that it announces. */
pg_noreturn static void
report_end(PGconn *conn, PGresult *res, const char *sql)
{
	char	   *message = pchomp(PQresultErrorMessage(res));
	int			nothing = 0;

	/* one NULL ends the results of a command */
	PQclear(res);
	while (PQstatus(conn) != CONNECTION_BAD && nothing < 2)
	{
		res = pgfdw_get_result(conn);
		nothing = res == NULL ? nothing + 1 : 0;
		PQclear(res);
	}
	ereport(ERROR,
			(errcode(ERRCODE_CONNECTION_FAILURE),
			 errmsg_internal("%s", message),
			 sql != NULL ? errcontext("remote SQL command: %s", sql) : 0));
}

/*
 * The last words of a server whose connection was found to be lost while
 * something was sent, if they have arrived, or NULL.
 */
static PGresult *
find_last(PGconn *conn)
{
	int			nothing = 0;

	while (PQstatus(conn) == CONNECTION_BAD && nothing < 2)
	{
		PGresult   *res = PQgetResult(conn);

		if (res == NULL)
			nothing++;
		else if (is_last(res))
			return res;
		else
			PQclear(res);
	}
	return NULL;
}

/*
 * All batches of a pipeline have failed, because of this result, of what is
 * expected first, or, if it is NULL, of what libpq says.  Raise that; their
 * statement will, too.
 */
pg_noreturn static void
fail_pipeline(Pipeline *pipeline, PGresult *res)
{
	PGconn	   *conn = pipeline->conn;
	bool		has_result = res != NULL;
	int			n = 0;
	char	   *sql = NULL;
	ErrorData  *error;
	ErrorData  *interrupted = NULL;
	MemoryContext context = CurrentMemoryContext;
	dlist_iter	iter;

	dlist_foreach(iter, &pipeline->expected)
	{
		if (n++ == 0)
			sql = pstrdup(dlist_container(Expected, node, iter.cur)->sql->sql);
	}

	/* as data, as others need it, too */
	PG_TRY();
	{
		if (res == NULL)
			res = find_last(conn);
		if (res != NULL && is_last(res))
			report_end(conn, res, sql);
		pgfdw_report_error(ERROR, res, conn, true, sql);
	}
	PG_CATCH();
	{
		copy_error(pipeline);
		MemoryContextSwitchTo(context);
		error = CopyErrorData();
		FlushErrorState();
	}
	PG_END_TRY();
	if (sql != NULL)
		pfree(sql);

	PG_TRY();
	{
		skip_results(pipeline, has_result && n > 0 ? n - 1 : n);
	}
	PG_CATCH();
	{
		/* a cancel request, say: that is for the caller to hear of */
		MemoryContextSwitchTo(context);
		interrupted = CopyErrorData();
		FlushErrorState();
	}
	PG_END_TRY();

	while (!dlist_is_empty(&pipeline->expected))
	{
		Expected   *expected = dlist_container(Expected, node,
											   dlist_pop_head_node(&pipeline->expected));

		if (expected->insert != NULL)
			AioForeignInsertFailed(expected->insert, expected->error);
	}
	delete_pipeline(pipeline);
	ReThrowError(interrupted != NULL ? interrupted : error);
}

/* Await the result that comes next. */
static void
take_result(Pipeline *pipeline)
{
	Expected   *expected = dlist_head_element(Expected, node, &pipeline->expected);
	PGresult   *res = pgfdw_get_result(pipeline->conn);

	if (PQresultStatus(res) != PGRES_COMMAND_OK)
		fail_pipeline(pipeline, res);
	dlist_delete(&expected->node);
	if (expected->insert != NULL)
	{
		Assert(pipeline->nbatches > 0);
		pipeline->nbatches--;
		AioForeignInsertDone(expected->insert, atoi(PQcmdTuples(res)));
	}
	PQclear(res);
	release_sql(expected->sql);
	pfree(expected);
}

/* All results are there but that of the sync: leave pipeline mode. */
static void
end_pipeline(Pipeline *pipeline)
{
	PGconn	   *conn = pipeline->conn;
	PGresult   *res = pgfdw_get_result(conn);

	Assert(pipeline->synced && pipeline->nbatches == 0);
	if (PQresultStatus(res) != PGRES_PIPELINE_SYNC)
		fail_pipeline(pipeline, res);
	PQclear(res);
	if (!PQexitPipelineMode(conn))
		fail_pipeline(pipeline, NULL);
	PQsetnonblocking(conn, 0);
	delete_pipeline(pipeline);
}

/* Take the results that have been read, without waiting. */
static void
take_answers(Pipeline *pipeline)
{
	while (!dlist_is_empty(&pipeline->expected) && !PQisBusy(pipeline->conn))
		take_result(pipeline);
	if (pipeline->synced && dlist_is_empty(&pipeline->expected) &&
		!PQisBusy(pipeline->conn))
		end_pipeline(pipeline);
}

/* No more is sent: let the server answer the last of it, too. */
static void
send_sync(Pipeline *pipeline)
{
	if (pipeline->synced)
		return;
	if (!PQpipelineSync(pipeline->conn))
		fail_pipeline(pipeline, NULL);
	pipeline->synced = true;
}

/* Finish of inserts: await all that is on its way, and leave pipeline mode. */
static void
finish_pipeline(void *arg)
{
	Pipeline   *pipeline = arg;

	send_sync(pipeline);
	if (!flush_all(pipeline->conn))
		fail_pipeline(pipeline, NULL);
	while (!dlist_is_empty(&pipeline->expected))
		take_result(pipeline);
	end_pipeline(pipeline);
}

/* ConfigureWait of inserts. */
static pgsocket
configure_wait(void *arg, bool last, uint32 *events)
{
	Pipeline   *pipeline = arg;
	PGconn	   *conn = pipeline->conn;
	int			left;

	if (last)
		send_sync(pipeline);
	left = PQflush(conn);
	if (left < 0)
		fail_pipeline(pipeline, NULL);
	*events = WL_SOCKET_READABLE | (left > 0 ? WL_SOCKET_WRITEABLE : 0);

	/* what has been read already does not make the socket ready */
	take_answers(pipeline);
	return PQsocket(conn);
}

/* Notify of inserts. */
static void
notify(void *arg)
{
	Pipeline   *pipeline = arg;

	if (PQflush(pipeline->conn) < 0 || !PQconsumeInput(pipeline->conn))
		fail_pipeline(pipeline, NULL);
	take_answers(pipeline);
}

static const AioForeignInsertRoutine insert_routine = {
	.Finish = finish_pipeline,
	.ConfigureWait = configure_wait,
	.Notify = notify,
};

/* Begin one on a connection on which nothing is pending, if that can be. */
static void
begin_pipeline(PgFdwModifyState *fmstate)
{
	MemoryContext context;
	Pipeline   *pipeline;

	Assert(fmstate->conn_state->pendingAreq == NULL);
	context = AllocSetContextCreate(TopTransactionContext, "postgres_fdw pipeline",
									ALLOCSET_SMALL_SIZES);
	pipeline = MemoryContextAllocZero(context, sizeof(Pipeline));
	pipeline->context = context;
	pipeline->conn = fmstate->conn;
	pipeline->conn_state = fmstate->conn_state;
	dlist_init(&pipeline->expected);
	if (PQsetnonblocking(fmstate->conn, 1) != 0 ||
		!PQenterPipelineMode(fmstate->conn))
	{
		PQsetnonblocking(fmstate->conn, 0);
		MemoryContextDelete(context);
		return;
	}
	fmstate->conn_state->pendingAreq = &pipeline->request;
}

/*
 * execute_foreign_modify(): the connection is about to be used.  If rows can
 * be sent without waiting, see that there is a pipeline; if not, that nothing
 * is pending.
 */
void
AioFdwMakeReady(PgFdwModifyState *fmstate, CmdType operation)
{
	PgFdwConnState *state = fmstate->conn_state;
	Pipeline   *pipeline = pipeline_of(state->pendingAreq);
	bool		defer = operation == CMD_INSERT && !fmstate->has_returning &&
		AioMayDeferForeignInsert(fmstate->rel);

	if (defer && aio_await_foreign_inserts != AIO_AWAIT_FOREIGN_ON)
	{
		MemoryContext context = MemoryContextSwitchTo(fmstate->temp_cxt);

		defer = AioFdwIsAsyncCapable(RelationGetRelid(fmstate->rel));
		MemoryContextSwitchTo(context);
	}

	if (state->pendingAreq != NULL &&
		(!defer || pipeline == NULL || pipeline->synced))
	{
		process_pending_request(state->pendingAreq);
		pipeline = NULL;
	}
	if (!defer)
		return;
	if (pipeline == NULL)
		begin_pipeline(fmstate);
	pipeline = pipeline_of(state->pendingAreq);
	if (pipeline == NULL)
		return;
	while (pipeline->nbatches >= BATCHES_MAX)
		AioAwaitSomeForeignInserts();
	Assert(state->pendingAreq == &pipeline->request);

	/* several tables may share the connection */
	set_sql(pipeline, fmstate->query);
}

/* In place of deallocate_query(). */
void
AioFdwDeallocate(PgFdwModifyState *fmstate)
{
	Pipeline   *pipeline = pipeline_of(fmstate->conn_state->pendingAreq);

	if (pipeline == NULL || fmstate->p_name == NULL)
	{
		deallocate_query(fmstate);
		return;
	}
	if (!PQsendClosePrepared(fmstate->conn, fmstate->p_name))
		fail_pipeline(pipeline, NULL);
	expect(pipeline, NULL);
	pfree(fmstate->p_name);
	fmstate->p_name = NULL;
}

/* In place of prepare_foreign_modify(). */
void
AioFdwPrepare(PgFdwModifyState *fmstate)
{
	Pipeline   *pipeline = pipeline_of(fmstate->conn_state->pendingAreq);
	char	   *name;

	if (pipeline == NULL)
	{
		prepare_foreign_modify(fmstate);
		return;
	}
	name = psprintf("pgsql_fdw_prep_%u", GetPrepStmtNumber(fmstate->conn));
	set_sql(pipeline, fmstate->query);
	if (!PQsendPrepare(fmstate->conn, name, fmstate->query, 0, NULL))
		fail_pipeline(pipeline, NULL);
	expect(pipeline, NULL);
	fmstate->p_name = name;
}

/*
 * execute_foreign_modify(): a statement has been sent.  Returns true if nobody
 * need wait for its result now.
 */
bool
AioFdwSent(PgFdwModifyState *fmstate)
{
	Pipeline   *pipeline = pipeline_of(fmstate->conn_state->pendingAreq);

	if (pipeline == NULL)
		return false;
	Assert(pipeline->nbatches < BATCHES_MAX);
	expect(pipeline, AioDeferForeignInsert(fmstate->rel, &insert_routine, pipeline));
	pipeline->nbatches++;
	if (!PQsendFlushRequest(fmstate->conn) || !flush_all(fmstate->conn))
		fail_pipeline(pipeline, NULL);
	MemoryContextReset(fmstate->temp_cxt);
	return true;
}

/* Read what is there, until the sync has been answered.  False: not yet. */
static bool
drain(PGconn *conn)
{
	int			nothing = 0;

	while (!PQisBusy(conn))
	{
		PGresult   *res = PQgetResult(conn);
		ExecStatusType status = PQresultStatus(res);

		/* nothing stands between results, and is all there is at the end */
		nothing = res == NULL ? nothing + 1 : 0;
		PQclear(res);

		/* there may be more than one sync */
		if (status == PGRES_PIPELINE_SYNC && PQexitPipelineMode(conn))
			return true;
		if (nothing > 1 || PQstatus(conn) != CONNECTION_OK)
			return true;
	}
	return false;
}

/*
 * The end of a (sub)transaction that has failed: send no more.  If batches are
 * under way, upstream will find that the connection is active, as with a query,
 * and ask the server to stop.  Raises nothing, and waits for nobody.
 */
void
AioFdwForgetPipeline(PGconn *conn, PgFdwConnState *state)
{
	Pipeline   *pipeline;
	bool		synced;

	/* what is pending otherwise is not ours, and may be freed memory */
	if (PQpipelineStatus(conn) == PQ_PIPELINE_OFF)
		return;
	pipeline = pipeline_of(state->pendingAreq);
	synced = pipeline != NULL && pipeline->synced;
	if (pipeline != NULL)
		delete_pipeline(pipeline);
	if (!synced)
		(void) PQpipelineSync(conn);

	/* all may have been answered */
	(void) drain(conn);
	if (PQpipelineStatus(conn) == PQ_PIPELINE_OFF)
		PQsetnonblocking(conn, 0);
}

/*
 * The server has been asked to stop: leave pipeline mode, so that upstream can
 * go on as after a query, with the same limits of time.  If that fails, or the
 * time is over, upstream will find the connection unusable.  Raises nothing.
 */
void
AioFdwLeavePipeline(PGconn *conn, TimestampTz endtime, TimestampTz cancel_at)
{
	if (PQpipelineStatus(conn) == PQ_PIPELINE_OFF)
		return;
	for (;;)
	{
		TimestampTz now = GetCurrentTimestamp();
		int			left;
		long		timeout;

		if (now >= endtime)
			return;
		if (now >= cancel_at)
		{
			(void) libpqsrv_cancel(conn, endtime);
			cancel_at = TimestampTzPlusMilliseconds(now, CANCEL_AGAIN);
		}
		left = PQflush(conn);
		if (left < 0 || !PQconsumeInput(conn) || drain(conn))
			break;
		timeout = TimestampDifferenceMilliseconds(now, Min(cancel_at, endtime));
		(void) WaitLatchOrSocket(MyLatch,
								 WL_LATCH_SET | WL_SOCKET_READABLE | WL_TIMEOUT |
								 WL_EXIT_ON_PM_DEATH |
								 (left > 0 ? WL_SOCKET_WRITEABLE : 0),
								 PQsocket(conn), Max(timeout, 1), PG_WAIT_EXTENSION);
		ResetLatch(MyLatch);
	}
	if (PQpipelineStatus(conn) == PQ_PIPELINE_OFF)
		PQsetnonblocking(conn, 0);
}
