/*-------------------------------------------------------------------------
 *
 * miscadmin.h
 *	  Stands in for upstream's header of this name; see postgres.h.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef SIMULATE_MISCADMIN_H
#define SIMULATE_MISCADMIN_H

#define INVALID_PROC_NUMBER	(-1)

extern volatile uint32 InterruptHoldoffCount;
extern volatile uint32 QueryCancelHoldoffCount;
extern volatile uint32 CritSectionCount;
extern bool enableFsync;
extern int	MyProcPid;
extern int	MyProcNumber;
extern int	MaxBackends;

extern bool AmStartupProcess(void);
extern bool AmCheckpointerProcess(void);
extern bool AmBackgroundWriterProcess(void);

extern void SimCheckForInterrupts(void);

#define CHECK_FOR_INTERRUPTS()	SimCheckForInterrupts()
#define HOLD_INTERRUPTS()		(InterruptHoldoffCount++)
#define RESUME_INTERRUPTS() \
	do { Assert(InterruptHoldoffCount > 0); InterruptHoldoffCount--; } while (0)

#define START_CRIT_SECTION()	(CritSectionCount++)
#define END_CRIT_SECTION() \
	do { Assert(CritSectionCount > 0); CritSectionCount--; } while (0)

#endif							/* SIMULATE_MISCADMIN_H */
