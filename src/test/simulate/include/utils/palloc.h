/*-------------------------------------------------------------------------
 *
 * palloc.h
 *	  Stands in for upstream's header of this name; see ../postgres.h.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef SIMULATE_PALLOC_H
#define SIMULATE_PALLOC_H

typedef struct MemoryContextData *MemoryContext;

#define MCXT_ALLOC_NO_OOM	1
#define MCXT_ALLOC_ZERO		2

extern MemoryContext CurrentMemoryContext;
extern MemoryContext TopMemoryContext;

extern void *MemoryContextAlloc(MemoryContext context, Size size);
extern void *MemoryContextAllocZero(MemoryContext context, Size size);
extern void *MemoryContextAllocExtended(MemoryContext context, Size size,
										int flags);
extern void *palloc(Size size);
extern void pfree(void *pointer);
extern char *psprintf(const char *format,...) pg_attribute_printf(1, 2);

static inline MemoryContext
MemoryContextSwitchTo(MemoryContext context)
{
	MemoryContext old = CurrentMemoryContext;

	CurrentMemoryContext = context;
	return old;
}

#endif							/* SIMULATE_PALLOC_H */
