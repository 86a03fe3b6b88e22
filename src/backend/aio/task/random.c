/*-------------------------------------------------------------------------
 *
 * random.c
 *	  Developer options: random scheduling, or one that a seed repeats.
 *
 * Which task is resumed first, and when a completion is processed, depends on
 * disks and on other processes, so results must not depend on it.  The options
 * here vary it from run to run, or, with a seed, repeat it as far as disks
 * allow.
 *
 * Errors:    none are raised.
 * Tests:     src/test/aio/core, src/test/aio/load/t/004_delayed.pl.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#ifdef USE_ASSERT_CHECKING

#include "common/pg_prng.h"
#include "task_internal.h"

/* aio.debug_suspend, aio.debug_seed, aio.debug_delay_completions */
bool		aio_debug_suspend = false;
int			aio_debug_seed = 0;
int			aio_debug_delay_completions = 0;

static pg_prng_state seeded;

/* aio.debug_seed is being set: the order begins anew. */
void
AioAssignDebugSeed(int newval, void *extra)
{
	pg_prng_seed(&seeded, newval);
}

/* A number from 0 to 'n' - 1. */
int
AioRandom(int n)
{
	Assert(n > 0);
	return (int) pg_prng_uint64_range(aio_debug_seed == 0 ?
									  &pg_global_prng_state : &seeded,
									  0, n - 1);
}

/*
 * With aio.debug_delay_completions: is something that is complete to be
 * treated as not complete, this time?  It returns false in the end.
 */
bool
AioRandomDelay(void)
{
	return unlikely(aio_debug_delay_completions > 0) &&
		AioRandom(aio_debug_delay_completions + 1) > 0;
}

#endif							/* USE_ASSERT_CHECKING */
