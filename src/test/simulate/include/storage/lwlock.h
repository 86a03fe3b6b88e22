/*-------------------------------------------------------------------------
 *
 * lwlock.h
 *	  Stands in for upstream's header of this name; see ../postgres.h.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef SIMULATE_LWLOCK_H
#define SIMULATE_LWLOCK_H

#include "port/atomics.h"

struct SimProcess;

typedef enum LWLockMode
{
	LW_EXCLUSIVE,
	LW_SHARED,
} LWLockMode;

typedef struct LWLock
{
	struct SimProcess *owner;	/* who has it exclusively */
	uint32		sharers;		/* a bit for each process that shares it */
} LWLock;

extern LWLock *const WALWriteLock;

extern void LWLockAcquire(LWLock *lock, LWLockMode mode);
extern bool LWLockConditionalAcquire(LWLock *lock, LWLockMode mode);
extern bool LWLockAcquireOrWait(LWLock *lock, LWLockMode mode);
extern void LWLockRelease(LWLock *lock);
extern bool LWLockHeldByMe(LWLock *lock);
extern bool LWLockAnyHeldByMe(LWLock *lock, int nlocks, size_t stride);
extern void LWLockReleaseAll(void);
extern bool LWLockHeldByMeInMode(LWLock *lock, LWLockMode mode);
extern bool LWLockWaitForVar(LWLock *lock, pg_atomic_uint64 *var, uint64 old,
							 uint64 *now);

static inline void
LWLockInitialize(LWLock *lock, int tranche)
{
	lock->owner = NULL;
	lock->sharers = 0;
}

static inline int
LWLockNewTrancheId(void)
{
	return 0;
}

static inline void
LWLockRegisterTranche(int tranche, const char *name)
{
}

#endif							/* SIMULATE_LWLOCK_H */
