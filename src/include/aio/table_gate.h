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
#include "storage/lock.h"
#include "utils/relcache.h"

/* how many gates are closed, in the whole server */
extern PGDLLIMPORT pg_atomic_uint32 *aio_gates_closed;

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
	if (mode == RowExclusiveLock &&
		unlikely(pg_atomic_read_u32(aio_gates_closed) != 0))
		AioWaitAtGate(tag);
}

#endif							/* AIO_TABLE_GATE_H */
