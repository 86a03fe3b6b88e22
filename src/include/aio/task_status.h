/*-------------------------------------------------------------------------
 *
 * task_status.h
 *	  The status of suspended tasks in shared memory: what they await.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AIO_TASK_STATUS_H
#define AIO_TASK_STATUS_H

#include "access/xlogdefs.h"
#include "aio/task.h"
#include "portability/instr_time.h"
#include "storage/aio_types.h"
#include "storage/block.h"
#include "storage/relfilelocator.h"

/* bytes of a future's name that are shown, with the terminator */
#define AIO_AWAITS_LENGTH	16

/* One suspended task. */
typedef struct AioTaskStatus
{
	int			pid;
	uint64		scope;			/* numbered by the process */
	uint64		task;			/* numbered in its scope */
	Oid			relation;		/* that it works on, or InvalidOid */
	char		awaits[AIO_AWAITS_LENGTH];
	PgAioWaitRef io;			/* that it awaits; need not be valid */
	XLogRecPtr	lsn;			/* to be flushed, or InvalidXLogRecPtr */
	instr_time	since;
} AioTaskStatus;

/* Which blocks an I/O is about. */
typedef struct AioBlocks
{
	RelFileLocator locator;
	ForkNumber	forknum;
	BlockNumber first;
	int			nblocks;
} AioBlocks;

extern void AioTaskStatusInitialize(void);
extern int	AioTaskStatusAcquire(void);
extern void AioTaskStatusRelease(int slot);
extern void AioTaskStatusSet(int slot, const AioTaskStatus *status);
extern void AioTaskStatusClear(int slot);
extern int	AioTaskStatusSlots(void);
extern bool AioTaskStatusRead(int n, AioTaskStatus *status);
extern bool AioBlocksOf(const PgAioWaitRef *io, AioBlocks *blocks);

#endif							/* AIO_TASK_STATUS_H */
