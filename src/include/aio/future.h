/*-------------------------------------------------------------------------
 *
 * future.h
 *	  Futures: handles on results that are still on their way.
 *
 * This is the header to read first.  A future is anything that will be
 * complete later: a page that is being read, a turn, a group of tasks.  It is
 * awaited with AioAwait().  Inside a task (task.h) that may suspend, awaiting
 * parks the task and lets its siblings run; anywhere else awaiting blocks,
 * as PostgreSQL always did.
 *
 * Suspending is an optimisation, never a right.  Code that awaits must be
 * correct when the await merely blocks, and must treat everything it read
 * from shared memory before the await as out of date after it.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AIO_FUTURE_H
#define AIO_FUTURE_H

typedef struct AioFuture AioFuture;

struct AioTaskStatus;

/*
 * How one kind of future works.  The callbacks may run on any stack of the
 * backend, in particular not on the stack of the task that awaits.
 */
typedef struct AioFutureOps
{
	/* name of this kind of future, a constant for views and debug output */
	const char *name;

	/* what its owner counts it as; 0 if it is not counted */
	int			kind;

	/*
	 * Something other than a task of this process completes it, and that may
	 * be noticed later: aio.debug_delay_completions applies
	 */
	bool		external;

	/*
	 * Whoever awaits it holds no pin nor anything else that another process
	 * may wait for
	 */
	bool		holds_nothing;

	/*
	 * Another process completes it, so it is better to wait for other
	 * futures: wait() does the work itself
	 */
	bool		elsewhere;

	/*
	 * It does not depend on this machine's disk and may take forever: wait
	 * for it together with others, if they can
	 */
	bool		remote;

	/*
	 * Is the future complete?  Must not block, raise or allocate.  Once true
	 * it stays true.
	 */
	bool		(*poll) (AioFuture *future);

	/*
	 * Block until the future may have become complete; returning early is
	 * allowed, so the caller polls again.  May raise, and may process
	 * interrupts.  NULL for a future that only a sibling task can complete.
	 */
	void		(*wait) (AioFuture *future);

	/*
	 * Optional, as the next one: the socket, and the events of WaitEventSets,
	 * to wait for together with others; PGINVALID_SOCKET if that is not
	 * possible, or if it has become complete.  May raise.
	 */
	pgsocket	(*configure) (AioFuture *future, uint32 *events);

	/*
	 * These events have come.  Makes the progress that is possible without
	 * waiting; poll() tells whether it is complete.  May raise.
	 */
	void		(*notify) (AioFuture *future, uint32 events);

	/*
	 * Optional: the task that awaits it has been dropped, and its stack,
	 * where the future may be, is about to be used again.  Sees to it that
	 * nobody refers to the future any more.  Interrupts are held off; may
	 * block, may not raise.
	 */
	void		(*abandon) (AioFuture *future);

	/*
	 * Optional: say in the status of the task that awaits it what is awaited.
	 * Must not block, raise or allocate.
	 */
	void		(*describe) (const AioFuture *future,
							 struct AioTaskStatus *status);
} AioFutureOps;

/*
 * Embedded as first member in every kind of future.  Lives on the stack of
 * whoever awaits it, or longer than the resource owner of that one's scope.
 */
struct AioFuture
{
	const AioFutureOps *ops;
};

/*
 * Why the running code may not suspend.  AIO_SUSPEND_OK is the only value
 * that permits it; every other value costs concurrency, never correctness.
 */
typedef enum AioSuspendVerdict
{
	AIO_SUSPEND_OK,
	AIO_SUSPEND_NO_TASK,		/* not running in a task */
	AIO_SUSPEND_PINNED_DOWN,	/* the task's creator or its code forbids it */
	AIO_SUSPEND_PAGE_LOCK,		/* has a page locked */
	AIO_SUSPEND_LWLOCK,			/* holds an LWLock */
	AIO_SUSPEND_CRITICAL,		/* in a critical section */
	AIO_SUSPEND_HOLDOFF,		/* interrupts are held off */
	AIO_SUSPEND_HEAVYWEIGHT,	/* holds a lock that must exclude siblings */
	AIO_SUSPEND_HANDED_OUT,		/* an AIO handle is handed out */
	AIO_SUSPEND_EXITING,		/* the process is exiting */
} AioSuspendVerdict;

#define AIO_SUSPEND_VERDICTS (AIO_SUSPEND_EXITING + 1)

extern AioSuspendVerdict AioMaySuspend(void);
extern const char *AioSuspendVerdictName(AioSuspendVerdict verdict);
extern bool AioAwait(AioFuture *future);
extern void AioYield(void);

#endif							/* AIO_FUTURE_H */
