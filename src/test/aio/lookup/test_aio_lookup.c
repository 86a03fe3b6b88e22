/*-------------------------------------------------------------------------
 *
 * test_aio_lookup.c
 *	  The window of lookups ahead, without a statement.
 *
 * Tests: src/test/aio/lookup/sql/window.sql.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_type_d.h"
#include "fmgr.h"
#include "lookup.h"
#include "utils/array.h"
#include "utils/builtins.h"

PG_MODULE_MAGIC;

PG_FUNCTION_INFO_V1(window_distances);

Datum
window_distances(PG_FUNCTION_ARGS)
{
	char	   *events = text_to_cstring(PG_GETARG_TEXT_PP(0));
	int			n = strlen(events);
	Datum	   *distances = palloc_array(Datum, n + 1);
	AioLookupWindow window;

	AioWindowOpen(&window, PG_GETARG_INT32(1), PG_GETARG_BOOL(2));
	window.needed = PG_GETARG_INT32(3);
	distances[0] = Int32GetDatum(window.distance);
	for (int i = 0; i < n; i++)
	{
		if (events[i] == 'n')
		{
			window.needed++;
			if (window.distance == 0 && !AioWindowBegins(&window))
				elog(NOTICE, "closed after %d events", i + 1);
		}
		else
			AioWindowAdjust(&window, events[i] == 'r');
		distances[i + 1] = Int32GetDatum(window.distance);
	}
	PG_RETURN_ARRAYTYPE_P(construct_array_builtin(distances, n + 1, INT4OID));
}
