/*-------------------------------------------------------------------------
 *
 * relfilelocator.h
 *	  Stands in for upstream's header of this name; see ../postgres.h.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef SIMULATE_RELFILELOCATOR_H
#define SIMULATE_RELFILELOCATOR_H

typedef Oid RelFileNumber;
typedef uint32 BlockNumber;

typedef enum ForkNumber
{
	InvalidForkNumber = -1,
	MAIN_FORKNUM,
} ForkNumber;

typedef struct RelFileLocator
{
	Oid			spcOid;
	Oid			dbOid;
	RelFileNumber relNumber;
} RelFileLocator;

static inline bool
RelFileLocatorEquals(RelFileLocator one, RelFileLocator other)
{
	return one.relNumber == other.relNumber && one.dbOid == other.dbOid &&
		one.spcOid == other.spcOid;
}

#endif							/* SIMULATE_RELFILELOCATOR_H */
