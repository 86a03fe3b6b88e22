/*-------------------------------------------------------------------------
 *
 * shared_state.c
 *	  Shared memory of ours: asked for, and initialized, in one place.
 *
 * A part is described while libraries are preloaded.  It is created again when
 * the server restarts after a crash.  In initdb's bootstrap, which preloads
 * nothing, it does not exist.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "aio/shared_state.h"
#include "miscadmin.h"
#include "storage/ipc.h"
#include "storage/lwlock.h"
#include "storage/shmem.h"

#define PARTS_MAX	16

static struct
{
	const AioSharedState *state;
	Size		size;
}			parts[PARTS_MAX];

static int	nparts = 0;

static shmem_request_hook_type prev_shmem_request_hook;
static shmem_startup_hook_type prev_shmem_startup_hook;

static void
request_shmem(void)
{
	if (prev_shmem_request_hook)
		prev_shmem_request_hook();
	for (int i = 0; i < nparts; i++)
	{
		parts[i].size = parts[i].state->size();
		RequestAddinShmemSpace(parts[i].size);
	}
}

static void
init_shmem(void)
{
	if (prev_shmem_startup_hook)
		prev_shmem_startup_hook();
	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	for (int i = 0; i < nparts; i++)
	{
		const AioSharedState *state = parts[i].state;
		bool		found;

		/* request_shmem() has come first */
		Assert(parts[i].size > 0);
		*state->address = ShmemInitStruct(state->name, parts[i].size, &found);
		if (!found)
			state->initialize();
	}
	LWLockRelease(AddinShmemInitLock);
}

/*
 * While libraries are preloaded: ask for shared memory.  'part' stays the
 * caller's, and must not go away.
 */
void
AioShareState(const AioSharedState *part)
{
	Assert(process_shared_preload_libraries_in_progress);
	if (nparts == PARTS_MAX)
		elog(FATAL, "too many parts of shared memory");
	parts[nparts++].state = part;
}

/* When all libraries are loaded: have all that shared memory made. */
void
AioShareAll(void)
{
	Assert(process_shared_preload_libraries_in_progress);
	prev_shmem_request_hook = shmem_request_hook;
	shmem_request_hook = request_shmem;
	prev_shmem_startup_hook = shmem_startup_hook;
	shmem_startup_hook = init_shmem;
}
