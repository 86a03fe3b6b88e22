/*-------------------------------------------------------------------------
 *
 * async_pending.c
 *	  postgres_fdw: what is pending on a connection, whosever it is.
 *
 * Included at the end of upstream's postgres_fdw.c, after our other files.
 * Upstream looks for a pending request before it uses a connection.  Its own
 * have a requestor; ours have none, and those of scans have a requestee.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "async_fdw.h"

/*
 * See to the end of what is pending.  A seam gives upstream's function, which
 * knows of its own requests only, another name, so that every caller comes
 * here.  May raise.
 */
void
process_pending_request(AsyncRequest *areq)
{
	if (areq->requestor != NULL)
		upstream_process_pending_request(areq);
	else if (areq->requestee != NULL)
		take_off((AioFdwAhead *) areq);
	else
		finish_pipeline(areq);
}

/* Nothing must be pending on this connection any more.  May raise. */
void
AioFdwFreeConnection(PgFdwConnState *state)
{
	if (state->pendingAreq != NULL)
		process_pending_request(state->pendingAreq);
}

/*
 * Does this foreign table, or else its server, have the option async_capable?
 * Its owner says by it that it may be worked on while others are.
 */
bool
AioFdwIsAsyncCapable(Oid foreigntableid)
{
	ForeignTable *table = GetForeignTable(foreigntableid);
	List	   *options = list_concat(list_copy(table->options),
									  GetForeignServer(table->serverid)->options);
	ListCell   *cell;

	foreach(cell, options)
	{
		DefElem    *option = lfirst_node(DefElem, cell);

		if (strcmp(option->defname, "async_capable") == 0)
			return defGetBoolean(option);
	}
	return false;
}
