/*-------------------------------------------------------------------------
 *
 * write_aio.c
 *	  What upstream's AIO does for writes and reads of buffers, with our seams,
 *	  and how processes sleep; it includes the server's write.c.
 *
 * Each process has a few handles.  With io_uring an I/O is complete when
 * somebody looks: its owner, or whoever waits for it, one of them at a time for
 * each ring, who keeps that ring's lock while he sleeps.  With workers it is
 * when a worker has done it, and its owner learns of it later.  What is to be
 * done at once, or does not fit into the queue of the workers, its owner does.
 *
 * A process has one condition variable that it is about to sleep on, and one
 * latch, which anything may reset or set.
 *
 * Invariants: a handle goes through its states in their order; who sleeps, and
 * has a ring, has no writes in flight there, unless he is waiting for one.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "aio/block.h"
#include "aio/io_internal.h"
#include "aio/shared_state.h"
#include "write_world.h"

#define QUEUE_MAX		4		/* of workers */

/* of the handles of a process */
#define UPSTREAM_BATCH	32

typedef enum HandleState
{
	IDLE,
	HANDED_OUT,
	DEFINED,
	STAGED,
	SUBMITTED,
	COMPLETED_IO,
	COMPLETED_SHARED,
	COMPLETED_LOCAL,
} HandleState;

/* What there is beside the PgAioHandle of the same number. */
typedef struct Handle
{
	HandleState state;
	uint64		generation;
	bool		write;
	int			file;
	int			n;				/* pages */
	struct iovec iov[MAX_IO_COMBINE_LIMIT];
	uint64		data[MAX_IO_COMBINE_LIMIT];
	uint8		ndata;
	int			callbacks[3];
	int			ncallbacks;
	PgAioReturn *ret;
	ResourceOwner owner;
	ConditionVariable cv;
	SimIO	   *io;
	int			result;
	PgAioResult distilled;
	uint64		order;			/* in which it was submitted */
} Handle;

/* A process's own. */
typedef struct AioLocals
{
	PgAioBackend backend;
	bool		gone;			/* it has shut down */
	PgAioHandle *staged[UPSTREAM_BATCH];
	bool		in_batch;
	ConditionVariable *cv_target;
} AioLocals;

int			io_method;
int			io_max_concurrency;
bool		sim_warns;
bool		aio_batch_open;
PgAioCtl   *pgaio_ctl;
PgAioBackend *pgaio_my_backend;

static PgAioHandle shared[PROCESSES_MAX * HANDLES_MAX];
static Handle handles[PROCESSES_MAX * HANDLES_MAX];
static PgAioCtl control = {.io_handles = shared};
static AioLocals locals[PROCESSES_MAX];
static LWLock ring_locks[PROCESSES_MAX];
static PgAioHandle *queue[QUEUE_MAX];
static int	nqueued;
static uint64 nsubmitted;

/* what an I/O worker waits for */
static const char work;

/* ------------------------------------------------------------------------
 * Sleeping
 * ------------------------------------------------------------------------
 */

/* the server's file asks for it by upstream's name */
#define cv_sleep_target (locals[SimMe()].cv_target)

#include "storage/lmgr/condition_variable_internals.c"

void
AioSubmitBatch(void)
{
	SIM_CHECK(false, "tasks are not simulated");
}

void
AioAssertMayBlock(void)
{
}

static bool
has_writes_in_ring(void)
{
	for (int i = 0; i < io_max_concurrency; i++)
	{
		Handle	   *one = &handles[SimMe() * HANDLES_MAX + i];

		if (one->state == SUBMITTED && one->write &&
			(shared[SimMe() * HANDLES_MAX + i].flags & PGAIO_HF_SYNCHRONOUS) == 0)
			return true;
	}
	return false;
}

/* seams.h: in WaitEventSetWait() */
static void
before_sleep(void)
{
	AioBeforeBlock();
	if (aio_writes_in_flight > 0 && io_method == IOMETHOD_IO_URING)
		AioFinishWritesToSleep();
}

