/*-------------------------------------------------------------------------
 *
 * bufmgr.h
 *	  Stands in for upstream's header of this name; see ../postgres.h.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
extern int	NBuffers;
