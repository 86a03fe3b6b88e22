/*-------------------------------------------------------------------------
 *
 * async_scan.c
 *	  postgres_fdw: reading rows ahead.
 *
 * Included at the end of upstream's postgres_fdw.c.  A scan that has been told
 * to read ahead creates its cursor and sends the first FETCH; and while the
 * rows of the second FETCH or a later one are used, the next one is on its
 * way.
 *
 * A round trip is long if the network is.  So the number of rows of a FETCH
 * doubles each time, up to a limit, for asynchronous scans of upstream's, too,
 * and for those that may not be read ahead, as long as they want all rows.
 *
 * As with upstream's asynchronous scans, the connection's pending request says
 * that a result is to come: an AsyncRequest without a requestor, whose
 * requestee is the scan.  If the connection is wanted for something else, the
 * result is taken off and kept, as the scan may still use the rows before.
 *
 * A FETCH is sent ahead only while nobody but the statement can use its
 * connection, and is never on its way when a transaction or subtransaction ends
 * well.  One that fails has upstream cancel it.
 *
 * Tests: src/test/aio/foreign/t/002_scan.pl.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "access/xact.h"
#include "aio/foreign.h"
#include "lib/ilist.h"
#include "async_fdw.h"

/* rows of a FETCH, as a multiple of fetch_size, and their size in bytes */
#define FETCH_SIZES_MAX		16
#define FETCH_BYTES_MAX		(1024 * 1024)

/*
 * What a scan has asked for.  It outlives the scan while its result is still to
 * come: a cursor that has failed goes without being closed.
 */
typedef struct AioFdwAhead
{
	AsyncRequest request;		/* must be first; has no requestor */
	bool		capable;		/* of being asked for its first rows */
	bool		allowed;		/* read rows ahead */
	bool		grows;			/* FETCH more rows at a time */
	int			fetch_size;		/* as configured */
	size_t		row_bytes;		/* of the last FETCH's rows, or 0 */
	ForeignScanState *node;		/* NULL when it has gone */
	PGconn	   *conn;
	PgFdwConnState *conn_state;
	bool		pending;		/* in the list of those on their way */
	dlist_node	on_its_way;
	PGresult   *fetched;		/* taken off the connection, or NULL */
	bool		failed;			/* that is an error */
	MemoryContextCallback at_end;
} AioFdwAhead;

StaticAssertDecl(offsetof(AioFdwAhead, request) == 0,
				 "a request can stand for what it asks for");

/* AioFdwAhead.on_its_way */
static dlist_head on_its_way = DLIST_STATIC_INIT(on_its_way);

/* The scan's executor state goes. */
static void
forget_ahead(void *arg)
{
	AioFdwAhead *ahead = arg;

	PQclear(ahead->fetched);
	ahead->fetched = NULL;
	ahead->node = NULL;
	if (!ahead->pending)
		pfree(ahead);
}

/* Nothing is to come any more. */
static void
not_pending(AioFdwAhead *ahead)
{
	Assert(ahead->pending);
	dlist_delete(&ahead->on_its_way);
	ahead->pending = false;
	if (ahead->node == NULL)
		pfree(ahead);
}

/*
 * The result of a request that is pending on a connection which is needed for
 * something else, or whose transaction ends.  If it is an error, the remote
 * transaction has failed: the request stays, and raises it for everybody, until
 * the scan's transaction has ended.
 */
static void
take_off(AioFdwAhead *ahead)
{
	PGconn	   *conn = ahead->conn;
	ForeignScanState *node = ahead->node;
	PGresult   *res = NULL;

	Assert(ahead->conn_state->pendingAreq == &ahead->request);
	if (!ahead->failed)
	{
		Assert(ahead->fetched == NULL);
		res = pgfdw_get_result(conn);
		if (node != NULL && PQresultStatus(res) != PGRES_TUPLES_OK)
		{
			ahead->failed = true;
			ahead->fetched = res;
		}
	}
	if (ahead->failed)
		pgfdw_report_error(ERROR, ahead->fetched, conn, false,
						   node == NULL ? NULL : ((PgFdwScanState *) node->fdw_state)->query);

	ahead->conn_state->pendingAreq = NULL;
	not_pending(ahead);
	if (PQresultStatus(res) != PGRES_TUPLES_OK)
		pgfdw_report_error(ERROR, res, conn, true, NULL);
	if (node == NULL)
		PQclear(res);
	else
		ahead->fetched = res;
}

