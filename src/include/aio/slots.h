/*-------------------------------------------------------------------------
 *
 * slots.h
 *	  Slots of which a process, or a server, has a fixed number, and who has
 *	  none left ends: what we take comes on top of what upstream has for
 *	  everybody.
 *
 * INVARIANT-107: an extension finds as many free slots as in PostgreSQL.  Who
 * registers one more of these counts it here.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AIO_SLOTS_H
#define AIO_SLOTS_H

#include "utils/timeout.h"

/* CacheRegisterRelcacheCallback(): policies, checks and apply's two */
#define AIO_RELCACHE_CALLBACKS	4

/* CacheRegisterSyscacheCallback(): 4 of policies, 11 of checks, 6 of apply */
#define AIO_SYSCACHE_CALLBACKS	21

/* before_shmem_exit() and on_shmem_exit(), in the process that has most */
#define AIO_EXITS	6

/*
 * RegisterTimeout(): it looks for a free one for who asks for USER_TIMEOUT, or
 * whatever is larger.  Ours begin behind MAX_TIMEOUTS, which stands for none.
 */
#define AIO_TIMEOUT_HOLD	((TimeoutId) (MAX_TIMEOUTS + 1))
#define AIO_TIMEOUT_IDLE	((TimeoutId) (MAX_TIMEOUTS + 2))
#define AIO_TIMEOUT_LOOK	((TimeoutId) (MAX_TIMEOUTS + 3))

/* with the gap */
#define AIO_TIMEOUTS	4

#define AIO_TIMEOUT_IS_OURS(id) \
	((id) > MAX_TIMEOUTS && (id) < MAX_TIMEOUTS + AIO_TIMEOUTS)

/*
 * WaitEventExtensionNew(): of commits, table gates, foreign inserts and backups
 */
#define AIO_WAIT_EVENTS	4

#endif							/* AIO_SLOTS_H */
