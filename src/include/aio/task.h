/*-------------------------------------------------------------------------
 *
 * task.h
 *	  Tasks and scopes: structured concurrency inside one backend.
 *
 * A task is a stackful coroutine.  Ordinary C code runs in it and can be
 * suspended any number of frames deep when it awaits a future (future.h).
 * Tasks are spawned into a scope, and no task outlives its scope.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AIO_TASK_H
#define AIO_TASK_H

#include "aio/future.h"

typedef struct AioScope AioScope;
typedef struct AioTask AioTask;

/* bytes of argument that a task keeps */
#define AIO_TASK_ARG_MAX	512

/* aio.max_tasks, and its upper limit, hence of stacks per backend and scope */
extern PGDLLIMPORT int aio_max_tasks;

#define AIO_MAX_TASKS_LIMIT 1024

typedef void (*AioScopeBody) (AioScope *scope, void *arg);
typedef void (*AioTaskBody) (void *arg);

/*
 * Would the error of a task or body that was spawned earlier have been met
 * first, had all been done one after the other, so that it goes before this?
 */
typedef bool (*AioErrorYields) (int sqlerrcode);

/* Code that runs in the task has something to tell its creator. */
typedef void (*AioTaskHook) (void *event, void *arg);

/* What a task is allowed to do, and what its creator wants to be told. */
typedef struct AioTaskOptions
{
	/*
	 * What the task works on, for code that runs in it: a Relation, whose
	 * main fork's reads may suspend, or NULL, which stands for any
	 */
	void	   *subject;

	/* called by AioTaskTell(), but not while it runs already */
	AioTaskHook hook;

	/* task completes in spawn order among the ordered tasks of its scope */
	bool		ordered;
} AioTaskOptions;

/* Where something was done: of which scope, and when in its spawn order. */
typedef struct AioSpawnPlace
{
	uint64		scope;			/* the number of the innermost one, or 0 */
	uint64		order;
} AioSpawnPlace;

/* What has been counted since the process began. */
typedef struct AioTaskCounters
{
	uint64		scopes;
	uint64		tasks;			/* spawned */
	uint64		tasks_suspended;	/* of these, suspended at least once */
	uint64		tasks_failed;
	uint64		tasks_dropped;
	uint64		suspensions;
	uint64		blocked[AIO_SUSPEND_VERDICTS];	/* awaits that had to block,
												 * by reason */
	int			suspended;		/* tasks, at the moment */
} AioTaskCounters;

extern PGDLLIMPORT AioTaskCounters aio_task_counters;

/* the task that runs, or NULL on the backend's own stack */
extern PGDLLIMPORT AioTask *aio_current_task;

/* innermost scope of the running fiber, or NULL */
extern PGDLLIMPORT AioScope *aio_current_scope;

/*
 * developer options: suspend at each permitted read, resume in random order;
 * notice later, and in random order, what is complete
 */
#ifdef USE_ASSERT_CHECKING
extern PGDLLIMPORT bool aio_debug_suspend;
extern PGDLLIMPORT int aio_debug_seed;
extern PGDLLIMPORT int aio_debug_delay_completions;

extern void AioAssignDebugSeed(int newval, void *extra);
extern int	AioRandom(int n);
extern bool AioRandomDelay(void);
extern bool AioNothingIsSuspended(void);
#else
#define aio_debug_suspend false
#define AioRandomDelay() false
#endif

extern bool AioScopeAllowed(void);
extern void AioScopeRun(AioScopeBody body, void *arg, AioErrorYields yields);
extern uint64 AioSpawn(AioScope *scope, const AioTaskOptions *options,
					   AioTaskBody body, const void *arg, size_t arg_size);
extern void *AioSpawnPrepare(AioScope *scope);
extern uint64 AioSpawnPrepared(AioScope *scope, const AioTaskOptions *options,
							   AioTaskBody body, void *arg);
extern void AioScopeJoin(AioScope *scope);
extern void AioScopeJoinTask(AioScope *scope, uint64 task_id);
extern bool AioTaskHasTurn(void);
extern void AioAwaitTurn(void);
extern void AioTaskForbidSuspend(void);
extern AioSpawnPlace AioPlaceInSpawnOrder(void);
extern bool AioIsLaterPlace(const AioSpawnPlace *place);
extern int	AioTaskLimit(void);
extern bool AioTasksCanSuspend(void);
extern bool AioSiblingsIdle(void);
extern void AioAwaitSiblingsIdle(void);
extern void *AioTaskSubject(void);
extern void AioTaskTell(void *event);

#endif							/* AIO_TASK_H */
