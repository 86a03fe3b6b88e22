/*-------------------------------------------------------------------------
 *
 * task_port.c
 *	  What the server does for tasks: locks, I/O, statistics, and the status
 *	  that other sessions see.
 *
 * The functions of the port (aio/task_port.h), in its order.
 *
 * Locks:     none are taken but those of what is called.
 * Errors:    out of memory, where the port permits it.
 * Tests:     src/test/aio/core, src/test/aio/stats/t/001_statistics.pl.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "aio/block.h"
#include "aio/client.h"
#include "aio/io_internal.h"
#include "aio/pgstat_aio.h"
#include "aio/read.h"
#include "aio/sibling_locks.h"
#include "aio/stats.h"
#include "aio/task_port.h"
#include "aio/task_status.h"
#include "aio/wait.h"
#include "catalog/catalog.h"
#include "miscadmin.h"
#include "storage/buf_internals.h"
#include "storage/bufmgr.h"
#include "storage/ipc.h"
#include "storage/lwlock.h"
#include "utils/pgstat_internal.h"
#include "utils/rel.h"
#include "utils/resowner.h"

static bool
scope_allowed(void)
{
	return !AioHoldsPageLock() && AioHeldLWLocks() == 0;
}

static void
scope_begins(AioHeldLocks *held)
{
	held->sibling_locks = aio_sibling_locks;
	held->nest_level = GetCurrentTransactionNestLevel();

	/* there is going to be something to report */
	pgstat_report_fixed = true;
}

static void
scope_ends(void)
{
	AioBeforeBlock();
	if (unlikely(aio_messages_kept))
		AioScopeHasKept();
}

static bool
held_same(const AioHeldLocks *held)
{
	return aio_sibling_locks == held->sibling_locks &&
		GetCurrentTransactionNestLevel() == held->nest_level;
}

static AioSuspendVerdict
may_suspend(const AioHeldLocks *held)
{
	if (AioHoldsPageLock())
		return AIO_SUSPEND_PAGE_LOCK;
	if (AioHeldLWLocks() > 0)
		return AIO_SUSPEND_LWLOCK;
	if (aio_sibling_locks != held->sibling_locks)
		return AIO_SUSPEND_HEAVYWEIGHT;
	if (pgaio_my_backend->handed_out_io != NULL)
		return AIO_SUSPEND_HANDED_OUT;
	return AIO_SUSPEND_OK;
}

/*
 * Leave AIO handles to the backend's other reads, and to other backends their
 * share of buffer pins, of which a task holds two as a rule.
 */
static int
task_limit(void)
{
	Assert(io_max_concurrency > 0);
	return Min(io_max_concurrency, (int) GetPinLimit()) / 2;
}

static bool
wait_for_any(AioFuture *const *futures, int n)
{
	return AioWaitForAny(futures, n, PG_WAIT_EXTENSION);
}

/*
 * An error is not raised any further, in a scope or elsewhere: release what the
 * abort of the transaction would release, and what comes next must not find.
 * Interrupts are held off afterwards as often as by the caller's own account.
 */
void
AioCleanUpAfterError(void)
{
	LWLockReleaseAll();
	UnlockBuffers();
	if (pgaio_my_backend->handed_out_io != NULL)
		pgaio_io_release(pgaio_my_backend->handed_out_io);
	AioSubmitBatch();
	if (pgaio_my_backend->in_batchmode)
		pgaio_exit_batchmode(); /* a read stream's callback has failed */

	/*
	 * A page whose I/O has begun but has not been submitted.  Who waits for
	 * it would wait for the end of the transaction, this process included. It
	 * is no other task's: none is suspended between the two.
	 */
	if (CurrentResourceOwner != NULL)
		ResourceOwnerReleaseAllOfKind(CurrentResourceOwner,
									  &buffer_io_resowner_desc);
	Assert(!AioHoldsPageLock());
}

/* ------------------------------------------------------------------------
 * The status of each task, and statistics
 * ------------------------------------------------------------------------
 */

