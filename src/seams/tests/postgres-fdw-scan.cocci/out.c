static void
postgresBeginForeignScan(ForeignScanState *node, int eflags)
{
	if (eflags & EXEC_FLAG_EXPLAIN_ONLY)
		return;
	fsstate->async_capable = node->ss.ps.async_capable;
	AioFdwScanBegins(node);
}

static TupleTableSlot *
postgresIterateForeignScan(ForeignScanState *node)
{
	if (fsstate->next_tuple >= fsstate->num_tuples)
	{
		if (!fsstate->eof_reached)
			AioFdwFetchMore(node);
	}
	return slot;
}

static void
postgresReScanForeignScan(ForeignScanState *node)
{
	res = pgfdw_exec_query(fsstate->conn, sql, fsstate->conn_state);
	AioFdwRescan(node);
	PQclear(res);
	fsstate->tuples = NULL;
}

static void
fetch_more_data(ForeignScanState *node)
{
	if (fsstate->async_capable)
		res = AioFdwFetched(node, conn);
	else
		res = pgfdw_exec_query(conn, sql, fsstate->conn_state);
}

static void
fetch_more_data_begin(AsyncRequest *areq)
{
	if (!fsstate->cursor_exists)
		create_cursor(node);
	AioFdwSizeFetch(node);
	snprintf(sql, sizeof(sql), "FETCH %d FROM c%u", fsstate->fetch_size, fsstate->cursor_number);
	PQsendQuery(fsstate->conn, sql);
}

static void
create_cursor(ForeignScanState *node)
{
	if (numParams > 0)
		process_query_params(econtext, values);
	AioFdwFreeConnection(fsstate->conn_state);
	if (!PQsendQueryParams(conn, buf.data, numParams, NULL, values, NULL, NULL, 0))
		pgfdw_report_error(ERROR, NULL, conn, false, buf.data);
	res = pgfdw_get_result(conn);
}

static void
execute_dml_stmt(ForeignScanState *node)
{
	AioFdwFreeConnection(dmstate->conn_state);
	if (!PQsendQueryParams(dmstate->conn, dmstate->query, numParams, NULL, values, NULL, NULL, 0))
		pgfdw_report_error(ERROR, NULL, dmstate->conn, false, dmstate->query);
}

void
_PG_init(void)
{
	MarkGUCPrefixReserved("postgres_fdw");
	AioFdwInitialize();
}
