/*-------------------------------------------------------------------------
 *
 * spin.h
 *	  Stands in for upstream's header of this name; see ../postgres.h.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef SIMULATE_SPIN_H
#define SIMULATE_SPIN_H

struct SimProcess;

typedef struct SimProcess *slock_t;

extern void SpinLockAcquire(slock_t *lock);
extern void SpinLockRelease(slock_t *lock);

static inline void
SpinLockInit(slock_t *lock)
{
	*lock = NULL;
}

#endif							/* SIMULATE_SPIN_H */
