/*-------------------------------------------------------------------------
 *
 * pgstat.h
 *	  Stands in for upstream's header of this name; see ../postgres.h.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef SIMULATE_PGSTAT_H
#define SIMULATE_PGSTAT_H

#include "portability/instr_time.h"
#include "utils/wait_event.h"

typedef enum IOObject
{
	IOOBJECT_RELATION,
} IOObject;

typedef enum IOContext
{
	IOCONTEXT_NORMAL,
	IOCONTEXT_BULKREAD,
} IOContext;

typedef enum IOOp
{
	IOOP_WRITE,
} IOOp;

typedef struct PgStat_CheckpointerStats
{
	uint64		buffers_written;
} PgStat_CheckpointerStats;

typedef struct BufferUsage
{
	uint64		shared_blks_written;
} BufferUsage;

extern PgStat_CheckpointerStats PendingCheckpointerStats;
extern BufferUsage pgBufferUsage;
extern bool track_io_timing;

static inline instr_time
pgstat_prepare_io_time(bool track)
{
	instr_time	none = {0};

	return none;
}

static inline void
pgstat_count_io_op_time(IOObject object, IOContext context, IOOp op,
						instr_time start, uint32 count, uint64 bytes)
{
}

#endif							/* SIMULATE_PGSTAT_H */
