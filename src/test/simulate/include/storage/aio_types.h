/*-------------------------------------------------------------------------
 *
 * aio_types.h
 *	  Stands in for upstream's header of this name; see ../postgres.h.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef SIMULATE_AIO_TYPES_H
#define SIMULATE_AIO_TYPES_H

#include "storage/relfilelocator.h"

typedef struct PgAioHandle PgAioHandle;

typedef struct PgAioWaitRef
{
	PgAioHandle *handle;
	uint32		aio_index;
	uint64		generation;
} PgAioWaitRef;

typedef union PgAioTargetData
{
	struct
	{
		RelFileLocator rlocator;
		BlockNumber blockNum;
		BlockNumber nblocks;
		ForkNumber	forkNum;
		bool		is_temp;
		bool		skip_fsync;
	}			smgr;
} PgAioTargetData;

typedef enum PgAioResultStatus
{
	PGAIO_RS_UNKNOWN,
	PGAIO_RS_OK,
	PGAIO_RS_WARNING,
	PGAIO_RS_ERROR,
} PgAioResultStatus;

/* bits of error_data */
#define PGAIO_RESULT_ERROR_BITS	23

typedef struct PgAioResult
{
	int			id;
	PgAioResultStatus status;
	uint32		error_data;
	int32		result;
} PgAioResult;

typedef struct PgAioReturn
{
	PgAioResult result;
	PgAioTargetData target_data;
} PgAioReturn;

#endif							/* SIMULATE_AIO_TYPES_H */