/* Sleep until the process's latch is set, or time is up. */
void
SimSleep(uint64 timeout)
{
	before_sleep();
	SIM_CHECK(sim_me->spinlock == NULL, "somebody sleeps with a spinlock held");
	if (!MyLatch->is_set && io_method == IOMETHOD_IO_URING &&
		!SimMaySleepWithWrites() && !AioUringCompletionLockHeld())
		SIM_CHECK(!has_writes_in_ring(), "somebody sleeps with writes that nobody may complete");
	SimLatchWait(timeout);
}

void
ConditionVariablePrepareToSleep(ConditionVariable *cv)
{
	ConditionVariableCancelSleep();
	SimPoint();
	cv_sleep_target = cv;
	cv->waiters |= 1 << SimMe();
}

void
ConditionVariableCancelSleep(void)
{
	SimPoint();
	if (cv_sleep_target != NULL)
		cv_sleep_target->waiters &= ~(1 << SimMe());
	cv_sleep_target = NULL;
}

bool
ConditionVariableTimedSleep(ConditionVariable *cv, uint64 timeout)
{
	uint64		until = timeout == NEVER ? NEVER : sim_now + timeout;

	/* seams.h */
	aio_nsleeps++;
	before_sleep();

	if (cv_sleep_target != cv)
	{
		ConditionVariablePrepareToSleep(cv);
		return false;
	}
	for (;;)
	{
		bool		done = false;

		SimSleep(until == NEVER ? NEVER : until - Min(sim_now, until));
		MyLatch->is_set = false;
		SimPoint();
		if ((cv->waiters & (1 << SimMe())) == 0)
		{
			done = true;
			cv->waiters |= 1 << SimMe();
		}
		CHECK_FOR_INTERRUPTS();
		if (cv != cv_sleep_target || done)
			return false;
		if (sim_now >= until)
			return true;
	}
}

void
ConditionVariableSleep(ConditionVariable *cv)
{
	ConditionVariableTimedSleep(cv, NEVER);
}

void
ConditionVariableBroadcast(ConditionVariable *cv)
{
	uint32		waiters;

	if (cv_sleep_target != NULL)
		ConditionVariableCancelSleep();
	SimPoint();
	waiters = cv->waiters;
	for (int i = 0; i < sim_nprocesses; i++)
	{
		if ((waiters & (1 << i)) == 0)
			continue;
		cv->waiters &= ~(1 << i);
		SetLatch(&sim_processes[i].latch);
	}
}

/* ------------------------------------------------------------------------
 * Handles
 * ------------------------------------------------------------------------
 */

static inline Handle *
of(const PgAioHandle *ioh)
{
	return &handles[ioh - shared];
}

static const PgAioHandleCallbacks *
callbacks(int id)
{
	return id == AIO_HCB_MD_WRITEV ? &aio_md_writev_cb :
		id == AIO_HCB_PAGE_WRITEV ? &aio_page_writev_cb : &sim_read_cb;
}

static void
			forget_owner(Handle *one, PgAioHandle *ioh);

static void
release_handle(Datum res)
{
	PgAioHandle *ioh = DatumGetPointer(res);
	Handle	   *one = of(ioh);

	one->owner = NULL;
	if (one->state == HANDED_OUT)
	{
		locals[SimMe()].backend.handed_out_io = NULL;
		one->generation++;
		one->state = IDLE;
	}
	else if (one->state == DEFINED || one->state == STAGED)
		pgaio_submit_staged();
	one->ret = NULL;
}

static const ResourceOwnerDesc handle_resource = {
	.name = "AIO handle",
	.release_phase = RESOURCE_RELEASE_BEFORE_LOCKS,
	.ReleaseResource = release_handle,
};