/*
 * Before a transaction or subtransaction ends well.  What a connection that is
 * lost has left is upstream's to report, as of a connection that it could not
 * clean up.
 */
static void
take_off_all(void)
{
	while (!dlist_is_empty(&on_its_way))
	{
		AioFdwAhead *ahead = dlist_head_element(AioFdwAhead, on_its_way, &on_its_way);
		bool		pending = ahead->conn_state->pendingAreq == &ahead->request;

		if (pending && PQstatus(ahead->conn) != CONNECTION_OK)
		{
			ahead->conn_state->pendingAreq = NULL;
			pending = false;
		}

		/* a subtransaction that failed has had upstream cancel it */
		if (!pending)
			not_pending(ahead);
		else
			take_off(ahead);
	}
}

static void
ahead_at_xact_event(XactEvent event, void *arg)
{
	switch (event)
	{
		case XACT_EVENT_PRE_COMMIT:
		case XACT_EVENT_PARALLEL_PRE_COMMIT:
		case XACT_EVENT_PRE_PREPARE:
			take_off_all();
			break;
		case XACT_EVENT_ABORT:
		case XACT_EVENT_PARALLEL_ABORT:
			dlist_init(&on_its_way);
			break;
		default:
			break;
	}
}

static void
ahead_at_subxact_event(SubXactEvent event, SubTransactionId mySubid,
					   SubTransactionId parentSubid, void *arg)
{
	if (event == SUBXACT_EVENT_PRE_COMMIT_SUB)
		take_off_all();
}

/* Are all tables of this scan marked as async_capable, or their servers? */
static bool
is_async_capable(ForeignScanState *node)
{
	ForeignScan *plan = (ForeignScan *) node->ss.ps.plan;
	int			rti = -1;

	while ((rti = bms_next_member(plan->fs_base_relids, rti)) >= 0)
	{
		RangeTblEntry *rte = exec_rt_fetch(rti, node->ss.ps.state);

		if (rte->rtekind == RTE_RELATION && !AioFdwIsAsyncCapable(rte->relid))
			return false;
	}
	return true;
}

/* What there is of a scan that has begun. */
static AioFdwAhead *
get_ahead(ForeignScanState *node)
{
	static bool registered = false;
	PgFdwScanState *fsstate = (PgFdwScanState *) node->fdw_state;
	AioFdwAhead *ahead = fsstate->ahead;

	if (ahead != NULL)
		return ahead;
	Assert(fsstate->fetch_size > 0);
	ahead = MemoryContextAllocZero(TopTransactionContext, sizeof(AioFdwAhead));
	ahead->request.requestee = (PlanState *) node;
	ahead->node = node;
	ahead->conn = fsstate->conn;
	ahead->conn_state = fsstate->conn_state;
	ahead->capable = fsstate->async_capable || is_async_capable(node);
	ahead->grows = ahead->capable && AioMayFetchMany(node);
	ahead->allowed = ahead->grows && !fsstate->async_capable &&
		AioMayReadAhead(node);
	ahead->fetch_size = fsstate->fetch_size;
	ahead->at_end.func = forget_ahead;
	ahead->at_end.arg = ahead;
	MemoryContextRegisterResetCallback(node->ss.ps.state->es_query_cxt,
									   &ahead->at_end);
	fsstate->ahead = ahead;

	/* callbacks are called last registered first, and upstream's come after */
	if (!registered)
	{
		RegisterXactCallback(ahead_at_xact_event, NULL);
		RegisterSubXactCallback(ahead_at_subxact_event, NULL);
		registered = true;
	}
	return ahead;
}

/*
 * Send a FETCH, if nothing is pending on the connection.  Not for a scan that
 * began in an outer transaction: if this one fails, upstream cancels what is on
 * its way, and the scan would have lost its place.
 */
static void
fetch_ahead(AioFdwAhead *ahead)
{
	PgFdwScanState *fsstate = (PgFdwScanState *) ahead->node->fdw_state;

	if (ahead->conn_state->pendingAreq != NULL ||
		fsstate->began != GetCurrentSubTransactionId())
		return;
	Assert(!ahead->pending && !ahead->failed);
	Assert(ahead->fetched == NULL);
	fetch_more_data_begin(&ahead->request);
	dlist_push_tail(&on_its_way, &ahead->on_its_way);
	ahead->pending = true;
}

