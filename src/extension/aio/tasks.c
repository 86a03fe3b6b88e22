/*-------------------------------------------------------------------------
 *
 * tasks.c
 *	  SQL function that shows what suspended tasks await.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "aio/task_status.h"
#include "catalog/pg_authid.h"
#include "common/relpath.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "storage/proc.h"
#include "storage/procarray.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/pg_lsn.h"
#include "utils/timestamp.h"

PG_FUNCTION_INFO_V1(aio_tasks);

#define TASKS_COLS 13

/* May the user see what this role's sessions do? */
static bool
may_see(Oid role)
{
	return has_privs_of_role(GetUserId(), ROLE_PG_READ_ALL_STATS) ||
		has_privs_of_role(GetUserId(), role);
}

static TimestampTz
timestamp_of(instr_time since)
{
	instr_time	elapsed;

	INSTR_TIME_SET_CURRENT(elapsed);
	INSTR_TIME_SUBTRACT(elapsed, since);
	return GetCurrentTimestamp() - INSTR_TIME_GET_MICROSEC(elapsed);
}

/*
 * One row for each suspended task.  Of sessions of other roles only the
 * process is shown, unless the user may see more.
 */
Datum
aio_tasks(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;

	InitMaterializedSRF(fcinfo, 0);
	Assert(rsinfo->setDesc->natts == TASKS_COLS);
	for (int n = 0; n < AioTaskStatusSlots(); n++)
	{
		Datum		values[TASKS_COLS] = {0};
		bool		nulls[TASKS_COLS];
		AioTaskStatus status;
		AioBlocks	blocks;
		PGPROC	   *proc;
		Oid			role;
		Oid			database;

		CHECK_FOR_INTERRUPTS();
		if (!AioTaskStatusRead(n, &status))
			continue;
		proc = BackendPidGetProc(status.pid);
		if (proc == NULL)
			continue;			/* it has just gone */
		role = proc->roleId;
		database = proc->databaseId;
		pg_read_barrier();
		if (proc->pid != status.pid)
			continue;			/* and somebody else has come */

		memset(nulls, true, sizeof(nulls));
		values[0] = Int32GetDatum(status.pid);
		nulls[0] = false;
		if (may_see(role))
		{
			memset(nulls, false, 6 * sizeof(bool));
			values[1] = ObjectIdGetDatum(database);
			values[2] = Int64GetDatum(status.scope);
			values[3] = Int64GetDatum(status.task);
			values[4] = ObjectIdGetDatum(status.relation);
			nulls[4] = !OidIsValid(status.relation);
			values[5] = CStringGetTextDatum(status.awaits);
			if (AioBlocksOf(&status.io, &blocks))
			{
				Assert(blocks.forknum >= 0 && blocks.forknum <= MAX_FORKNUM);
				memset(&nulls[6], false, 5 * sizeof(bool));
				values[6] = ObjectIdGetDatum(blocks.locator.spcOid);
				values[7] = ObjectIdGetDatum(blocks.locator.relNumber);
				values[8] = CStringGetTextDatum(forkNames[blocks.forknum]);
				values[9] = Int64GetDatum(blocks.first);
				values[10] = Int32GetDatum(blocks.nblocks);
			}
			if (status.lsn != InvalidXLogRecPtr)
			{
				values[11] = LSNGetDatum(status.lsn);
				nulls[11] = false;
			}
			values[12] = TimestampTzGetDatum(timestamp_of(status.since));
			nulls[12] = false;
		}
		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
	}
	return (Datum) 0;
}
