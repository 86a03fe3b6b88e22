/*-------------------------------------------------------------------------
 *
 * method_io_uring_internals.c
 *	  Included at the end of storage/aio/method_io_uring.c: look for
 *	  completions without blocking, and wait for any completion instead of a
 *	  certain one; find out whether io_uring can be used; and give rings back
 *	  after a crash.
 *
 * Looking and waiting follow the ring's own rule: completions are taken off a
 * ring only under its completion_lock, by its owner or by whoever waits for its
 * I/O.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#ifdef IOMETHOD_IO_URING_ENABLED

#include <sys/resource.h>

#include "aio/io_internal.h"
#include "storage/ipc.h"
#include "utils/memutils.h"

/* how long to wait for memory that is about to be free, in microseconds */
#define RETRY_INTERVAL	10000
#define RETRY_MAX		(5 * 1000 * 1000)

/* rings that have been set up to see whether that is possible */
static struct io_uring *probes = NULL;
static int	nprobes = 0;

/* copies of those of the server's processes, in the postmaster */
static struct io_uring *rings = NULL;
static int	nrings = 0;

/* some have been closed, whose memory the kernel may not have released yet */
static bool rings_closed = false;

static void
end_probe(void)
{
	rings_closed |= nprobes > 0;
	while (nprobes > 0)
		io_uring_queue_exit(&probes[--nprobes]);
	if (probes != NULL)
		pfree(probes);
	probes = NULL;
}

/*
 * This process lets go of all rings: the postmaster, before it starts anew
 * after a crash, and a child that survives that.  There would be as many more
 * each time, until there is no memory for them.
 */
void
AioUringCloseRings(void)
{
	rings_closed |= nrings > 0;
	while (nrings > 0)
		io_uring_queue_exit(&rings[--nrings]);
}

static void
at_shmem_exit(int code, Datum arg)
{
	/* the postmaster has done so when its children were gone */
	if (!IsPostmasterEnvironment)
		(void) AioNothingInFlight();
	AioUringCloseRings();
	AioEndLife();
}

/*
 * How many operations have processes that are gone submitted, all of them,
 * which are not complete?  The kernel counts what it takes from a ring, and
 * each of that is completed once, whoever is left to hear of it.  What a
 * process has put there, and was killed before it could tell the kernel, is
 * never taken. Completions always find room in a ring, which has twice as much
 * as there can be handles; so none is kept elsewhere, where it would not be
 * counted.
 */
uint32
AioUringInFlight(bool *damaged)
{
	uint32		in_flight = 0;

	for (int i = 0; i < nrings; i++)
	{
		struct io_uring *ring = &rings[i];
		uint32		begun = io_uring_smp_load_acquire(ring->sq.khead) - *ring->sq.kdropped;
		uint32		ended = io_uring_smp_load_acquire(ring->cq.ktail) + *ring->cq.koverflow;

		if (begun - ended > (uint32) io_max_concurrency)
			*damaged = true;
		in_flight += begun - ended;
	}
	return in_flight;
}

/* A ring is there: it keeps a file, see earlier_life.c. */
static void
remember(struct io_uring *ring)
{
	int			file = AioLockedFile();
	int			ret = file < 0 ? 0 : io_uring_register_files(ring, &file, 1);

	if (ret < 0)
	{
		/* once */
		AioForgetLock();
		errno = -ret;
		ereport(LOG,
				(errmsg("could not register a file with io_uring: %m"),
				 errdetail("If all processes of this server are killed, the next start may not wait for I/O that they have submitted.")));
	}
	rings[nrings++] = *ring;
}

/* The server's rings are about to be set up. */
void
AioUringBeforeSetup(void)
{
	if (pgaio_uring_caps.mem_init_size > 0)
		end_probe();
	if (rings == NULL)
		rings = MemoryContextAlloc(TopMemoryContext,
								   pgaio_uring_procs() * sizeof(struct io_uring));
	on_shmem_exit(at_shmem_exit, 0);
}

/* Is there going to be memory for a ring? */
static bool
retry(int ret, int *waited)
{
	if (ret != -ENOMEM || !rings_closed || *waited >= RETRY_MAX)
		return false;
	pg_usleep(RETRY_INTERVAL);
	*waited += RETRY_INTERVAL;
	return true;
}

/* io_uring_queue_init() for a process of the server */
int
AioUringQueueInit(struct io_uring *ring)
{
	int			waited = 0;
	int			ret = 0;

	Assert(nrings < pgaio_uring_procs());
	if (nprobes > 0)
		*ring = probes[--nprobes];
	else
	{
		do
		{
			ret = io_uring_queue_init(io_max_concurrency, ring, 0);
		} while (retry(ret, &waited));
	}
	if (ret >= 0)
		remember(ring);
	return ret;
}

