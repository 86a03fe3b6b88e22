/*-------------------------------------------------------------------------
 *
 * buf.h
 *	  Stands in for upstream's header of this name; see ../postgres.h.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef SIMULATE_BUF_H
#define SIMULATE_BUF_H

typedef int Buffer;

#endif							/* SIMULATE_BUF_H */
