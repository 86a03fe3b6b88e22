/*-------------------------------------------------------------------------
 *
 * xact.h
 *	  Stands in for upstream's header of this name; see ../postgres.h.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef SIMULATE_XACT_H
#define SIMULATE_XACT_H

typedef enum XactEvent
{
	XACT_EVENT_ABORT,
	XACT_EVENT_PARALLEL_ABORT,
} XactEvent;

typedef enum SubXactEvent
{
	SUBXACT_EVENT_ABORT_SUB,
} SubXactEvent;

typedef uint32 SubTransactionId;

/* nobody begins bulk writes, for which these are called */
static inline void
RegisterXactCallback(void (*callback) (XactEvent event, void *arg), void *arg)
{
}

static inline void
RegisterSubXactCallback(void (*callback) (SubXactEvent event,
										  SubTransactionId subxact,
										  SubTransactionId parent, void *arg),
						void *arg)
{
}

static inline int
GetCurrentTransactionNestLevel(void)
{
	return 1;
}

#endif							/* SIMULATE_XACT_H */
