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

typedef struct SMgrRelationData *SMgrRelation;

#endif							/* SIMULATE_SMGR_H */
