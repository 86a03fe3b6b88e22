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

#define InvalidBuffer		0
#define BufferIsLocal(buffer)	((buffer) < 0)

typedef struct BufferAccessStrategyData *BufferAccessStrategy;

#endif							/* SIMULATE_BUF_H */
