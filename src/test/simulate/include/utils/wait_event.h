/*-------------------------------------------------------------------------
 *
 * wait_event.h
 *	  Stands in for upstream's header of this name; see ../postgres.h.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
extern uint32 *my_wait_event_info;