#if defined(HAVE_IO_URING_QUEUE_INIT_MEM) && defined(IORING_SETUP_NO_MMAP)
/* io_uring_queue_init_mem() likewise; 'size' bytes of memory are left */
int
AioUringQueueInitMem(struct io_uring *ring, struct io_uring_params *params,
					 void *memory, size_t size)
{
	int			waited = 0;
	int			ret;

	Assert(nrings < pgaio_uring_procs());
	do
	{
		ret = io_uring_queue_init_mem(io_max_concurrency, ring, params, memory, size);
	} while (retry(ret, &waited));
	if (ret >= 0)
		remember(ring);
	return ret;
}
#endif

/* Would the server have files left that it may open? */
static bool
leaves_files(int n)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_NOFILE, &limit) != 0 ||
		limit.rlim_cur == RLIM_INFINITY ||
		limit.rlim_cur >= (rlim_t) n + Min(max_files_per_process, limit.rlim_cur / 2);
}

/* Are the operations there that we need, and can one be submitted? */
static const char *
probe_operations(struct io_uring *ring)
{
	static const int needed[] = {
		IORING_OP_READ, IORING_OP_READV, IORING_OP_WRITE, IORING_OP_WRITEV,
		IORING_OP_FALLOCATE,
		IORING_OP_FSYNC
	};
	struct io_uring_probe *supported = io_uring_get_probe_ring(ring);
	bool		complete = supported != NULL;
	struct io_uring_cqe *cqe;
	int			ret;

	for (int i = 0; complete && i < lengthof(needed); i++)
		complete = io_uring_opcode_supported(supported, needed[i]);
	if (supported != NULL)
		io_uring_free_probe(supported);
	if (!complete)
		return _("io_uring lacks operations in this kernel");

	io_uring_prep_nop(io_uring_get_sqe(ring));
	ret = io_uring_submit_and_wait(ring, 1);
	if (ret >= 0)
		ret = io_uring_peek_cqe(ring, &cqe);
	if (ret < 0)
	{
		errno = -ret;
		return psprintf(_("io_uring cannot be used: %m"));
	}
	io_uring_cqe_seen(ring, cqe);
	return NULL;
}

/*
 * Can io_uring be used, by all processes of this server?  Returns NULL, or a
 * phrase that says why not.  The rings are kept for AioUringQueueInit(), if it
 * can use them, or servers that start at the same time would deceive each
 * other.
 */
const char *
AioUringProbe(void)
{
	int			n = pgaio_uring_procs();
	const char *why_not = NULL;

	Assert(probes == NULL && nprobes == 0);
	if (!leaves_files(n))
		return psprintf(_("io_uring would take %d of the files that a process may open"), n);

	pgaio_uring_check_capabilities();
	probes = MemoryContextAlloc(TopMemoryContext, n * sizeof(struct io_uring));
	while (nprobes < n && why_not == NULL)
	{
		int			ret = io_uring_queue_init(io_max_concurrency, &probes[nprobes], 0);

		if (ret < 0)
		{
			errno = -ret;
			why_not = psprintf(_("io_uring cannot be set up for %d processes: %m"), n);
		}
		else if (nprobes++ == 0)
			why_not = probe_operations(&probes[0]);
	}
	if (why_not != NULL)
		end_probe();
	return why_not;
}

#ifdef USE_ASSERT_CHECKING
/*
 * Process completions, under the ring's lock.  With aio.debug_delay_completions
 * in random order, and perhaps not all of them.
 */
static void
drain_locked(PgAioUringContext *context)
{
	struct io_uring_cqe *cqes[PGAIO_MAX_LOCAL_COMPLETED_IO];
	PgAioHandle *handles[PGAIO_MAX_LOCAL_COMPLETED_IO];
	int			results[PGAIO_MAX_LOCAL_COMPLETED_IO];
	int			n;
	ErrorContextCallback callback = {
		.previous = error_context_stack,
		.callback = pgaio_uring_completion_error_callback,
	};

	Assert(LWLockHeldByMeInMode(&context->completion_lock, LW_EXCLUSIVE));
	if (aio_debug_delay_completions == 0)
	{
		pgaio_uring_drain_locked(context);
		return;
	}

	error_context_stack = &callback;
	START_CRIT_SECTION();
	n = io_uring_peek_batch_cqe(&context->io_uring_ring, cqes, lengthof(cqes));
	if (n > 0)
		n = 1 + AioRandom(n);
	for (int i = 0; i < n; i++)
	{
		handles[i] = io_uring_cqe_get_data(cqes[i]);
		results[i] = cqes[i]->res;
		io_uring_cqe_seen(&context->io_uring_ring, cqes[i]);
	}
	while (n > 0)
	{
		int			i = AioRandom(n--);

		callback.arg = handles[i];
		pgaio_io_process_completion(handles[i], results[i]);
		callback.arg = NULL;
		handles[i] = handles[n];
		results[i] = results[n];
	}
	END_CRIT_SECTION();
	error_context_stack = callback.previous;
}
#else
#define drain_locked(context) pgaio_uring_drain_locked(context)
#endif

