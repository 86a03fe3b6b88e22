/*-------------------------------------------------------------------------
 *
 * sync.h
 *	  Stands in for upstream's header of this name; see ../postgres.h.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef SIMULATE_SYNC_H
#define SIMULATE_SYNC_H

#include "common/relpath.h"

#define SYNC_HANDLER_MD	0
#define SYNC_REQUEST	0

typedef struct FileTag
{
	int16_t		handler;
	int16_t		forknum;
	RelFileLocator rlocator;
	uint64		segno;
} FileTag;

extern bool RegisterSyncRequest(const FileTag *tag, int type,
								bool retry_on_error);

#endif							/* SIMULATE_SYNC_H */
