/*-------------------------------------------------------------------------
 *
 * orphan.c
 *	  How a process ends that finds, in a critical section, that the
 *	  postmaster has died.
 *
 * Upstream hardly waits for events in critical sections.  We do, for I/O, also
 * while a transaction commits.  A process that ended in order there would
 * abort a transaction whose commit is in the WAL, and give back locks on what
 * it has half changed.  One that just ended would keep those locks for ever,
 * and others that wait for them would keep a new postmaster from starting.
 *
 * Tests: src/test/aio/t/020_wal_crash.pl, src/test/aio/t/022_wal_kill.pl.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <signal.h>
#include <unistd.h>

#include "aio/seams.h"
#include "miscadmin.h"
#include "storage/ipc.h"
#include "storage/pmsignal.h"
#include "storage/proc.h"

/*
 * WaitEventSetWait(): the postmaster has died, and the caller wants to exit
 * then.  In a critical section, do what the postmaster would do if it saw a
 * process crash: no other process survives.  Does not return.
 */
void
AioExitWithoutPostmaster(void)
{
	if (CritSectionCount == 0)
		proc_exit(1);

	/* others may be doing the same, and all of them have to finish it */
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
