/*-------------------------------------------------------------------------
 *
 * flush.c
 *	  Flushes of WAL as futures.
 *
 * The WAL writer carries them out: who wants one asks it and goes on.  To
 * submit a write and a sync linked to it instead would serve nobody.  The
 * kernel passes the sync to a thread of its own, which takes a third longer
 * than to write and to sync, and two who ask would not share one.
 *
 * Tests: src/test/aio/t/018_wal.pl.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xlog.h"
#include "aio/stats.h"
#include "aio/wal.h"
#include "portability/instr_time.h"

static bool flush_poll(AioFuture *future);
static void flush_wait(AioFuture *future);

static const AioFutureOps flush_ops = {
	.kind = "flush",
	.elsewhere = true,
	.poll = flush_poll,
	.wait = flush_wait,
};

/*
 * Ask for WAL to be flushed up to 'upto', which must have been inserted, and
 * make a future of it.  Takes a spinlock at most; raises nothing.
 */
void
AioFlushFutureInit(AioFlushFuture *flush, XLogRecPtr upto)
{
	flush->future.ops = &flush_ops;
	flush->upto = upto;
	if (XLogNeedsFlush(upto))
		AioRequestFlush(upto);
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

	INSTR_TIME_SET_CURRENT(before);
	XLogFlush(((AioFlushFuture *) future)->upto);
	INSTR_TIME_SET_CURRENT(after);
	INSTR_TIME_ACCUM_DIFF(aio_session_stats_data.wait_time, after, before);
}
