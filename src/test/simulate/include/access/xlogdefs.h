/*-------------------------------------------------------------------------
 *
 * xlogdefs.h
 *	  Stands in for upstream's header of this name; see ../postgres.h.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef SIMULATE_XLOGDEFS_H
#define SIMULATE_XLOGDEFS_H

typedef uint64 XLogRecPtr;
typedef uint64 XLogSegNo;
typedef uint32 TimeLineID;

#define InvalidXLogRecPtr	0

#endif							/* SIMULATE_XLOGDEFS_H */