static void
forget_owner(Handle *one, PgAioHandle *ioh)
{
	if (one->owner != NULL)
		ResourceOwnerForget(one->owner, PointerGetDatum(ioh), &handle_resource);
	one->owner = NULL;
}

/* A read complains, and the client is slow. */
static void
warn(void)
{
	SimTell("tells a client");
	SimSleep(SimUpTo(&sim_world, 2 * sim_disk_time));
}

static void
reclaim(PgAioHandle *ioh)
{
	Handle	   *one = of(ioh);

	SIM_CHECK(ioh->owner_procno == MyProcNumber, "a handle is reclaimed by another process");
	SIM_CHECK(one->state == COMPLETED_SHARED || one->state == HANDED_OUT, "a handle is reclaimed twice, or too early");
	HOLD_INTERRUPTS();
	/* seams.h */
	SIM_CHECK(!aio_reclaiming, "a handle is reclaimed in the middle of that");
	aio_reclaiming = true;
	if (one->state == COMPLETED_SHARED)
	{
		if (!one->write && sim_warns && CritSectionCount == 0 && SimChance(&sim_world, 200))
			warn();
		one->state = COMPLETED_LOCAL;
		if (one->ret != NULL)
		{
			one->ret->result = one->distilled;
			one->ret->target_data = ioh->target_data;
		}
	}
	forget_owner(one, ioh);
	one->generation++;
	SimPoint();
	one->state = IDLE;
	SimPoint();
	ioh->flags = 0;
	one->ndata = 0;
	one->ncallbacks = 0;
	one->ret = NULL;
	aio_reclaiming = false;
	RESUME_INTERRUPTS();
}

static void
complete_shared(PgAioHandle *ioh)
{
	Handle	   *one = of(ioh);
	PgAioResult result = {.status = PGAIO_RS_OK,.result = one->result};

	START_CRIT_SECTION();
	for (int i = one->ncallbacks - 1; i >= 0; i--)
		result = callbacks(one->callbacks[i])->complete_shared(ioh, result, 0);
	one->distilled = result;
	END_CRIT_SECTION();
}

static void
process_completion(PgAioHandle *ioh, int result)
{
	Handle	   *one = of(ioh);

	SIM_CHECK(one->state == SUBMITTED, "an I/O is completed twice");
	SIM_CHECK(CritSectionCount > 0, "an I/O is completed outside of a critical section");
	one->result = result;
	one->state = COMPLETED_IO;
	SimPoint();
	complete_shared(ioh);
	one->state = COMPLETED_SHARED;
	ConditionVariableBroadcast(&one->cv);
	if (ioh->owner_procno == MyProcNumber)
		reclaim(ioh);
}

static SimIO *
begin_io(PgAioHandle *ioh, const void *wakes)
{
	Handle	   *one = of(ioh);
	char	   *pages[MAX_IO_COMBINE_LIMIT];

	for (int i = 0; i < one->n; i++)
		pages[i] = one->iov[i].iov_base;
	return SimIOStart(one->write, one->file, ioh->target_data.smgr.blockNum, one->n, pages, wakes);
}

/* By its owner, or by an I/O worker. */
static void
perform(PgAioHandle *ioh)
{
	SimIO	   *io;
	int			result;

	START_CRIT_SECTION();
	io = begin_io(ioh, NULL);
	while (!SimIODone(io, &result))
		SimWait(io, NEVER, false);
	SimIOForget(io);
	process_completion(ioh, result);
	END_CRIT_SECTION();
}

static void
prepare_submit(PgAioHandle *ioh)
{
	SIM_CHECK(of(ioh)->state == STAGED, "an I/O is submitted that is not staged");
	of(ioh)->order = ++nsubmitted;
	of(ioh)->state = SUBMITTED;
}

