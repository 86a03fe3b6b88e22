/*-------------------------------------------------------------------------
 *
 * preallocate_internal.h
 *	  What preallocation shares among its files.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AIO_PREALLOCATE_INTERNAL_H
#define AIO_PREALLOCATE_INTERNAL_H

#include <sys/stat.h>

#include "aio/preallocate.h"

/* fewer blocks than this are not preallocated */
#define MIN_PREALLOCATION	128

/*
 * a transaction, or recovery, extends a fork by so many blocks before any are
 * preallocated
 */
#define BLOCKS_BEFORE_PREALLOCATION	64

/* the preallocation of a fork, in shared memory */
typedef struct AioPreallocationSlot AioPreallocationSlot;

/* preallocate.c */
extern void AioSharePreallocations(void);
extern bool AioCanHavePreallocation(Relation rel);
extern bool AioCannotPreallocateIn(Oid tablespace);
extern bool AioHasPreallocation(const RelFileLocator *locator,
								ForkNumber forknum);
extern AioPreallocationSlot *AioAttachPreallocation(const RelFileLocator *locator,
													ForkNumber forknum);
extern bool AioDetachPreallocation(AioPreallocationSlot *slot,
								   PgAioWaitRef *requested);
extern bool AioTryToDetach(AioPreallocationSlot *slot, PgAioWaitRef *requested,
						   bool *unused);
extern void AioRequestPreallocation(AioPreallocationSlot *slot,
									SMgrRelation reln, ForkNumber forknum,
									PgAioWaitRef *started);
extern void AioWaitForSpace(AioPreallocationSlot *slot, uint32 nblocks);
extern bool AioHasSpace(AioPreallocationSlot *slot, BlockNumber limit);
extern bool AioIsEnd(AioPreallocationSlot *slot, BlockNumber block);
extern void AioSetEnd(AioPreallocationSlot *slot, BlockNumber limit,
					  uint32 nblocks);

extern bool AioPreallocationIsDone(AioPreallocationSlot *slot,
								   PgAioWaitRef *requested);
extern void AioForgetPreallocation(const RelFileLocator *locator,
								   ForkNumber forknum);
extern void AioWantTrim(const RelFileLocator *locator, ForkNumber forknum);

/* trim.c */
extern void AioShareTrims(void);
extern bool AioAskForTrim(const RelFileLocator *locator, ForkNumber forknum);
extern void AioBeginFileChange(const RelFileLocator *locator,
							   ForkNumber forknum, bool take_back);
extern bool AioTakeBackTrims(const RelFileLocator *locator, ForkNumber forknum);
extern bool AioUnfilledSegment(const char *path, int *number, char *segment,
							   struct stat *file);

/* preallocate_recovery.c */
extern AioPreallocationSlot *AioSlotInRecovery(SMgrRelation reln,
											   ForkNumber forknum,
											   BlockNumber block,
											   uint32 nblocks);

#endif							/* AIO_PREALLOCATE_INTERNAL_H */
