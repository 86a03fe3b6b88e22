/*-------------------------------------------------------------------------
 *
 * recent.c
 *	  Pages whose buffers are remembered.
 *
 * Who comes back to a page soon finds it without asking the table of all
 * buffers, and can have the processor fetch it beforehand.  The buffer may have
 * been given to another page meanwhile.
 *
 * Tests: src/test/aio/ri.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "aio/recent.h"
#include "pgstat.h"
#include "storage/buf_internals.h"
#include "storage/bufmgr.h"
#include "storage/bufpage.h"
#include "utils/rel.h"

/*
 * Pin a page of a permanent relation's main fork, and count it, as ReadBuffer()
 * does, if it still is in this buffer; but the buffer's usage count does not
 * rise.  Returns false if it is not.
 */
bool
AioPinRecent(Relation rel, BlockNumber block, Buffer buffer)
{
	Assert(!BufferIsLocal(buffer));
	if (!ReadRecentBuffer(rel->rd_locator, MAIN_FORKNUM, block, buffer))
		return false;
	pgstat_count_buffer_read(rel);
	pgstat_count_buffer_hit(rel);
	pgstat_count_io_op(IOOBJECT_RELATION, IOCONTEXT_NORMAL, IOOP_HIT, 1, 0);
	return true;
}

/* This item will be looked at soon.  Reads nothing of the page itself. */
void
AioPrefetchRecent(Buffer buffer, OffsetNumber offset)
{
	const char *page = BufferGetBlock(buffer);

	__builtin_prefetch(GetBufferDescriptor(buffer - 1), 1);
	__builtin_prefetch(page, 1);
	__builtin_prefetch(page + offsetof(PageHeaderData, pd_linp) +
					   (offset - 1) * sizeof(ItemIdData));
}
