/*-------------------------------------------------------------------------
 *
 * proc.h
 *	  Stands in for upstream's header of this name; see ../postgres.h.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef SIMULATE_PROC_H
#define SIMULATE_PROC_H

#define NUM_AUXILIARY_PROCS	2

typedef struct PGPROC
{
	int			pid;
} PGPROC;

extern PGPROC *GetPGProcByNumber(int number);

#endif							/* SIMULATE_PROC_H */
