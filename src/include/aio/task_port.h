/*-------------------------------------------------------------------------
 *
 * task_port.h
 *	  What tasks need of the program that they run in.
 *
 * The files of src/backend/aio/task know stacks, errors, memory contexts and
 * resource owners, but no locks, no buffers, no I/O and no statistics.  What
 * has to do with these, the program does for them: the server in
 * src/backend/aio/task_port.c, the simulator in src/test/simulate.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AIO_TASK_PORT_H
#define AIO_TASK_PORT_H

#include "aio/task.h"

/* What a process holds that its tasks share, so that it may not change. */
typedef struct AioHeldLocks
{
	int			sibling_locks;	/* that must exclude sibling tasks, too */
	int			nest_level;		/* of subtransactions */
} AioHeldLocks;

/*
 * Functions may be called on any stack of the process.  Unless it says
 * otherwise, one must not raise, block or run tasks.
 */
typedef struct AioTaskPort
{
	/* Where the depth of the stack is checked: its base, and the limit. */
	char	  **stack_base;
	ssize_t    *stack_depth_max;

	/* A scope may begin here. */
	bool		(*scope_allowed) (void);

	/* One begins: say what is held. */
	void		(*scope_begins) (AioHeldLocks *held);

	/* It ends, well: nothing of its tasks is staged any more. */
	void		(*scope_ends) (void);

	/* Is the same held now? */
	bool		(*held_same) (const AioHeldLocks *held);

	/*
	 * The running task wants to suspend; is something in the way that the
	 * core does not know?  'held' is what was held when its scope began.
	 */
	AioSuspendVerdict (*may_suspend) (const AioHeldLocks *held);

	/* Most tasks of a scope that may be suspended at a time. */
	int			(*task_limit) (void);

	/* Submit what tasks have staged; others may be waiting for it. */
	void		(*submit) (void);

	/* Look for what has completed, without waiting. */
	void		(*reap) (void);

	/*
	 * Block until one of these futures may have become complete; returning
	 * early is allowed.  Returns false if that can never be.  May raise, and
	 * process interrupts.
	 */
	bool		(*wait_for_any) (AioFuture *const *futures, int n);

	/*
	 * An error is not raised any further: release what the abort of a
	 * transaction would release, and tasks must not find.
	 */
	void		(*clean_up) (void);

	/*
	 * Tasks are dropped, as an error is raised next: release locks before
	 * that; and complete what is pending after it, which may block.
	 */
	void		(*begin_abandon) (void);
	void		(*finish_abandon) (void);

	/* A task's memory has been made, or goes; it is told of those below. */
	void		(*task_made) (AioTask *task);
	void		(*task_freed) (AioTask *task);

	/* The running task is about to be suspended; may raise (out of memory). */
	void		(*awaits) (AioTask *task, AioFuture *future);

	/* It is suspended, goes on, or is dropped. */
	void		(*suspended) (AioTask *task, AioFuture *future);
	void		(*resumed) (AioTask *task);
	void		(*dropped) (AioTask *task, AioFuture *future);
	void		(*failed) (AioTask *task);

	/* The number of suspended tasks is going to change by so many. */
	void		(*count_suspended) (int change);

	/* With assertions: a task begins or goes on, or stops running. */
	void		(*check_runs) (AioTask *task, bool begins);
	void		(*check_stops) (AioTask *task);
} AioTaskPort;

/* What the program may know of a task. */
typedef struct AioTaskInfo
{
	uint64		scope;			/* numbered by the process */
	uint64		id;				/* numbered by the scope */
	void	   *subject;
} AioTaskInfo;

/* memory that the program may use for a task: its own numbers, say */
#define AIO_TASK_LOCAL_BYTES	64

extern const char *AioTaskSetPort(const AioTaskPort *port);
extern void AioTaskGetInfo(const AioTask *task, AioTaskInfo *info);
extern void *AioTaskLocal(AioTask *task);
extern bool AioAnyTaskSuspended(void);

/* src/backend/aio/task_port.c, the server's */
extern void AioCleanUpAfterError(void);

#endif							/* AIO_TASK_PORT_H */
