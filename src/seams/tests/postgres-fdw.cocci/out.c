static TupleTableSlot **
execute_foreign_modify(PgFdwModifyState *fmstate, TupleTableSlot **slots)
{
	AioFdwMakeReady(fmstate, operation);
	if (changed)
	{
		if (fmstate->p_name)
			AioFdwDeallocate(fmstate);
	}
	if (!fmstate->p_name)
		AioFdwPrepare(fmstate);
	send(fmstate);
	if (AioFdwSent(fmstate))
		return slots;
	res = pgfdw_get_result(fmstate->conn);
	PQclear(res);
	return slots;
}

static void
fetch(PgFdwScanState *fsstate)
{
	if (fsstate->conn_state->pendingAreq)
		process_pending_request(fsstate->conn_state->pendingAreq);
}

static void
pgfdw_abort_cleanup(ConnCacheEntry *entry, bool toplevel)
{
	entry->changing_xact_state = true;
	entry->have_error = true;
	AioFdwForgetPipeline(entry->conn, &entry->state);
	if (PQtransactionStatus(entry->conn) == PQTRANS_ACTIVE)
		return;
}

static bool
pgfdw_cancel_query_end(PGconn *conn, TimestampTz endtime,
					   TimestampTz retrycanceltime, bool consume_input)
{
	PGresult   *result;

	AioFdwLeavePipeline(conn, endtime, retrycanceltime);
	if (consume_input && !PQconsumeInput(conn))
	{
		report(conn);
		return false;
	}
	return get_result(conn, endtime, retrycanceltime, &result);
}
