/*-------------------------------------------------------------------------
 *
 * method_worker_internals.c
 *	  Included at the end of storage/aio/method_worker.c: which I/O is handed to
 *	  a worker, and the method libaio, for which the same workers carry it out.
 *
 * INVARIANT-114: no I/O that a process of PostgreSQL's would do itself waits in
 * the queue for I/Os of others, which may be on another disk, slow or stalled.
 * That is all I/O but the reads of upstream's streams.  It is handed to a
 * worker only if one is idle; else its process does it.  A read may also follow
 * others of its process from the same tablespace, which keeps workers busy.
 * And who waits for an I/O that no worker has begun, as all are busy, takes it
 * back, even a read of a stream, lest I/O of ours take all workers.
 *
 * Tests: src/test/aio/wal/t/008_busy_workers.pl.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "aio/io_internal.h"
#include "aio/io_method.h"
#include "aio/read.h"
#include "aio/shared_state.h"
#include "aio/task_status.h"
#include "port/pg_bitutils.h"

/*
 * I/Os that may wait for a worker to submit them, a power of two.  Who finds
 * the queue full has to wait for the disk itself.
 */
#define LIBAIO_QUEUE_SIZE	4096

StaticAssertDecl((LIBAIO_QUEUE_SIZE & (LIBAIO_QUEUE_SIZE - 1)) == 0,
				 "a power of two");

#ifdef USE_ASSERT_CHECKING
/* aio.debug_queue: for tests that hold up the workers, and look who waits */
bool		aio_debug_queue = false;
#else
#define aio_debug_queue false
#endif

/* Would a process of PostgreSQL's do this itself? */
static bool
is_own(const PgAioHandle *ioh)
{
	return ioh->op != PGAIO_OP_READV || ioh->target != PGAIO_TID_SMGR ||
		aio_current_task != NULL || aio_reading_ahead ||
		aio_streamed_relation != NULL;
}

/* Will a worker be busy with it until it is complete? */
static bool
takes_worker(const PgAioHandle *ioh)
{
	return io_method == IOMETHOD_WORKER || (ioh->flags & PGAIO_HF_BUFFERED) ||
		ioh->op == AIO_OP_FALLOCATE;
}

/*
 * With libaio, even a worker that is idle may have I/Os of others in flight,
 * which only it can complete.
 */
static bool
may_take_worker(const PgAioHandle *ioh)
{
	return io_method == IOMETHOD_WORKER || ioh->op != AIO_OP_FALLOCATE;
}

/*
 * Whose reads of which tablespace may follow each other in the queue.  All zero
 * where there is no I/O.
 */
typedef struct QueueKey
{
	int			owner;			/* ProcNumber + 1, or 0 */
	int			target;
	Oid			space;			/* or InvalidOid */
} QueueKey;

/*
 * What each worker carries out, or none; protected by
 * AioWorkerSubmissionQueueLock.
 */
static QueueKey *carried_out = NULL;

static Size
carried_out_size(void)
{
	return sizeof(QueueKey) * MAX_IO_WORKERS;
}

static void
initialize_carried_out(void)
{
	memset(carried_out, 0, carried_out_size());
}

static const AioSharedState carried_out_state = {
	.name = "AIO workers' I/O",
	.size = carried_out_size,
	.address = (void **) &carried_out,
	.initialize = initialize_carried_out,
};

/* While libraries are preloaded. */
void
AioWorkerInitialize(void)
{
	AioShareState(&carried_out_state);
}

static QueueKey
key_of(const PgAioHandle *ioh)
{
	QueueKey	key = {0};

	key.owner = ioh->owner_procno + 1;
	key.target = ioh->target;
	if (ioh->target == PGAIO_TID_SMGR)
		key.space = ioh->target_data.smgr.rlocator.spcOid;
	return key;
}

static bool
key_equals(QueueKey a, QueueKey b)
{
	return a.owner == b.owner && a.target == b.target && a.space == b.space;
}

/* With the lock held: do all workers carry out something? */
static bool
all_are_busy(void)
{
	for (int i = 0; i < MAX_IO_WORKERS; i++)
	{
		if (io_worker_control->workers[i].in_use && carried_out[i].owner == 0)
			return false;
	}
	return true;
}

/*
 * In a worker, with the lock held: in place of
 * pgaio_worker_submission_queue_consume().  If it was the last that was idle,
 * those whose I/O waits behind this one are told, who have counted on it.
 */
static int
AioWorkerConsume(void)
{
	PgAioWorkerSubmissionQueue *queue = io_worker_submission_queue;
	int			index = pgaio_worker_submission_queue_consume();
	bool		was_idle = carried_out[MyIoWorkerId].owner == 0;
	QueueKey	none = {0};

	carried_out[MyIoWorkerId] = index < 0 ? none :
		key_of(&pgaio_ctl->io_handles[index]);
	if (index >= 0 && was_idle && queue->tail != queue->head && all_are_busy())
	{
		for (uint32 i = queue->tail; i != queue->head; i = (i + 1) & (queue->size - 1))
			ConditionVariableBroadcast(&pgaio_ctl->io_handles[queue->sqes[i]].cv);
	}
	return index;
}

/*
 * With the lock held: is all that would come before this read of the same
 * process and tablespace, and so is what at least one of the workers carries
 * out, if it does anything?  When it is done, it takes the next from the queue.
 */
