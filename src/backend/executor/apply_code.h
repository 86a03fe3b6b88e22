/*-------------------------------------------------------------------------
 *
 * apply_code.h
 *	  What rows run that logical replication applies.  Private to
 *	  src/backend/executor.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AIO_APPLY_CODE_H
#define AIO_APPLY_CODE_H

#include "utils/relcache.h"

/* When does a row of a table run code that may take any time? */
typedef enum AioRowCode
{
	AIO_ROW_RUNS_NOTHING,
	AIO_ROW_RUNS_LATE,			/* while upstream has the table's indexes
								 * locked, too */
	AIO_ROW_RUNS_EARLY,			/* before that */
} AioRowCode;

extern AioRowCode AioApplyRowCode(Relation rel);

#endif							/* AIO_APPLY_CODE_H */
