/*-------------------------------------------------------------------------
 *
 * wait_event.h
 *	  Stands in for upstream's header of this name; see ../postgres.h.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef SIMULATE_WAIT_EVENT_H
#define SIMULATE_WAIT_EVENT_H

#define WAIT_EVENT_DATA_FILE_TRUNCATE	2

extern uint32 *my_wait_event_info;

static inline uint32
WaitEventExtensionNew(const char *name)
{
	return 1;
}

static inline void
pgstat_report_wait_start(uint32 event)
{
	*my_wait_event_info = event;
}

static inline void
pgstat_report_wait_end(void)
{
	*my_wait_event_info = 0;
}

#endif							/* SIMULATE_WAIT_EVENT_H */
