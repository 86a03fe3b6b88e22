/*-------------------------------------------------------------------------
 *
 * instr_time.h
 *	  Stands in for upstream's header of this name; see ../postgres.h.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef SIMULATE_INSTR_TIME_H
#define SIMULATE_INSTR_TIME_H

/* of the fake clock, in microseconds */
typedef struct instr_time
{
	uint64		time;
} instr_time;

extern uint64 SimClock(void);

#define INSTR_TIME_SET_CURRENT(t)	((t).time = SimClock())
#define INSTR_TIME_IS_ZERO(t)		((t).time == 0)
#define INSTR_TIME_SET_ZERO(t)		((t).time = 0)
#define INSTR_TIME_SUBTRACT(x, y)	((x).time -= (y).time)
#define INSTR_TIME_GET_MICROSEC(t)	((t).time)
#define INSTR_TIME_GET_DOUBLE(t)	((t).time / 1000000.0)

#endif							/* SIMULATE_INSTR_TIME_H */
