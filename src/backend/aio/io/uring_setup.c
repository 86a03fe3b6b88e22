/*-------------------------------------------------------------------------
 *
 * uring_setup.c
 *	  Say what to do when the rings of io_uring do not fit into memory.
 *
 * The kernel charges the rings of all processes of a server, and of all
 * servers of an operating system account, to one limit on locked memory.
 * Upstream reports that as a lack of memory, without a hint.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <sys/resource.h>

#include "aio/server.h"
#include "miscadmin.h"
#include "storage/aio.h"

/*
 * The hint for an error number of io_uring_queue_init(); 'hint' is the one
 * that upstream has, or NULL.
 */
char *
AioUringSetupHint(int err, char *hint)
{
	struct rlimit limit;

	if (hint != NULL || err != ENOMEM)
		return hint;
	if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0 ||
		limit.rlim_cur == RLIM_INFINITY)
		return hint;

	return psprintf(_("The limit on locked memory (\"ulimit -l\", now %llu kB) counts all servers of this account. "
					  "Consider raising it, reducing \"max_connections\" or \"io_max_concurrency\" (now %d), or setting \"io_method\" to \"worker\"."),
					(unsigned long long) limit.rlim_cur / 1024,
					io_max_concurrency);
}