static AioServerTask *
server_task(AioTask *task)
{
	StaticAssertStmt(sizeof(AioServerTask) <= AIO_TASK_LOCAL_BYTES,
					 "the server's part of a task fits into it");
	return AioTaskLocal(task);
}

static void
task_made(AioTask *task)
{
	server_task(task)->status_slot = AioTaskStatusAcquire();
}

static void
task_freed(AioTask *task)
{
	AioTaskStatusRelease(server_task(task)->status_slot);
}

static void
awaits(AioTask *task, AioFuture *future)
{
	AioTaskInfo info;

	Assert(future->ops->kind >= 0 && future->ops->kind < AIO_KINDS);
	AioTaskGetInfo(task, &info);
	if (info.subject != NULL)
	{
		AioIndexStats *stats = AioPendingIndexStats(info.subject);

		Assert(!RelationUsesLocalBuffers((Relation) info.subject));
		Assert(!IsCatalogRelation(info.subject));
		if (stats != NULL)
			stats->suspensions++;
	}
	aio_usage[future->ops->kind].suspended++;
}

static void
suspended(AioTask *task, AioFuture *future)
{
	int			slot = server_task(task)->status_slot;
	AioTaskStatus status = {0};
	AioTaskInfo info;

	if (slot < 0)
		return;
	AioTaskGetInfo(task, &info);
	status.pid = MyProcPid;
	status.scope = info.scope;
	status.task = info.id;
	status.relation = info.subject == NULL ? InvalidOid :
		RelationGetRelid((Relation) info.subject);
	strlcpy(status.awaits, future->ops->name, sizeof(status.awaits));
	pgaio_wref_clear(&status.io);
	status.lsn = InvalidXLogRecPtr;
	if (future->ops->describe != NULL)
		future->ops->describe(future, &status);
	INSTR_TIME_SET_CURRENT(status.since);
	AioTaskStatusSet(slot, &status);
}

static void
resumed(AioTask *task)
{
	int			slot = server_task(task)->status_slot;

	if (slot >= 0)
		AioTaskStatusClear(slot);
}

static void
dropped(AioTask *task, AioFuture *future)
{
	/* a process that exits has not cancelled anything */
	if (!proc_exit_inprogress)
		aio_usage[future->ops->kind].cancelled++;
	resumed(task);
}

static void
failed(AioTask *task)
{
	AioStatFailure(MyBackendType, AIO_KIND_TASK);
}

static const AioTaskPort server_port = {
	.scope_allowed = scope_allowed,
	.scope_begins = scope_begins,
	.scope_ends = scope_ends,
	.held_same = held_same,
	.may_suspend = may_suspend,
	.task_limit = task_limit,
	.submit = AioSubmitBatch,
	.reap = AioReadReap,
	.wait_for_any = wait_for_any,
	.clean_up = AioCleanUpAfterError,
	.begin_abandon = LWLockReleaseAll,
	.finish_abandon = AioReadAbandonAll,
	.task_made = task_made,
	.task_freed = task_freed,
	.awaits = awaits,
	.suspended = suspended,
	.resumed = resumed,
	.dropped = dropped,
	.failed = failed,
	.count_suspended = AioStatsSuspended,
#ifdef USE_ASSERT_CHECKING
	.check_runs = AioAssertTaskRuns,
	.check_stops = AioAssertTaskStops,
#endif
};

/* While libraries are preloaded: tasks may be used from now on. */
void
AioTaskPortInitialize(void)
{
	AioTaskPort port = server_port;
	const char *refusal;

	port.stack_base = aio_stack_base;
	port.stack_depth_max = aio_stack_depth_max_bytes;
	refusal = AioTaskSetPort(&port);
	if (refusal != NULL)
		ereport(LOG,
				(errmsg("index inserts are not awaited"),
				 errdetail_internal("%s", refusal),
				 errhint("Run the server without it: see the environment variable GLIBC_TUNABLES of the C library.")));
}
