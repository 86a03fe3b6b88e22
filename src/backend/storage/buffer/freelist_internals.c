/*-------------------------------------------------------------------------
 *
 * freelist_internals.c
 *	  Included at the end of storage/buffer/freelist.c: account for victims
 *	  that write_behind.c has chosen.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "aio/write.h"

/* A victim has been taken; the background writer goes by how many there are. */
void
AioCountBufferAlloc(void)
{
	pg_atomic_fetch_add_u32(&StrategyControl->numBufferAllocs, 1);
}

/*
 * These buffers are being written together with the ring's last victim: as far
 * as they follow it in the ring, do not try to use them now.  Returns how many
 * do.
 */
int
AioPassOverInRing(BufferAccessStrategy strategy, const Buffer *buffers, int n)
{
	for (int i = 0; i < n; i++)
	{
		int			next = (strategy->current + 1) % strategy->nbuffers;

		if (strategy->buffers[next] != buffers[i])
			return i;
		strategy->current = next;
	}
	return n;
}
