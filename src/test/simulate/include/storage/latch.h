/*-------------------------------------------------------------------------
 *
 * latch.h
 *	  Stands in for upstream's header of this name; see ../postgres.h.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef SIMULATE_LATCH_H
#define SIMULATE_LATCH_H

typedef struct Latch
{
	bool		is_set;
} Latch;

extern Latch *MyLatch;

extern void SetLatch(Latch *latch);

#endif							/* SIMULATE_LATCH_H */
