/*-------------------------------------------------------------------------
 *
 * wal_flush.c
 *	  Flushes of WAL as futures.
 *
 * The WAL writer carries them out: who wants one asks it and goes on.  To
 * submit a write and a sync linked to it instead would serve nobody.  The
 * kernel passes the sync to a thread of its own, which takes a third longer
 * than to write and to sync, and two who ask would not share one.
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
	.name = "flush",
	.kind = AIO_KIND_FLUSH,
	.external = true,
	.elsewhere = true,
	.poll = flush_poll,
	.wait = flush_wait,
	.describe = flush_describe,
};

static void
flush_describe(const AioFuture *future, AioTaskStatus *status)
{
	status->lsn = ((const AioFlushFuture *) future)->upto;
}

/*
 * Ask for WAL to be flushed up to 'upto', which must have been inserted, and
 * make a future of it.  Takes a spinlock at most; raises nothing.
 */
void
AioFlushFutureInit(AioFlushFuture *flush, XLogRecPtr upto)
{
	instr_time	never;

	Assert(upto != InvalidXLogRecPtr && upto <= GetXLogInsertRecPtr());
	flush->future.ops = &flush_ops;
	flush->upto = upto;
	AioCountStart(AIO_KIND_FLUSH, 0);
	INSTR_TIME_SET_ZERO(never);
	AioCountEnd(AIO_KIND_FLUSH, never);
	if (XLogNeedsFlush(upto))
		AioRequestFlush(upto);
	else
		aio_usage[AIO_KIND_FLUSH].completed_inline++;
}

static bool
flush_poll(AioFuture *future)
{
	return !XLogNeedsFlush(((AioFlushFuture *) future)->upto);
}

/* Who has nothing else to wait for is faster than the WAL writer. */
static void
flush_wait(AioFuture *future)
{
	instr_time	before;
	instr_time	after;

	Assert(!aio_flush_is_counted);
	INSTR_TIME_SET_CURRENT(before);
	aio_flush_is_counted = true;
	XLogFlush(((AioFlushFuture *) future)->upto);
	aio_flush_is_counted = false;
	INSTR_TIME_SET_CURRENT(after);
	Assert(flush_poll(future));
	INSTR_TIME_ACCUM_DIFF(aio_session_stats_data.wait_time, after, before);
}
