/*-------------------------------------------------------------------------
 *
 * condition_variable_internals.c
 *	  Included at the end of storage/lmgr/condition_variable.c: is a sleep on
 *	  one prepared?
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "aio/write.h"

uint64		aio_nsleeps = 0;

/* Has this process prepared to sleep on a condition variable? */
bool
AioPreparedToSleep(void)
{
	return cv_sleep_target != NULL;
}
