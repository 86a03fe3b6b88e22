/*-------------------------------------------------------------------------
 *
 * buf_internals.h
 *	  Stands in for upstream's header of this name; see ../postgres.h.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef SIMULATE_BUF_INTERNALS_H
#define SIMULATE_BUF_INTERNALS_H

typedef struct WritebackContext WritebackContext;

#endif							/* SIMULATE_BUF_INTERNALS_H */
