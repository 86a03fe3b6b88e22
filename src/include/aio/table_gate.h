/*-------------------------------------------------------------------------
 *
 * table_gate.h
 *	  A table into which, for a moment, only one session writes.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AIO_TABLE_GATE_H
#define AIO_TABLE_GATE_H

#include "port/atomics.h"
#include "storage/condition_variable.h"
#include "storage/lock.h"
#include "utils/relcache.h"

/* All gates, in shared memory. */
typedef struct AioTableGates
{
	/* how many are closed; everybody who writes to a table looks at it */
	pg_atomic_uint32 closed;
	char		pad[PG_CACHE_LINE_SIZE - sizeof(pg_atomic_uint32)];

	ConditionVariable opened;	/* one of them has been */
	/* by process: database and table, or 0 */
	pg_atomic_uint64 tables[FLEXIBLE_ARRAY_MEMBER];
} AioTableGates;

/* NULL where there is no server */
extern PGDLLIMPORT AioTableGates *aio_table_gates;

extern void AioTableGateInitialize(void);
extern bool AioOthersWrite(Relation rel);
extern bool AioCloseGate(Relation rel);
extern void AioOpenGate(void);
extern bool AioGateIsMine(void);
extern void AioWaitAtGate(const LOCKTAG *tag);

/* lmgr.c: this session has got a lock on a table, for which it could wait */
static inline void
AioTableLocked(const LOCKTAG *tag, LOCKMODE mode)
{
	if (mode == RowExclusiveLock && aio_table_gates != NULL &&
		unlikely(pg_atomic_read_u32(&aio_table_gates->closed) != 0))
		AioWaitAtGate(tag);
}

#endif							/* AIO_TABLE_GATE_H */