/*
 * Process the completions that are in this backend's ring already.  Does not
 * block for I/O; may wait for another process that is emptying the ring.
 */
void
AioUringReap(void)
{
	PgAioUringContext *context = pgaio_my_uring_context;

	/* who holds it would wait for himself */
	Assert(!LWLockHeldByMe(&context->completion_lock));

	/* a stale answer is fine: the next call sees what this one missed */
	if (io_uring_cq_ready(&context->io_uring_ring) == 0)
		return;

	if (AioRandomDelay())
		return;

	LWLockAcquire(&context->completion_lock, LW_EXCLUSIVE);
	drain_locked(context);
	LWLockRelease(&context->completion_lock);
}

/* This backend's ring: readable while there are completions in it. */
int
AioUringDescriptor(void)
{
	return pgaio_my_uring_context->io_uring_ring.ring_fd;
}

/*
 * Wait until at least one I/O of this backend's ring completes, and process
 * what has completed.  'ioh', with the generation the caller knows, must be
 * an I/O submitted to this ring: while it is not complete there is something
 * to wait for.  Returns early when a signal arrives, so that the caller can
 * look at pending interrupts.
 */
void
AioUringWaitAny(PgAioHandle *ioh, uint64 generation)
{
	PgAioUringContext *context = pgaio_my_uring_context;
	PgAioHandleState state;

	Assert(ioh->owner_procno == MyProcNumber);
	Assert(!LWLockHeldByMe(&context->completion_lock));
	LWLockAcquire(&context->completion_lock, LW_EXCLUSIVE);

	/* whoever completes it needs the lock, so the answer cannot change */
	if (!pgaio_io_was_recycled(ioh, generation, &state) &&
		state == PGAIO_HS_SUBMITTED)
	{
		if (io_uring_cq_ready(&context->io_uring_ring) == 0)
		{
			struct io_uring_cqe *cqe;
			int			ret;

			AioAssertMayBlock();
			pgstat_report_wait_start(WAIT_EVENT_AIO_IO_URING_EXECUTION);
			ret = io_uring_wait_cqes(&context->io_uring_ring, &cqe, 1,
									 NULL, NULL);
			pgstat_report_wait_end();

			if (ret != 0 && ret != -EINTR)
			{
				errno = -ret;
				elog(PANIC, "waiting for io_uring completions failed: %m");
			}
		}
		drain_locked(context);
	}

	LWLockRelease(&context->completion_lock);
}

/* Describe the allocation of space to the kernel. */
void
AioUringFallocate(PgAioHandle *ioh, struct io_uring_sqe *sqe)
{
	io_uring_prep_fallocate(sqe, ioh->op_data.write.fd, FALLOC_FL_KEEP_SIZE,
							ioh->op_data.write.offset, AioFallocateBytes(ioh));
}

/* Describe the sync of a file of WAL to the kernel. */
void
AioUringFsync(PgAioHandle *ioh, struct io_uring_sqe *sqe)
{
	io_uring_prep_fsync(sqe, ioh->op_data.write.fd,
						AioFsyncsMetadata(ioh) ? 0 : IORING_FSYNC_DATASYNC);
}

/* Describe to the kernel what else is to be known of a read. */
void
AioUringSetFlags(PgAioHandle *ioh, struct io_uring_sqe *sqe)
{
	if (ioh->op == PGAIO_OP_READV)
		sqe->rw_flags = AioReadVFlags(ioh);
}

/* Does this process keep others from taking completions off a ring? */
bool
AioUringCompletionLockHeld(void)
{
	return pgaio_uring_contexts != NULL &&
		LWLockAnyHeldByMe(&pgaio_uring_contexts[0].completion_lock,
						  pgaio_uring_procs(), sizeof(PgAioUringContext));
}

#ifdef USE_ASSERT_CHECKING
/*
 * Tests: have something in flight in this process's ring, until somebody writes
 * into a pipe; nobody may look for its completion.
 */
int
AioUringTestRead(int pipe)
{
	static char byte;
	struct io_uring *ring = &pgaio_my_uring_context->io_uring_ring;

	io_uring_prep_read(io_uring_get_sqe(ring), pipe, &byte, 1, 0);
	return io_uring_submit(ring);
}

/* Tests: write into memory that is the kernel's. */
void
AioUringTestDamage(void)
{
	*pgaio_my_uring_context->io_uring_ring.cq.koverflow += 1000000;
}
#endif

#endif							/* IOMETHOD_IO_URING_ENABLED */
