/*-------------------------------------------------------------------------
 *
 * preallocate.h
 *	  Preallocation: space for a relation that grows, before it is needed.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AIO_PREALLOCATE_H
#define AIO_PREALLOCATE_H

#include "storage/aio.h"
#include "storage/aio_internal.h"
#include "storage/buf.h"
#include "storage/fd.h"
#include "storage/smgr.h"
#include "utils/rel.h"

/* aio.preallocation_size: most blocks for one relation; 0 is none */
extern PGDLLIMPORT int aio_preallocation_size;

extern const PgAioHandleCallbacks aio_preallocate_cb;

/* this session uses preallocated space */
extern PGDLLIMPORT bool aio_preallocation_used;

/* preallocate.c, called by seams */
extern int	AioPerformFallocate(PgAioHandle *ioh);
extern void AioBeginCut(const RelFileLocator *locator, ForkNumber forknum);

/* preallocate_extend.c, likewise */
extern void AioLockForExtension(Relation rel, ForkNumber forknum,
								uint32 nblocks);
extern void AioBeforeExtensionUnlock(void);
extern int	AioFallocate(SMgrRelation reln, ForkNumber forknum,
						 BlockNumber block, File file, off_t offset,
						 off_t amount, uint32 wait_event_info);
extern int	AioFileZero(SMgrRelation reln, ForkNumber forknum,
						BlockNumber block, File file, off_t offset,
						off_t amount, uint32 wait_event_info);
extern int	AioFileExtend(SMgrRelation reln, ForkNumber forknum, File file,
						  const void *buffer, size_t amount, off_t offset,
						  uint32 wait_event_info);
extern void AioEndPreallocation(void);

/* preallocate_recovery.c, likewise */
extern PGDLLIMPORT bool aio_preallocated_in_recovery;
extern void AioGiveBackInRecovery(bool all);

/* preallocate_trim.c, likewise */
extern void AioTableVacuumed(Relation rel);

/* trim.c, likewise */
extern void AioEndFileChange(void);
extern void AioSettleTrimsOf(Oid database);
extern bool AioTrimWanted(void);

/* method_io_uring_internals.c, called by a seam */
struct io_uring_sqe;
extern void AioUringFallocate(PgAioHandle *ioh, struct io_uring_sqe *sqe);

/*
 * How much an operation allocates.  Its I/O vector says so, whose length is 0
 * for all who look for memory in it.
 */
static inline Size
AioFallocateBytes(const PgAioHandle *ioh)
{
	Assert(ioh->op == AIO_OP_FALLOCATE);
	return pgaio_ctl->iovecs[ioh->iovec_off].iov_len;
}

/* preallocate_extend.c */
extern void AioPreallocationInitialize(void);
extern void AioJoinPreallocation(Relation rel);

#endif							/* AIO_PREALLOCATE_H */
