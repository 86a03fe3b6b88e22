/*-------------------------------------------------------------------------
 *
 * smgr.h
 *	  Stands in for upstream's header of this name; see ../postgres.h.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef SIMULATE_SMGR_H
#define SIMULATE_SMGR_H

#include "storage/relfilelocator.h"

typedef struct SMgrRelationData SMgrRelationData;
typedef SMgrRelationData *SMgrRelation;

extern SMgrRelation smgropen(RelFileLocator locator, int backend);
extern BlockNumber smgrnblocks(SMgrRelation reln, ForkNumber forknum);

#endif							/* SIMULATE_SMGR_H */
