/*-------------------------------------------------------------------------
 *
 * recent.h
 *	  Pages whose buffers are remembered.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AIO_RECENT_H
#define AIO_RECENT_H

#include "storage/block.h"
#include "storage/buf.h"
#include "storage/off.h"
#include "utils/relcache.h"

/* recent.c */
extern bool AioPinRecent(Relation rel, BlockNumber block, Buffer buffer);
extern void AioPrefetchRecent(Buffer buffer, OffsetNumber offset);

#endif							/* AIO_RECENT_H */