static void
submit_to_workers(PgAioHandle **ios, int n)
{
	PgAioHandle *left[UPSTREAM_BATCH];
	int			nleft = 0;

	for (int i = 0; i < n; i++)
		prepare_submit(ios[i]);
	SimPoint();
	for (int i = 0; i < n; i++)
	{
		if (nqueued < QUEUE_MAX)
			queue[nqueued++] = ios[i];
		else
			left[nleft++] = ios[i];
	}
	SimWake(&work);
	for (int i = 0; i < nleft; i++)
		perform(left[i]);
}

void
pgaio_submit_staged(void)
{
	AioLocals  *mine = &locals[SimMe()];

	if (mine->backend.num_staged_ios == 0)
		return;
	SimPoint();
	START_CRIT_SECTION();
	if (io_method == IOMETHOD_WORKER)
		submit_to_workers(mine->staged, mine->backend.num_staged_ios);
	else
	{
		for (int i = 0; i < mine->backend.num_staged_ios; i++)
			prepare_submit(mine->staged[i]);
		SimPoint();
		for (int i = 0; i < mine->backend.num_staged_ios; i++)
			of(mine->staged[i])->io = begin_io(mine->staged[i], &ring_locks[SimMe()]);
	}
	END_CRIT_SECTION();
	mine->backend.num_staged_ios = 0;
}

/* The body of an I/O worker. */
void
SimIOWorker(void)
{
	for (;;)
	{
		while (nqueued > 0)
		{
			PgAioHandle *ioh = queue[0];

			memmove(queue, queue + 1, --nqueued * sizeof(queue[0]));
			HOLD_INTERRUPTS();
			perform(ioh);
			RESUME_INTERRUPTS();
		}
		SimWait(&work, NEVER, true);
	}
}

PgAioHandle *
pgaio_io_acquire_nb(struct ResourceOwnerData *owner, PgAioReturn *ret)
{
	AioLocals  *mine = &locals[SimMe()];

	SIM_CHECK(mine->backend.handed_out_io == NULL, "a second handle is handed out");
	SimPoint();
	for (int i = 0; i < io_max_concurrency; i++)
	{
		PgAioHandle *ioh = &shared[SimMe() * HANDLES_MAX + i];
		Handle	   *one = of(ioh);

		if (one->state != IDLE)
			continue;
		one->state = HANDED_OUT;
		one->io = NULL;
		mine->backend.handed_out_io = ioh;
		if (owner != NULL)
			ResourceOwnerRemember(owner, PointerGetDatum(ioh), &handle_resource);
		one->owner = owner;
		one->ret = ret;
		if (ret != NULL)
			ret->result.status = PGAIO_RS_UNKNOWN;
		return ioh;
	}
	return NULL;
}

static void io_wait(PgAioHandle *ioh, uint64 generation);

static PgAioHandle *
oldest_of_mine(void)
{
	PgAioHandle *oldest = NULL;

	for (int i = 0; i < io_max_concurrency; i++)
	{
		PgAioHandle *ioh = &shared[SimMe() * HANDLES_MAX + i];

		if (of(ioh)->state >= SUBMITTED &&
			(oldest == NULL || of(ioh)->order < of(oldest)->order))
			oldest = ioh;
	}
	return oldest;
}

static void
wait_for_free(void)
{
	bool		any = false;
	PgAioHandle *oldest;

	for (int i = 0; i < io_max_concurrency; i++)
	{
		PgAioHandle *ioh = &shared[SimMe() * HANDLES_MAX + i];

		if (of(ioh)->state == COMPLETED_SHARED)
		{
			reclaim(ioh);
			any = true;
		}
	}
	if (any)
		return;
	pgaio_submit_staged();
	oldest = oldest_of_mine();
	if (oldest != NULL)
		io_wait(oldest, of(oldest)->generation);
}

PgAioHandle *
pgaio_io_acquire(ResourceOwner owner, PgAioReturn *ret)
{
	for (;;)
	{
		PgAioHandle *ioh = pgaio_io_acquire_nb(owner, ret);

		if (ioh != NULL)
			return ioh;
		wait_for_free();
	}
}

