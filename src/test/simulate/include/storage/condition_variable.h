/*-------------------------------------------------------------------------
 *
 * condition_variable.h
 *	  Stands in for upstream's header of this name; see ../postgres.h.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef SIMULATE_CONDITION_VARIABLE_H
#define SIMULATE_CONDITION_VARIABLE_H

typedef struct ConditionVariable
{
	uint32		waiters;		/* a bit for each process */
} ConditionVariable;

extern void ConditionVariablePrepareToSleep(ConditionVariable *cv);
extern void ConditionVariableSleep(ConditionVariable *cv);
extern bool ConditionVariableTimedSleep(ConditionVariable *cv, uint64 timeout);
extern void ConditionVariableCancelSleep(void);
extern void ConditionVariableBroadcast(ConditionVariable *cv);

#endif							/* SIMULATE_CONDITION_VARIABLE_H */
