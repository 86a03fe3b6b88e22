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

typedef struct RelFileLocator
{
	Oid			spcOid;
} RelFileLocator;

#endif							/* SIMULATE_RELFILELOCATOR_H */
