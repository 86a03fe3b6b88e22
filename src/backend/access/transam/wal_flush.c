/*-------------------------------------------------------------------------
 *
 * wal_flush.c
 *	  Flushes of WAL as futures.
 *
 * The WAL writer carries them out: a process that wants one requests it and
 * goes on. Submitting a write and a linked sync instead would help nobody: the
 * kernel passes the sync to a thread of its own, which takes a third longer
 * than writing and syncing, and two processes could not share a sync.
 *
 * Tests: src/test/aio/wal/t/001_pipeline.pl.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xlog.h"
#include "aio/stats.h"
#include "aio/task_status.h"
#include "aio/usage.h"
#include "aio/wal.h"
#include "portability/instr_time.h"

static bool flush_poll(AioFuture *future);
static void flush_wait(AioFuture *future);
static void flush_describe(const AioFuture *future, AioTaskStatus *status);

static const AioFutureOps flush_ops = {
	.name = "wal_flush",
	.kind = AIO_KIND_WAL_FLUSH,
	.external = true,
	.elsewhere = true,
	.poll = flush_poll,
	.wait = flush_wait,
	.describe = flush_describe,
};

static void
flush_describe(const AioFuture *future, AioTaskStatus *status)
{
	status->lsn = ((const AioWalFlushFuture *) future)->upto;
}

/*
 * Request that WAL be flushed up to 'upto', which must have been inserted, and
 * make a future of it.  Takes a spinlock at most; raises nothing.
 */
void
AioStartWalFlush(AioWalFlushFuture *flush, XLogRecPtr upto)
{
	instr_time	never;

	Assert(upto != InvalidXLogRecPtr && upto <= GetXLogInsertRecPtr());
	flush->future.ops = &flush_ops;
	flush->upto = upto;
	AioCountStart(AIO_KIND_WAL_FLUSH, 0);
	INSTR_TIME_SET_ZERO(never);
	AioCountEnd(AIO_KIND_WAL_FLUSH, never);
	if (XLogNeedsFlush(upto))
		AioRequestWalFlush(upto);
	else
		aio_usage[AIO_KIND_WAL_FLUSH].completed_inline++;
}

static bool
flush_poll(AioFuture *future)
{
	return !XLogNeedsFlush(((AioWalFlushFuture *) future)->upto);
}

/* A process that has nothing else to do is faster than the WAL writer. */
static void
flush_wait(AioFuture *future)
{
	instr_time	before;
	instr_time	after;

	Assert(!aio_wal_flush_is_counted);
	INSTR_TIME_SET_CURRENT(before);
	aio_wal_flush_is_counted = true;
	XLogFlush(((AioWalFlushFuture *) future)->upto);
	aio_wal_flush_is_counted = false;
	INSTR_TIME_SET_CURRENT(after);
	Assert(flush_poll(future));
	INSTR_TIME_ACCUM_DIFF(aio_session_stats_data.wait_time, after, before);
}
