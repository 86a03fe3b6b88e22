/*-------------------------------------------------------------------------
 *
 * init.c
 *	  Process start: configuration parameters, under the prefix "aio".
 *
 * Called while the postmaster (or a single-user server) preloads libraries,
 * hence never during bootstrap; the variables' initial values must be right
 * for that.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "aio/index_insert.h"
#include "aio/seams.h"
#include "internal.h"
#include "utils/guc.h"

/* Define our configuration parameters and reserve their prefix. */
void
AioInitialize(void)
{
	DefineCustomBoolVariable("aio.await_index_inserts",
							 "Inserts into several indexes await their reads together.",
							 "Has no effect if \"io_method\" is \"sync\".",
							 &aio_await_index_inserts,
							 true,
							 PGC_USERSET,
							 0,
							 NULL, NULL, NULL);

	DefineCustomIntVariable("aio.max_tasks",
							"Maximum number of tasks of one session that may await I/O at the same time.",
							"Three quarters of \"io_max_concurrency\" and the session's share of buffer pins are limits, too.",
							&aio_max_tasks,
							64, 1, AIO_MAX_TASKS_LIMIT,
							PGC_USERSET,
							0,
							NULL, NULL, NULL);

#ifdef USE_ASSERT_CHECKING
	DefineCustomBoolVariable("aio.debug_suspend",
							 "Tasks suspend at each read where they may, also if the page is cached, and go on in random order.",
							 NULL,
							 &aio_debug_suspend,
							 false,
							 PGC_USERSET,
							 GUC_NOT_IN_SAMPLE,
							 NULL, NULL, NULL);
#endif

	MarkGUCPrefixReserved("aio");
}
