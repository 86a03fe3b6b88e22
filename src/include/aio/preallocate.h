/*-------------------------------------------------------------------------
 *
 * preallocate.h
 *	  Space for a relation that grows, allocated before it is needed.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AIO_EXTEND_H
#define AIO_EXTEND_H

#include "storage/aio.h"
#include "storage/aio_internal.h"
#include "storage/buf.h"
#include "storage/fd.h"
#include "storage/smgr.h"
#include "utils/rel.h"

/* aio.extend_ahead: largest reserve of one relation, in blocks; 0 is none */
extern PGDLLIMPORT int aio_extend_ahead;

extern const PgAioHandleCallbacks aio_extend_cb;

/* this session uses a reserve */
extern PGDLLIMPORT bool aio_reserves_used;

/* preallocate.c, called by seams */
extern void AioLockForExtension(Relation rel, ForkNumber forknum,
								uint32 nblocks);
extern void AioBeforeExtensionUnlock(void);
extern int	AioFallocate(SMgrRelation reln, ForkNumber forknum,
						 BlockNumber block, File file, off_t offset,
						 off_t amount, uint32 wait_event_info);
extern int	AioFileZero(SMgrRelation reln, ForkNumber forknum,
						BlockNumber block, File file, off_t offset,
						off_t amount, uint32 wait_event_info);
extern void AioForgetReserve(const RelFileLocator *locator,
							 ForkNumber forknum);
extern void AioLeaveReserves(void);
extern void AioTableVacuumed(Relation rel);
extern int	AioPerformFallocate(PgAioHandle *ioh);

/* src/backend/aio/io/method_io_uring_internals.c, called by a seam */
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

/* preallocate.c */
extern void AioExtendInitialize(void);
extern void AioJoinReserve(Relation rel);

#endif							/* AIO_EXTEND_H */
