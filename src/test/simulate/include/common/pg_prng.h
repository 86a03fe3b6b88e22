/*-------------------------------------------------------------------------
 *
 * pg_prng.h
 *	  Stands in for upstream's header of this name; see ../postgres.h.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef SIMULATE_PG_PRNG_H
#define SIMULATE_PG_PRNG_H

typedef struct pg_prng_state
{
	uint64		state;
} pg_prng_state;

extern pg_prng_state pg_global_prng_state;

extern void pg_prng_seed(pg_prng_state *state, uint64 seed);
extern uint64 pg_prng_uint64(pg_prng_state *state);
extern uint32 pg_prng_uint32(pg_prng_state *state);
extern uint64 pg_prng_uint64_range(pg_prng_state *state, uint64 low,
								   uint64 high);

#endif							/* SIMULATE_PG_PRNG_H */