static bool
may_follow(const PgAioHandle *ioh)
{
	PgAioWorkerSubmissionQueue *queue = io_worker_submission_queue;
	QueueKey	key = key_of(ioh);

	if (ioh->op != PGAIO_OP_READV)
		return false;
	for (uint32 i = queue->tail; i != queue->head; i = (i + 1) & (queue->size - 1))
	{
		if (!key_equals(key_of(&pgaio_ctl->io_handles[queue->sqes[i]]), key))
			return false;
	}
	for (int i = 0; i < MAX_IO_WORKERS; i++)
	{
		if (io_worker_control->workers[i].in_use &&
			(carried_out[i].owner == 0 || key_equals(carried_out[i], key)))
			return true;
	}
	return false;
}

/* Hand it to a worker, unless it would wait for others there. */
static bool
hand_over(PgAioHandle *ioh)
{
	PgAioWorkerControl *control = io_worker_control;
	Latch	   *latch = NULL;
	bool		handed = false;

	LWLockAcquire(AioWorkerSubmissionQueueLock, LW_EXCLUSIVE);
	if (pg_popcount64(control->idle_worker_mask) >
		pgaio_worker_submission_queue_depth() || may_follow(ioh))
		handed = pgaio_worker_submission_queue_insert(ioh);
	if (handed)
	{
		int			worker = pgaio_worker_choose_idle();

		if (worker >= 0)
			latch = control->workers[worker].latch;
	}
	LWLockRelease(AioWorkerSubmissionQueueLock);
	if (latch != NULL)
		SetLatch(latch);
	return handed;
}

/* In pgaio_worker_submit(), when all have been prepared. */
static void
AioWorkerSubmit(int n, PgAioHandle **ios)
{
	PgAioHandle *queued[PGAIO_SUBMIT_BATCH_SIZE];
	PgAioHandle *own[PGAIO_SUBMIT_BATCH_SIZE];
	int			nqueued = 0;
	int			nown = 0;

	Assert(n <= PGAIO_SUBMIT_BATCH_SIZE);
	for (int i = 0; i < n; i++)
	{
		Assert(!pgaio_worker_needs_synchronous_execution(ios[i]));
		if (!aio_debug_queue && is_own(ios[i]) && takes_worker(ios[i]))
			own[nown++] = ios[i];
		else
			queued[nqueued++] = ios[i];
	}
	if (nqueued > 0)
		pgaio_worker_submit_internal(nqueued, queued);

	/* while one is done here, a worker may become idle */
	for (int i = 0; i < nown; i++)
	{
		if (!may_take_worker(own[i]) || !hand_over(own[i]))
			pgaio_io_perform_synchronously(own[i]);
	}
}

/*
 * Is an I/O still in the queue?  If no worker is about to take the next, it is
 * taken out of there.
 */
static bool
is_queued(PgAioHandle *ioh, bool *taken)
{
	PgAioWorkerSubmissionQueue *queue = io_worker_submission_queue;
	uint32		mask = queue->size - 1;
	int			id = pgaio_io_get_id(ioh);
	uint32		i;
	bool		found;

	LWLockAcquire(AioWorkerSubmissionQueueLock, LW_EXCLUSIVE);
	for (i = queue->tail; i != queue->head && queue->sqes[i] != id;)
		i = (i + 1) & mask;
	found = i != queue->head;
	*taken = found && all_are_busy();
	if (*taken)
	{
		/* those before it move up */
		for (; i != queue->tail; i = (i - 1) & mask)
			queue->sqes[i] = queue->sqes[(i - 1) & mask];
		queue->tail = (queue->tail + 1) & mask;
	}
	LWLockRelease(AioWorkerSubmissionQueueLock);
	return found && !*taken;
}

/*
 * The process that has submitted an I/O is about to wait for it.  If no worker
 * has begun with it, and all are busy with others, be they of upstream's or
 * ours, and of whichever disk, do it here.  Returns whether it is left in the
 * queue: then to be asked again when its condition variable is signaled.
 *
 * As in a worker, the file may have been closed meanwhile.  If it cannot be
 * opened, the I/O fails, without having begun, and so does whoever waits.
 */
bool
AioWorkerTakeBack(PgAioHandle *ioh)
{
	bool		taken;

	Assert(ioh->owner_procno == MyProcNumber);

	/* a glance, as the queue is empty most of the time */
	if (!AioUsesWorkers() || aio_debug_queue ||
		ioh->state != PGAIO_HS_SUBMITTED ||
		io_worker_submission_queue->head == io_worker_submission_queue->tail ||
		CritSectionCount > 0)
		return false;
	if (is_queued(ioh, &taken))
		return true;
	if (!taken)
		return false;

	HOLD_INTERRUPTS();
	PG_TRY();
	{
		pgaio_io_reopen(ioh);
	}
	PG_CATCH();
	{
		START_CRIT_SECTION();
		pgaio_io_process_completion(ioh, -ECANCELED);
		END_CRIT_SECTION();
		PG_RE_THROW();
	}
	PG_END_TRY();
	pgaio_io_perform_synchronously(ioh);
	RESUME_INTERRUPTS();
	return false;
}

static size_t
libaio_shmem_size(void)
{
	io_worker_queue_size = LIBAIO_QUEUE_SIZE;
	return pgaio_worker_shmem_size();
}

const IoMethodOps aio_libaio_ops = {
	.shmem_size = libaio_shmem_size,
	.shmem_init = pgaio_worker_shmem_init,

	.needs_synchronous_execution = pgaio_worker_needs_synchronous_execution,
	.submit = pgaio_worker_submit,
};
