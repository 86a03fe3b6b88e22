/*-------------------------------------------------------------------------
 *
 * ri_ring.h
 *	  What will be checked next, in order, and how far it has been looked up.
 *	  Private to src/backend/executor.
 *
 * Whatever is ahead is in the ring from when it is looked up until it is due.
 * All members have made a first step, and those in the nearer half of the
 * window have made all.  They are counted from the first one on, so that
 * differences tell distances.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AIO_RI_RING_H
#define AIO_RI_RING_H

#include "port/pg_bitutils.h"
#include "utils/palloc.h"

typedef struct AioRiRing
{
	char	   *members;		/* NULL: there is no room yet */
	Size		size;			/* of each */
	uint32		room;			/* a power of 2 */
	uint32		first;			/* the next one that is due; counted, */
	uint32		end;			/* like the end, */
	uint32		ndone;			/* and the first that has a step to make */
} AioRiRing;

/* Have room for so many, at least; it is kept if there is some. */
static inline void
AioRiMakeRoom(AioRiRing *ring, int members, Size size, MemoryContext context)
{
	if (ring->members != NULL)
		return;
	ring->size = size;
	ring->room = pg_nextpower2_32(members);
	ring->members = MemoryContextAllocZero(context, ring->room * size);
}

static inline void *
AioRiMember(const AioRiRing *ring, uint32 i)
{
	return ring->members + (i % ring->room) * ring->size;
}

static inline uint32
AioRiAheadOf(const AioRiRing *ring)
{
	return ring->end - ring->first;
}

/* How many of the members are near, while the window is so wide. */
static inline uint32
AioRiNear(uint32 distance)
{
	return distance / 2 + 1;
}

/* Has the first member that has a step to make come near? */
static inline bool
AioRiStepIsDue(const AioRiRing *ring, uint32 distance)
{
	return ring->ndone != ring->end &&
		ring->ndone - ring->first < AioRiNear(distance);
}

/* What is at the end becomes a member. */
static inline void
AioRiAdd(AioRiRing *ring, bool done)
{
	if (done && ring->ndone == ring->end)
		ring->ndone++;
	ring->end++;
}

/* The first member is due. */
static inline void
AioRiPass(AioRiRing *ring)
{
	if (ring->ndone == ring->first)
		ring->ndone++;
	ring->first++;
}

/*
 * Is it time to look at others, if there are more, or to make steps that are
 * left?  Both are done for a part of the window at a time.
 */
static inline bool
AioRiIsToLookAhead(const AioRiRing *ring, uint32 distance, bool more)
{
	uint32		at_a_time = (distance + 7) / 8;

	if (more)
		return AioRiAheadOf(ring) + at_a_time <= distance;
	return ring->ndone != ring->end &&
		ring->ndone - ring->first + at_a_time <= Max(distance / 2, at_a_time);
}

#endif							/* AIO_RI_RING_H */
