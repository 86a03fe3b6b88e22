static TupleTableSlot **
execute_foreign_modify(PgFdwModifyState *fmstate, TupleTableSlot **slots)
{
	if (fmstate->conn_state->pendingAreq)
		process_pending_request(fmstate->conn_state->pendingAreq);
	if (changed)
	{
		if (fmstate->p_name)
			deallocate_query(fmstate);
	}
	if (!fmstate->p_name)
		prepare_foreign_modify(fmstate);
	send(fmstate);
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
	if (PQtransactionStatus(entry->conn) == PQTRANS_ACTIVE)
		return;
}

static bool
pgfdw_cancel_query_end(PGconn *conn, TimestampTz endtime,
					   TimestampTz retrycanceltime, bool consume_input)
{
	PGresult   *result;

	if (consume_input && !PQconsumeInput(conn))
	{
		report(conn);
		return false;
	}
	return get_result(conn, endtime, retrycanceltime, &result);
}
