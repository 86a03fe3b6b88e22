/*-------------------------------------------------------------------------
 *
 * orphan.c
 *	  Ending a process that finds that the postmaster has died, but cannot exit
 *	  in order where it is.
 *
 * Upstream hardly waits for events in critical sections, or while a
 * transaction or a process ends.  We do, for I/O.  A process that ended in
 * order there would abort a transaction whose commit is in the WAL, give back
 * locks on what it has half changed, or leave an abort half done and go on as
 * if there were no transaction.  One that simply ended would keep its locks
 * forever, and others that wait for them would keep a new postmaster from
 * starting.
 *
 * Tests: src/test/aio/wal/t/003_crash.pl, src/test/aio/wal/t/004_kill.pl,
 * src/test/aio/io_method/t/003_orphans.pl.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <signal.h>
#include <unistd.h>

#include "access/xact.h"
#include "aio/server.h"
#include "miscadmin.h"
#include "storage/aio.h"
#include "storage/aio_internal.h"
#include "storage/ipc.h"
#include "storage/pmsignal.h"
#include "storage/proc.h"

/*
 * May this process end in order?  Not while a transaction ends, nor if it ends
 * already: proc_exit() would pass over what it is at.
 */
static bool
can_end_in_order(void)
{
	return CritSectionCount == 0 && !proc_exit_inprogress &&
		(IsTransactionState() || !IsTransactionOrTransactionBlock());
}

/*
 * WaitEventSetWait(): the postmaster has died, and the caller wants to exit
 * then.  If it cannot, do what the postmaster would do if it saw a process
 * crash: no other process survives.  Does not return.
 */
void
AioExitWithoutPostmaster(void)
{
	Assert(IsUnderPostmaster);
	if (can_end_in_order())
	{
		/* who waits for a read of the same page has taken one for its own */
		if (pgaio_my_backend != NULL && pgaio_my_backend->handed_out_io != NULL)
			pgaio_io_release(pgaio_my_backend->handed_out_io);
		proc_exit(1);
	}

	/*
	 * Others may be doing the same, and all of them have to finish it.  Who
	 * has been killed is still listed; its number could belong to somebody
	 * else by now, as with any signal that PostgreSQL sends by it.
	 */
	pqsignal(SIGQUIT, SIG_IGN);
	SetQuitSignalReason(PMQUIT_FOR_CRASH);
	for (uint32 i = 0; i < ProcGlobal->allProcCount; i++)
	{
		int			pid = *(volatile int *) &ProcGlobal->allProcs[i].pid;

		if (pid != 0 && pid != MyProcPid)
			kill(pid, SIGQUIT);
	}
	_exit(2);
}
