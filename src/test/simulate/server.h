/*-------------------------------------------------------------------------
 *
 * server.h
 *	  The little of a server that simulators run in: chance, errors that can be
 *	  caught, memory and resources that are accounted for.
 *
 * Everything random comes from one seed, so each run can be repeated.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef SIMULATE_SERVER_H
#define SIMULATE_SERVER_H

#include "postgres.h"

#include "common/pg_prng.h"
#include "utils/resowner.h"

/* classes of errors */
#define SIM_ERROR_DATA		1	/* of a row: earlier rows' errors go first */
#define SIM_ERROR_OTHER		2
#define SIM_ERROR_CANCEL	3
#define SIM_ERROR_MEMORY	4

/* raised_by of errors that are nobody's */
#define SIM_NOBODY	PG_UINT64_MAX

/* n chances in a thousand, of this generator */
static inline bool
SimChance(pg_prng_state *prng, int n)
{
	return (int) pg_prng_uint64_range(prng, 0, 999) < n;
}

static inline int
SimUpTo(pg_prng_state *prng, int n)
{
	return n <= 0 ? 0 : (int) pg_prng_uint64_range(prng, 0, n);
}

/* the run that this process makes */
extern uint64 sim_seed;
extern pg_prng_state sim_world; /* what is nobody's own: failing memory,
								 * delays */
extern bool sim_trace;
extern int	sim_memory_fails;	/* chances in a thousand */
extern int	sim_cancels;		/* likewise, at each look for interrupts */

extern void SimNote(const char *format,...) pg_attribute_printf(1, 2);

#define SIM_CHECK(condition, what) \
	((condition) ? (void) 0 : SimFail(__FILE__, __LINE__, what))

extern const ErrorData *SimCurrentError(void);
extern ResourceOwner SimOwnerMake(void);
extern void SimOwnerRelease(ResourceOwner owner, bool committed);
extern int	SimOwnerCount(ResourceOwner owner, const ResourceOwnerDesc *desc);
extern MemoryContext SimContextMake(void);
extern void SimContextDelete(MemoryContext context);

/* an option `--name N` of a simulator, which makes cases smaller */
typedef struct SimBound
{
	const char *name;
	int		   *value;			/* at first what it is without the option */
} SimBound;

extern int	SimMain(int argc, char **argv, const SimBound *bounds, int nbounds,
					void (*simulate) (uint64 seed));

#endif							/* SIMULATE_SERVER_H */