/* postgresBeginForeignScan() */
void
AioFdwScanBegins(ForeignScanState *node)
{
	((PgFdwScanState *) node->fdw_state)->began = GetCurrentSubTransactionId();
}

/* AioFdwRoutine.ReadAhead */
static void
read_ahead(ForeignScanState *node)
{
	PgFdwScanState *fsstate = (PgFdwScanState *) node->fdw_state;

	if (fsstate != NULL && !fsstate->cursor_exists && get_ahead(node)->capable)
		fetch_ahead(fsstate->ahead);
}

/*
 * postgresIterateForeignScan(): in place of fetch_more_data(), as the rows may
 * be on their way, or here.
 */
void
AioFdwFetchMore(ForeignScanState *node)
{
	PgFdwScanState *fsstate = (PgFdwScanState *) node->fdw_state;
	PgFdwConnState *state = fsstate->conn_state;
	AioFdwAhead *ahead = fsstate->ahead;

	if (ahead != NULL && state->pendingAreq == &ahead->request)
		take_off(ahead);
	if (ahead == NULL || (ahead->fetched == NULL && !ahead->grows))
		fetch_more_data(node);
	else
	{
		/* as if it were an asynchronous scan, and had just been notified */
		AioFdwFreeConnection(state);
		if (ahead->fetched == NULL)
			fetch_more_data_begin(&ahead->request);
		else
			state->pendingAreq = &ahead->request;
		PG_TRY();
		{
			fsstate->async_capable = true;
			fetch_more_data(node);
		}
		PG_FINALLY();
		{
			fsstate->async_capable = false;
			if (state->pendingAreq == &ahead->request)
				state->pendingAreq = NULL;
		}
		PG_END_TRY();
	}

	/* one that has used up its first rows will want them all, most likely */
	if (fsstate->fetch_ct_2 > 1 && !fsstate->eof_reached &&
		get_ahead(node)->allowed)
		fetch_ahead(fsstate->ahead);
}

/*
 * fetch_more_data_begin(): a FETCH is about to be sent, for fetch_size rows.  A
 * scan that has used up its first rows will want them all, most likely.
 */
void
AioFdwSizeFetch(ForeignScanState *node)
{
	PgFdwScanState *fsstate = (PgFdwScanState *) node->fdw_state;
	AioFdwAhead *ahead;
	size_t		rows;

	if (fsstate->fetch_ct_2 < 2)
		return;
	ahead = get_ahead(node);
	if (!ahead->grows || ahead->row_bytes == 0)
		return;
	rows = Min((size_t) fsstate->fetch_size * 2,
			   (size_t) ahead->fetch_size * FETCH_SIZES_MAX);
	rows = Min(rows, FETCH_BYTES_MAX / ahead->row_bytes);
	rows = Min(rows, INT_MAX);
	fsstate->fetch_size = Max((int) rows, ahead->fetch_size);
}

/* fetch_more_data(): in place of pgfdw_get_result(). */
PGresult *
AioFdwFetched(ForeignScanState *node, PGconn *conn)
{
	AioFdwAhead *ahead = ((PgFdwScanState *) node->fdw_state)->ahead;
	PGresult   *res;

	if (ahead == NULL || ahead->fetched == NULL)
		res = pgfdw_get_result(conn);
	else
	{
		res = ahead->fetched;
		ahead->fetched = NULL;
	}
	if (ahead != NULL && PQntuples(res) > 0)
		ahead->row_bytes = PQresultMemorySize(res) / PQntuples(res);
	return res;
}

/* postgresReScanForeignScan(): the cursor begins anew. */
void
AioFdwRescan(ForeignScanState *node)
{
	PgFdwScanState *fsstate = (PgFdwScanState *) node->fdw_state;
	AioFdwAhead *ahead = fsstate->ahead;

	if (ahead != NULL)
	{
		PQclear(ahead->fetched);
		ahead->fetched = NULL;
		fsstate->fetch_size = ahead->fetch_size;
	}
}

/* _PG_init() */
void
AioFdwInitialize(void)
{
	static const AioFdwRoutine routine = {
		.IterateForeignScan = postgresIterateForeignScan,
		.ExecForeignBatchInsert = postgresExecForeignBatchInsert,
		.ReadAhead = read_ahead,
	};

	AioRegisterFdw(&routine);
}
