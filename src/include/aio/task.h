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
#include "storage/buf.h"
#include "utils/relcache.h"

typedef struct AioScope AioScope;
typedef struct AioTask AioTask;

/* bytes of argument that a task keeps */
#define AIO_TASK_ARG_MAX	512

/* upper limit of aio.max_tasks, and so of stacks per backend and scope */
#define AIO_MAX_TASKS_LIMIT 1024

typedef void (*AioScopeBody) (AioScope *scope, void *arg);
typedef void (*AioTaskBody) (void *arg);

/*
 * A page of the relation that the task works on is in memory, and pinned.
 * Whether other locks are held is AioMaySuspend()'s to tell.
 */
typedef void (*AioPageHook) (Relation rel, Buffer buffer, void *arg);

/* What a task is allowed to do, and what its creator wants to be told. */
typedef struct AioTaskOptions
{
	/* reads of this relation's main fork may suspend; NULL means any */
	Relation	rel;

	/*
	 * Called for each page of rel's main fork that the task has pinned, but
	 * not for those that the hook itself asks for.
	 */
	AioPageHook page_hook;

	/* task completes in spawn order among the ordered tasks of its scope */
	bool		ordered;
} AioTaskOptions;

/* the task that runs, or NULL on the backend's own stack */
extern PGDLLIMPORT AioTask *aio_current_task;

/* innermost scope of the running flow, or NULL */
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
#else
#define aio_debug_suspend false
#endif

extern bool AioScopeAllowed(void);
extern void AioScopeRun(AioScopeBody body, void *arg);
extern void *AioScopeArg(AioScopeBody body);
extern uint64 AioSpawn(AioScope *scope, const AioTaskOptions *options,
					   AioTaskBody body, const void *arg, size_t arg_size);
extern void *AioSpawnPrepare(AioScope *scope);
extern uint64 AioSpawnPrepared(AioScope *scope, const AioTaskOptions *options,
							   AioTaskBody body, void *arg);
extern void AioScopeJoin(AioScope *scope);
extern void AioScopeJoinTask(AioScope *scope, uint64 task_id);
extern bool AioTaskIsFirstInOrder(void);
extern void AioAwaitTurn(void);
extern void AioTaskForbidSuspend(void);
extern int	AioTaskLimit(void);
extern bool AioErrorIsAboutRow(int sqlerrcode);
extern void AioCleanUpAfterError(uint32 holdoff, uint32 cancel_holdoff);

#endif							/* AIO_TASK_H */
