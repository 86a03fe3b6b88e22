/*-------------------------------------------------------------------------
 *
 * xlog_internal.h
 *	  Stands in for upstream's header of this name; see ../postgres.h.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef SIMULATE_XLOG_INTERNAL_H
#define SIMULATE_XLOG_INTERNAL_H

#include "access/xlogdefs.h"

/* small ones, for few steps */
#define XLOG_BLCKSZ		64

#define MAXFNAMELEN		64

#define XLByteToSeg(ptr, segno, size)	((segno) = (ptr) / (size))
#define XLogSegNoOffsetToRecPtr(segno, offset, size, ptr) \
	((ptr) = (segno) * (size) + (offset))
#define XLogSegmentOffset(ptr, size)	((ptr) & ((size) - 1))
#define XLogFileName(name, tli, segno, size) \
	snprintf(name, MAXFNAMELEN, "%u/%" PRIu64, tli, segno)

#endif							/* SIMULATE_XLOG_INTERNAL_H */
