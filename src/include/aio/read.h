/*-------------------------------------------------------------------------
 *
 * read.h
 *	  Buffer reads as futures, and what they share with writes.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AIO_READ_H
#define AIO_READ_H

#include "aio/future.h"
#include "aio/task.h"
#include "storage/aio_types.h"
#include "storage/bufmgr.h"
#include "storage/smgr.h"
#include "utils/relcache.h"

/*
 * Completion of one AIO, of this backend or of another one.  Lives on the
 * awaiting task's stack.
 */
typedef struct AioIOFuture
{
	AioFuture	future;			/* must be first */
	PgAioWaitRef wref;
	int			io_context;		/* for pg_stat_io, or AIO_IO_NOT_COUNTED */
} AioIOFuture;

/*
 * What AioTaskTell() passes to a task's hook about the main fork of the
 * relation that the task works on.  Pages for which the hook itself asks are
 * not told.
 *
 * If the buffer is valid, a page is in memory, and pinned.  Whether other locks
 * are held is AioMaySuspend()'s to tell.
 *
 * Otherwise a search in a btree is going to read a leaf, and has a lock on the
 * leaf's parent.  If the hook sets 'end', the search finds nothing.
 */
typedef struct AioPageEvent
{
	Relation	rel;
	Buffer		buffer;
	BlockNumber leaf;
	bool		end;
} AioPageEvent;

/* somebody else has counted that I/O, or will */
#define AIO_IO_NOT_COUNTED	(-1)

/* What has become of a page that is wanted. */
typedef enum AioReadAheadResult
{
	AIO_READ_AHEAD_HERE,		/* it was in memory, or being read, or will be
								 * read in no time (quick_io.c) */
	AIO_READ_AHEAD_BEGUN,		/* it is being read now */
	AIO_READ_AHEAD_FULL,		/* as much is in flight as may be */
} AioReadAheadResult;

/* Neighbouring pages of a relation's main fork that are going to be read. */
typedef struct AioWantedPages
{
	Relation	rel;
	BlockNumber block;			/* the first one */
	int			nblocks;
	int			limit;			/* pages in flight, at least 1 */
	uint32		nbegun;			/* pages for which reads have begun so far */
} AioWantedPages;

/*
 * Somebody waits for a page that is not in memory, outside of tasks: called
 * before its read begins, if set.  May begin reads by AioReadAhead().
 */
extern PGDLLIMPORT void (*aio_read_hook) (ReadBuffersOperation *operation);

/* That function runs, or probes do.  It is not called for pages they read. */
extern PGDLLIMPORT bool aio_in_read_hook;

extern void AioReadFutureInit(AioIOFuture *future, const PgAioWaitRef *wref,
							  int io_context);
extern void AioWriteFutureInit(AioIOFuture *future, const PgAioWaitRef *wref,
							   int io_context);
extern void AioReadAbandonAll(void);
extern void AioReadReap(void);
extern bool AioTaskAwaits(const SMgrRelationData *smgr, ForkNumber forknum);

/* read_ahead.c */
extern bool AioPageIsHere(Relation rel, BlockNumber block);
extern AioReadAheadResult AioReadAhead(Relation rel, BlockNumber block);
extern AioReadAheadResult AioReadAheadCombined(Relation rel, BlockNumber block,
											   int *nblocks);
extern Buffer AioFindPage(const RelFileLocator *rlocator, BlockNumber block);
extern bool AioReadAheadIsFull(int max_ios);
extern void AioReadFileAhead(SMgrRelation smgr, BlockNumber block, int nblocks,
							 int max_ios, int max_pages, Buffer *buffers);
extern void AioReadAheadWait(void);
extern void AioReadAheadWaitAll(void);
extern void AioReadWanted(AioWantedPages *wanted);
extern void AioWantPage(AioWantedPages *wanted, BlockNumber block);
extern void AioEndReadAhead(bool idle);

/* this session has begun reads for which it may never wait */
extern PGDLLIMPORT bool aio_read_ahead_used;

/*
 * Pages of this relation that are read ahead are needed soon; or NULL.  After
 * an error it may be one that is not open any more.
 */
extern PGDLLIMPORT Relation aio_streamed_relation;

extern int	AioTaskReadFlags(ReadBuffersOperation *operation);
extern int	AioStreamReadFlags(ReadBuffersOperation *operation);
extern void AioAwaitTaskRead(ReadBuffersOperation *operation);
extern void AioPageArrived(Relation rel, ForkNumber forknum, Buffer buffer);

/* AsyncReadBuffers(): how to read pages that are not in memory */
static inline int
AioReadFlags(ReadBuffersOperation *operation)
{
	/* a read ahead, or a stream's */
	if ((operation->flags & READ_BUFFERS_SYNCHRONOUSLY) == 0)
	{
		if (aio_streamed_relation != NULL &&
			operation->rel == aio_streamed_relation)
			return AioStreamReadFlags(operation);
		return operation->flags;
	}
	if (aio_current_task != NULL)
		return AioTaskReadFlags(operation);
	if (aio_read_hook != NULL && !aio_in_read_hook)
		aio_read_hook(operation);
	return operation->flags;
}

/* ReadBuffer_common(): before it waits for that read */
static inline void
AioAwaitRead(ReadBuffersOperation *operation)
{
	if (unlikely(aio_current_task != NULL))
		AioAwaitTaskRead(operation);
}

/* ReadBuffer_common(): the page is in memory, pinned and not locked */
static inline void
AioReadDone(Relation rel, ForkNumber forknum, Buffer buffer)
{
	if (unlikely(aio_current_task != NULL))
		AioPageArrived(rel, forknum, buffer);
}

#endif							/* AIO_READ_H */