/* One that is not needed. */
void
pgaio_io_release(PgAioHandle *ioh)
{
	SIM_CHECK(locals[SimMe()].backend.handed_out_io == ioh, "a handle is released that is not handed out");
	locals[SimMe()].backend.handed_out_io = NULL;
	reclaim(ioh);
}

void
pgaio_io_set_flag(PgAioHandle *ioh, int flag)
{
	SIM_CHECK(of(ioh)->state == HANDED_OUT, "a handle is changed that is in use");
	ioh->flags |= flag;
}

void
pgaio_io_get_wref(PgAioHandle *ioh, PgAioWaitRef *wref)
{
	SIM_CHECK(of(ioh)->state >= HANDED_OUT && of(ioh)->state <= STAGED, "somebody refers to a handle that is in use");
	wref->handle = ioh;
	wref->aio_index = ioh - shared;
	wref->generation = of(ioh)->generation;
}

void
pgaio_io_set_handle_data_64(PgAioHandle *ioh, uint64 *data, uint8 n)
{
	memcpy(of(ioh)->data, data, n * sizeof(uint64));
	of(ioh)->ndata = n;
}

uint64 *
pgaio_io_get_handle_data(PgAioHandle *ioh, uint8 *n)
{
	*n = of(ioh)->ndata;
	return of(ioh)->data;
}

void
pgaio_io_register_callbacks(PgAioHandle *ioh, int id, uint8 data)
{
	of(ioh)->callbacks[of(ioh)->ncallbacks++] = id;
}

PgAioTargetData *
pgaio_io_get_target_data(PgAioHandle *ioh)
{
	return &ioh->target_data;
}

int
pgaio_io_get_iovec(PgAioHandle *ioh, struct iovec **iov)
{
	*iov = of(ioh)->iov;
	return MAX_IO_COMBINE_LIMIT;
}

static void
stage(PgAioHandle *ioh, bool write, int file, int n, uint64 offset)
{
	AioLocals  *mine = &locals[SimMe()];
	Handle	   *one = of(ioh);
	PgAioTargetData *td = &ioh->target_data;

	SIM_CHECK(one->state == HANDED_OUT && mine->backend.handed_out_io == ioh, "an I/O is staged that is not handed out");
	SIM_CHECK(InterruptHoldoffCount > 0, "interrupts come while an I/O is staged");
	SIM_CHECK(td->smgr.blockNum / RELSEG_SIZE == (BlockNumber) file % SEGMENTS_MAX &&
			  td->smgr.blockNum % RELSEG_SIZE * BLCKSZ == offset && (int) td->smgr.nblocks == n,
			  "an I/O has another target than its file");
	HOLD_INTERRUPTS();
	one->write = write;
	one->file = file / SEGMENTS_MAX;
	one->n = n;
	one->state = DEFINED;
	mine->backend.handed_out_io = NULL;
	for (int i = 0; i < one->ncallbacks; i++)
	{
		if (callbacks(one->callbacks[i])->stage != NULL)
			callbacks(one->callbacks[i])->stage(ioh, 0);
	}
	one->state = STAGED;
	SimTell("stages a %s of %d pages at %u, handle %d%s", write ? "write" : "read", n,
			one->file * BLOCKS_MAX + td->smgr.blockNum, (int) (ioh - shared),
			ioh->flags & PGAIO_HF_SYNCHRONOUS ? ", synchronous" : "");
	if ((ioh->flags & PGAIO_HF_SYNCHRONOUS) || io_method == IOMETHOD_SYNC)
	{
		prepare_submit(ioh);
		perform(ioh);
	}
	else
	{
		mine->staged[mine->backend.num_staged_ios++] = ioh;
		if (!mine->in_batch)
			pgaio_submit_staged();
	}
	RESUME_INTERRUPTS();
}

void
pgaio_io_start_writev(PgAioHandle *ioh, int fd, int n, uint64 offset)
{
	stage(ioh, true, fd, n, offset);
}

