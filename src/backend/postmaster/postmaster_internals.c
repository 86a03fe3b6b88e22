/*-------------------------------------------------------------------------
 *
 * postmaster_internals.c
 *	  Included at the end of postmaster/postmaster.c: it waits for I/O of
 *	  children that are gone, in its loop.
 *
 * Why, is in src/backend/aio/io/earlier_life.c.
 *
 * Tests: src/test/aio/io_method/t/004_in_flight.pl.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "aio/io_method.h"

/*
 * ServerLoop(): for how long to sleep, in ms; 'ms' if there is no I/O to wait
 * for.  Nobody tells when that is complete.
 */
int
AioPostmasterSleep(int ms)
{
	if (AioLookAgain() < 0)
		return ms;
	PostmasterStateMachine();

	/* it may have gone on, or have ended the postmaster */
	return Min(Max(AioLookAgain(), 0), ms);
}

/* Has it been told to, before it is in its loop? */
bool
AioPostmasterIsToStop(void)
{
	return pending_pm_shutdown_request;
}
