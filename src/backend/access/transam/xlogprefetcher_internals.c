/*-------------------------------------------------------------------------
 *
 * xlogprefetcher_internals.c
 *	  Included at the end of access/transam/xlogprefetcher.c: count blocks that
 *	  are not read ahead.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */

/*
 * A block is not read ahead, since a record before makes the page anew, or
 * since it will be read for a record before.
 */
void
AioReplayCountSkipped(bool made)
{
	XLogPrefetchIncrement(made ? &SharedStats->skip_fpw : &SharedStats->skip_rep);
}