void
pgaio_io_start_readv(PgAioHandle *ioh, int fd, int n, uint64 offset)
{
	stage(ioh, false, fd, n, offset);
}

void
pgaio_enter_batchmode(void)
{
	AioBeforeBlock();
	locals[SimMe()].in_batch = true;
}

void
pgaio_exit_batchmode(void)
{
	pgaio_submit_staged();
	locals[SimMe()].in_batch = false;
}

bool
pgaio_have_staged(void)
{
	return locals[SimMe()].backend.num_staged_ios > 0;
}

/* ------------------------------------------------------------------------
 * Waiting
 * ------------------------------------------------------------------------
 */

static bool
was_recycled(PgAioHandle *ioh, uint64 generation, HandleState *state)
{
	SimPoint();
	*state = of(ioh)->state;
	SimPoint();
	return of(ioh)->generation != generation;
}

static bool
is_complete(Handle *one)
{
	int			result;

	return one->state == SUBMITTED && one->io != NULL && SimIODone(one->io, &result);
}

/* Complete what is in a ring, in any order; returns whether there was any. */
static bool
drain_ring(int owner)
{
	int			from = SimUpTo(&sim_world, io_max_concurrency - 1);
	bool		any = false;

	for (int i = 0; i < io_max_concurrency; i++)
	{
		PgAioHandle *ioh = &shared[owner * HANDLES_MAX + (from + i) % io_max_concurrency];
		Handle	   *one = of(ioh);
		SimIO	   *io = one->io;
		int			result;

		if (!is_complete(one))
			continue;
		SimIODone(io, &result);
		SimIOForget(io);
		one->io = NULL;
		START_CRIT_SECTION();
		process_completion(ioh, result);
		END_CRIT_SECTION();
		any = true;
	}
	return any;
}

static void
wait_for_ring(PgAioHandle *ioh, uint64 generation)
{
	int			owner = ioh->owner_procno;
	HandleState state;

	AioBeforeBlock();
	LWLockAcquire(&ring_locks[owner], LW_EXCLUSIVE);
	while (!was_recycled(ioh, generation, &state) && state == SUBMITTED)
	{
		if (!drain_ring(owner))
			SimWait(&ring_locks[owner], NEVER, false);
	}
	LWLockRelease(&ring_locks[owner]);
}

/* aio_internals.c: one that another process has staged */
static void
wait_until_submitted(PgAioHandle *ioh, uint64 generation)
{
	HandleState state;
	bool		slept = false;

	if (io_method != IOMETHOD_IO_URING || ioh->owner_procno == MyProcNumber)
		return;
	while (!was_recycled(ioh, generation, &state) &&
		   (state == DEFINED || state == STAGED))
	{
		ConditionVariableTimedSleep(&of(ioh)->cv, sim_disk_time / 3);
		slept = true;
	}
	if (slept)
		ConditionVariableCancelSleep();
}

static void
io_wait(PgAioHandle *ioh, uint64 generation)
{
	HandleState state;

	wait_until_submitted(ioh, generation);
	while (!was_recycled(ioh, generation, &state))
	{
		SIM_CHECK(state > HANDED_OUT, "somebody waits for a handle that is not in use");
		SIM_CHECK(ioh->owner_procno != MyProcNumber || state >= SUBMITTED,
				  "somebody waits for an I/O that he has not submitted");
		if (state == SUBMITTED && io_method == IOMETHOD_IO_URING &&
			(ioh->flags & PGAIO_HF_SYNCHRONOUS) == 0)
		{
			wait_for_ring(ioh, generation);
			continue;
		}
		if (state == COMPLETED_SHARED || state == COMPLETED_LOCAL)
		{
			if (ioh->owner_procno == MyProcNumber && state == COMPLETED_SHARED)
				reclaim(ioh);
			return;
		}
		ConditionVariablePrepareToSleep(&of(ioh)->cv);
		while (!was_recycled(ioh, generation, &state) &&
			   state != COMPLETED_SHARED && state != COMPLETED_LOCAL)
			ConditionVariableSleep(&of(ioh)->cv);
		ConditionVariableCancelSleep();
	}
}

