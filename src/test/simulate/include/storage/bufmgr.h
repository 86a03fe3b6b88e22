/*-------------------------------------------------------------------------
 *
 * bufmgr.h
 *	  Stands in for upstream's header of this name; see ../postgres.h.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef SIMULATE_BUFMGR_H
#define SIMULATE_BUFMGR_H

#include "storage/aio_types.h"
#include "storage/buf.h"
#include "utils/relcache.h"

#define MAX_IO_COMBINE_LIMIT		8
#define READ_BUFFERS_SYNCHRONOUSLY	1

/* a page, as far as a simulator has one */
typedef char *Page;

typedef struct ReadBuffersOperation
{
	Relation	rel;
	int			flags;
	Buffer		buffer;
	bool		done;			/* nothing has to be read any more */
	PgAioWaitRef io_wref;
	PgAioReturn io_return;
} ReadBuffersOperation;

extern int	NBuffers;
extern int	io_combine_limit;

extern bool BufferIsValid(Buffer buffer);
extern Page BufferGetBlock(Buffer buffer);
extern uint64 BufferGetLSNAtomic(Buffer buffer);
extern void PageSetChecksumInplace(Page page, BlockNumber block);
extern int	GetAccessStrategyBufferCount(BufferAccessStrategy strategy);

#endif							/* SIMULATE_BUFMGR_H */
