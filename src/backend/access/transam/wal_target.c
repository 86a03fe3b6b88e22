/*-------------------------------------------------------------------------
 *
 * wal_target.c
 *	  WAL as a target of upstream's AIO, and how a write of it, or a sync of
 *	  what a standby has received, is completed.
 *
 * An I/O worker opens the file anew.  Whoever completes a write, which may be
 * any process, has what is left of it written, and tells the pipeline.  Who
 * completes a sync wakes the process that has begun it.  Upstream's AIO calls
 * this, by way of its tables of targets and callbacks.
 *
 * Upholds INVARIANT-52.
 *
 * Tests: src/test/aio/wal/t/002_errors.pl,
 * src/test/aio/replay/t/006_walreceiver.pl.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <unistd.h>

#include "access/xlog.h"
#include "access/xlog_internal.h"
#include "aio/read.h"
#include "aio/shared_state.h"
#include "aio/wal.h"
#include "aio/worker_file.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "storage/aio_internal.h"
#include "storage/latch.h"
#include "storage/proc.h"
#include "utils/wait_event.h"
#include "wal_internal.h"

/* reopen, in an I/O worker; what is raised becomes the I/O's result */
static void
wal_reopen(PgAioHandle *ioh)
{
	const AioWalTarget *target = (AioWalTarget *) pgaio_io_get_target_data(ioh);
	XLogSegNo	segno = AioWalTargetSegment(target);
	int			fd = AioWalOpenSegment(segno, target->tli,
									   target->sync_method, true);

	if (fd < 0)
	{
		char		name[MAXFNAMELEN];
		int			save_errno = errno;

		XLogFileName(name, target->tli, segno, wal_segment_size);
		errno = save_errno;
		ereport(ERROR,
				(errcode_for_file_access(),
				 errmsg("could not open file \"%s\": %m", name)));
	}
	pgaio_io_get_op_data(ioh)->write.fd = fd;
	AioSetWorkerFile(ioh, fd);
}

static char *
wal_describe(const PgAioTargetData *td)
{
	const AioWalTarget *target = (const AioWalTarget *) td;
	char		name[MAXFNAMELEN];

	XLogFileName(name, target->tli, AioWalTargetSegment(target),
				 wal_segment_size);
	return psprintf(_("WAL file \"%s\""), name);
}

const PgAioTargetInfo aio_wal_target_info = {
	.name = "wal",
	.reopen = wal_reopen,
	.describe_identity = wal_describe,
};

/* complete_shared */
static PgAioResult
wal_complete(PgAioHandle *ioh, PgAioResult prior_result, uint8 cb_data)
{
	const struct iovec *iov = &pgaio_ctl->iovecs[ioh->iovec_off];
	uint64	   *number;
	uint8		n;

	(void) AioCloseWorkerFile(ioh);
	AioWalEndWrite((AioWalTarget *) pgaio_io_get_target_data(ioh),
				   iov->iov_base, iov->iov_len, ioh->op_data.write.offset,
				   prior_result.result);
	number = pgaio_io_get_handle_data(ioh, &n);
	Assert(n == 1);
	AioWalWriteComplete(*number);

	prior_result.status = PGAIO_RS_OK;
	return prior_result;
}

const PgAioHandleCallbacks aio_wal_cb = {
	.complete_shared = wal_complete,
};

/* ------------------------------------------------------------------------
 * Syncs
 * ------------------------------------------------------------------------
 */

/*
 * The sync of the walreceiver, of which there is one, and which has one at a
 * time: also when it ends, it waits for it.
 */
typedef enum SyncState
{
	SYNC_IN_FLIGHT,
	SYNC_DONE,
	SYNC_NOT_TRIED,
} SyncState;

static pg_atomic_uint32 *last_sync = NULL;

static Size
last_sync_size(void)
{
	return sizeof(pg_atomic_uint32);
}

static void
initialize_last_sync(void)
{
	pg_atomic_init_u32(last_sync, SYNC_DONE);
}

static const AioSharedState last_sync_state = {
	.name = "AIO sync of received WAL",
	.size = last_sync_size,
	.address = (void **) &last_sync,
	.initialize = initialize_last_sync,
};

void
AioWalSyncInitialize(void)
{
	AioShareState(&last_sync_state);
}

/*
 * Can a sync be started?  If not, it has to be waited for, and so is the
 * caller's to do.
 *
 * With libaio that is so because the kernel does not take a sync from all, and
 * a worker would complete no other I/O meanwhile.
 */
bool
AioWalCanStartSync(void)
{
	return io_method != IOMETHOD_SYNC && io_method != IOMETHOD_LIBAIO &&
		last_sync != NULL && IsUnderPostmaster && enableFsync &&
		(wal_sync_method == WAL_SYNC_METHOD_FSYNC ||
		 wal_sync_method == WAL_SYNC_METHOD_FDATASYNC);
}

/*
 * Start to sync a segment, of which this process has a file open, and will have
 * until it is complete.  The latch of this process will be set then.
 */
