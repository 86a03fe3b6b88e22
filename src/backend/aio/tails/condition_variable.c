/*-------------------------------------------------------------------------
 *
 * condition_variable.c
 *	  Tail of storage/lmgr/condition_variable.c: is a sleep on one prepared?
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "aio/write.h"

/* Has this process prepared to sleep on a condition variable? */
bool
AioPreparedToSleep(void)
{
	return cv_sleep_target != NULL;
}
