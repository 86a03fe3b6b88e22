/*-------------------------------------------------------------------------
 *
 * aio_internals.c
 *	  Included at the end of storage/aio/aio.c: waits for an I/O are counted.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "aio/usage.h"

/*
 * Wait for an I/O, and count that.  A seam gives upstream's function another
 * name, so that every caller comes here.
 */
static void
pgaio_io_wait(PgAioHandle *ioh, uint64 ref_generation)
{
	AioBeginWait(ioh, ref_generation);
	upstream_pgaio_io_wait(ioh, ref_generation);
	AioEndWait();
}