void
AioWalStartSync(AioWalSync *sync, int fd, XLogSegNo segno, TimeLineID tli)
{
	PgAioHandle *ioh;
	AioWalTarget *target;

	HOLD_INTERRUPTS();
	ioh = pgaio_io_acquire(NULL, NULL);
	pgaio_io_get_wref(ioh, &sync->wref);
	sync->started = pgstat_prepare_io_time(track_wal_io_timing);
	target = (AioWalTarget *) pgaio_io_get_target_data(ioh);
	target->segno_high = (uint32) (segno >> 32);
	target->segno_low = (uint32) segno;
	target->tli = tli;
	target->sync_method = wal_sync_method;
	pgaio_io_set_target(ioh, AIO_TID_WAL);
	pgaio_io_register_callbacks(ioh, AIO_HCB_WAL_SYNC, 0);
	ioh->op_data.write.fd = fd;
	ioh->op_data.write.offset = 0;
	ioh->op_data.write.iov_length = 0;
	Assert(pg_atomic_read_u32(last_sync) != SYNC_IN_FLIGHT);
	pg_atomic_write_u32(last_sync, SYNC_IN_FLIGHT);
	pgaio_io_stage(ioh, AIO_OP_FSYNC);
	if (pgaio_my_backend->num_staged_ios > 0)
		pgaio_submit_staged();
	RESUME_INTERRUPTS();
}

/* Is it complete? */
bool
AioWalSyncIsComplete(void)
{
	AioReadReap();
	return pg_atomic_read_u32(last_sync) != SYNC_IN_FLIGHT;
}

/*
 * Wait until it is complete, and count it.  Is the file synced?  If not, nobody
 * has tried, and the caller has to.
 *
 * Also called when it is complete, so that its handle is free again.  At the
 * end of a process upstream has waited for it, and forgotten the handle.
 */
bool
AioWalFinishSync(AioWalSync *sync)
{
	if (pgaio_my_backend != NULL && !pgaio_wref_check_done(&sync->wref))
	{
		pgaio_wref_wait(&sync->wref);
		SetLatch(MyLatch);		/* it may have been reset */
	}
	Assert(pg_atomic_read_u32(last_sync) != SYNC_IN_FLIGHT);
	if (pg_atomic_read_u32(last_sync) != SYNC_DONE)
		return false;
	pgstat_count_io_op_time(IOOBJECT_WAL, IOCONTEXT_NORMAL, IOOP_FSYNC,
							sync->started, 1, 0);
	return true;
}

/* an error after which io_uring has not begun */
static bool
means_not_begun(int error)
{
	return error == EINTR || error == EAGAIN || error == ECANCELED;
}

/*
 * Carry out the operation.  Returns -1 and sets errno if that fails.  Whether
 * it is needed has been decided, perhaps with another value of fsync.
 */
int
AioPerformFsync(PgAioHandle *ioh)
{
	const AioWalTarget *target = (AioWalTarget *) pgaio_io_get_target_data(ioh);
	int			fd = ioh->op_data.write.fd;
	int			result;

	pgstat_report_wait_start(WAIT_EVENT_WAL_SYNC);
	do
		result = target->sync_method == WAL_SYNC_METHOD_FSYNC ?
			fsync(fd) : fdatasync(fd);
	while (result != 0 && errno == EINTR);
	pgstat_report_wait_end();
	if (result != 0 && means_not_begun(errno))
		errno = EIO;			/* it has begun */
	return result;
}

/* Does it sync metadata that nobody needs as well? */
bool
AioFsyncsMetadata(PgAioHandle *ioh)
{
	const AioWalTarget *target = (AioWalTarget *) pgaio_io_get_target_data(ioh);

	return target->sync_method == WAL_SYNC_METHOD_FSYNC;
}

/*
 * complete_shared.  The owner learns of it here, before the handle says so: it
 * may look when its latch is set, and not again.
 */
static PgAioResult
wal_sync_complete(PgAioHandle *ioh, PgAioResult prior_result, uint8 cb_data)
{
	const AioWalTarget *target = (AioWalTarget *) pgaio_io_get_target_data(ioh);
	int			error = prior_result.result < 0 ? -prior_result.result : 0;

	/* a worker may not have been able to open the file */
	bool		begun = AioCloseWorkerFile(ioh) || !AmIoWorkerProcess();

	if (error != 0 && means_not_begun(error))
		begun = false;
	if (error != 0 && begun)
	{
		char		name[MAXFNAMELEN];

		XLogFileName(name, target->tli, AioWalTargetSegment(target),
					 wal_segment_size);
		errno = error;
		ereport(PANIC,
				(errcode_for_file_access(),
				 errmsg("could not fsync file \"%s\": %m", name)));
	}
	pg_atomic_write_u32(last_sync, begun ? SYNC_DONE : SYNC_NOT_TRIED);
	SetLatch(&GetPGProcByNumber(ioh->owner_procno)->procLatch);
	prior_result.status = PGAIO_RS_OK;
	return prior_result;
}

const PgAioHandleCallbacks aio_wal_sync_cb = {
	.complete_shared = wal_sync_complete,
};
