/*-------------------------------------------------------------------------
 *
 * wal_included.c
 *	  The server's wal.c, wal_file.c and wal_end.c, and what each process has
 *	  of their variables.
 *
 * The files are included, not linked, since their variables are static.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "wal.c"

#include "wal_file.c"

#include "wal_end.c"

#include "wal_world.h"

StaticAssertDecl(sizeof(files) == sizeof(((SimPipelineLocals *) NULL)->files),
				 "the variables of wal_file.c are other ones now");

void
SimLocalsInit(void)
{
	sim_me->locals.sync_method = sim_method;
	sim_me->locals.syncs = sim_syncs;
	sim_me->locals.write_ahead = sim_write_ahead;
}

void
SimLocalsSave(void)
{
	SimPipelineLocals *locals = &sim_me->locals;

	memcpy(locals->files, files, sizeof(files));
	locals->prepared = prepared;
	locals->write_at = aio_wal_write_at;
	locals->sync_method = wal_sync_method;
	locals->syncs = aio_wal_syncs;
	locals->write_ahead = aio_wal_write_ahead;
}

void
SimLocalsRestore(void)
{
	const SimPipelineLocals *locals = &sim_me->locals;

	memcpy(files, locals->files, sizeof(files));
	prepared = locals->prepared;
	aio_wal_write_at = locals->write_at;
	wal_sync_method = locals->sync_method;
	aio_wal_syncs = locals->syncs;
	aio_wal_write_ahead = locals->write_ahead;
}

/* Nobody uses it: nothing is left of what others did. */
void
SimPipelineCheckIdle(void)
{
	SIM_CHECK(pipeline->mutex == NULL, "the mutex is held by nobody");
	SIM_CHECK(pipeline->first_sync == pipeline->next_sync, "a sync is in flight that nobody does");
	SIM_CHECK(pipeline->flushing.value == 0, "a process that has gone flushes");
	SIM_CHECK(!pipeline->starting_writes.value, "a process that has ended starts writes");
	SIM_CHECK(pipeline->next_write - pipeline->first_write <= NWRITES, "too many writes are in flight");
}