void
pgaio_wref_clear(PgAioWaitRef *wref)
{
	wref->aio_index = PG_UINT32_MAX;
}

bool
pgaio_wref_valid(PgAioWaitRef *wref)
{
	return wref->aio_index != PG_UINT32_MAX;
}

bool
pgaio_wref_check_done(PgAioWaitRef *wref)
{
	PgAioHandle *ioh = &shared[wref->aio_index];
	HandleState state;

	if (was_recycled(ioh, wref->generation, &state) || state == IDLE)
		return true;
	if (state != COMPLETED_SHARED && state != COMPLETED_LOCAL)
		return false;
	if (ioh->owner_procno == MyProcNumber)
		reclaim(ioh);
	return true;
}

void
pgaio_wref_wait(PgAioWaitRef *wref)
{
	AioBeforeBlock();
	io_wait(&shared[wref->aio_index], wref->generation);
}

bool
AioUringCompletionLockHeld(void)
{
	return LWLockAnyHeldByMe(ring_locks, PROCESSES_MAX, sizeof(LWLock));
}

void
pgaio_result_report(PgAioResult result, const PgAioTargetData *target,
					int level)
{
	SIM_CHECK(level < ERROR || CritSectionCount == 0, "an error is raised in a critical section");
	callbacks(result.id)->report(result, target, level);
}

/* Who has to read a message may be slow. */
void
SimReportAt(int level)
{
	if (level >= ERROR)
		SimRaise(SIM_ERROR_OTHER, SIM_NOBODY);
	if (sim_warns && SimChance(&sim_world, 300))
		warn();
}

/* ------------------------------------------------------------------------
 * Processes
 * ------------------------------------------------------------------------
 */

/* A server starts, with so many handles for each process. */
void
SimAioReset(int nhandles)
{
	SIM_CHECK(nhandles <= HANDLES_MAX, "there are too many handles");
	io_max_concurrency = nhandles;
	pgaio_ctl = &control;
	memset(handles, 0, sizeof(handles));
	memset(shared, 0, sizeof(shared));
	memset(ring_locks, 0, sizeof(ring_locks));
	for (int i = 0; i < (int) lengthof(handles); i++)
	{
		shared[i].owner_procno = i / HANDLES_MAX;
		handles[i].generation = 1;
	}
	nqueued = 0;
}

void
SimAioInit(void)
{
	memset(&locals[SimMe()], 0, sizeof(AioLocals));
}

void
SimAioRestore(void)
{
	pgaio_my_backend = locals[SimMe()].gone ? NULL : &locals[SimMe()].backend;
}

/* Clear up after an error. */
void
SimAioError(void)
{
	locals[SimMe()].in_batch = false;
	pgaio_submit_staged();
}

/* A process ends in order: before_shmem_exit. */
void
SimAioShutdown(void)
{
	PgAioHandle *oldest;

	SIM_CHECK(locals[SimMe()].backend.handed_out_io == NULL, "a process ends with a handle handed out");
	SimAioError();
	while ((oldest = oldest_of_mine()) != NULL)
		io_wait(oldest, of(oldest)->generation);
	locals[SimMe()].gone = true;
	pgaio_my_backend = NULL;
}

#include "storage/buffer/write.c"

/* All have ended: nothing is in use. */
void
SimAioCheckIdle(void)
{
	for (int i = 0; i < (int) lengthof(handles); i++)
		SIM_CHECK(handles[i].state == IDLE, "a handle is left in use");
	SIM_CHECK(bounce->nfree == npages && bounce->mutex == NULL, "a bounce buffer is left in use");
	SIM_CHECK(SimDataIdle(), "I/O is left in flight");
}
