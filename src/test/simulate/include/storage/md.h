/*-------------------------------------------------------------------------
 *
 * md.h
 *	  Stands in for upstream's header of this name; see ../postgres.h.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef SIMULATE_MD_H
#define SIMULATE_MD_H

#include "storage/smgr.h"

extern int	mdfd(SMgrRelation reln, ForkNumber forknum, BlockNumber block,
				 uint32 *offset);

#endif							/* SIMULATE_MD_H */
