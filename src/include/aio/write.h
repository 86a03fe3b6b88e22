/*-------------------------------------------------------------------------
 *
 * write.h
 *	  Writing pages without waiting for it.
 *
 * Three parts: bounce buffers and what happens when a write is complete
 * (write.c), how a write of shared buffers begins (bufmgr_internals.c), and
 * who writes when, and waits for what (write_behind.c, bulk_write.c).
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AIO_WRITE_H
#define AIO_WRITE_H

#include "miscadmin.h"
#include "storage/aio.h"
#include "storage/buf_internals.h"
#include "storage/bufmgr.h"
#include "storage/fd.h"

/* aio.write_behind: writes in flight per process; 0 is to wait for each */
extern PGDLLIMPORT int aio_write_behind;

/* aio.write_buffers: pages in all that can be on their way to disk */
extern PGDLLIMPORT int aio_write_buffers;

/* aio.bulk_flush_after: of a new relation, in pages; 0 is never */
extern PGDLLIMPORT int aio_bulk_flush_after;

/* upper limit of aio.write_behind */
#define AIO_WRITE_BEHIND_LIMIT	256

/* Which neighbours of a dirty page are written together with it? */
typedef enum AioNeighbours
{
	AIO_NEIGHBOURS_UNUSED,		/* those that nobody uses */
	AIO_NEIGHBOURS_RING,		/* those that at most one has used */
	AIO_NEIGHBOURS_CHECKPOINT,	/* those that the checkpoint must write */
	AIO_NEIGHBOURS_DIRTY,		/* all that are dirty */
} AioNeighbours;

/* A write of adjacent pages that somebody has started. */
typedef struct AioWrite
{
	PgAioWaitRef wref;
	PgAioReturn ret;			/* must not move before the write is complete */
	BufferTag	tag;			/* of the first page */
	IOContext	io_context;		/* where it was counted, if it has buffers */
	int			nbuffers;
	Buffer		buffers[MAX_IO_COMBINE_LIMIT];
} AioWrite;

typedef enum AioStartWriteResult
{
	AIO_WRITE_STARTED,
	AIO_WRITE_NOT_NOW,			/* someone else writes it, or has */
	AIO_WRITE_WAL_FIRST,		/* its WAL is not on disk */
	AIO_WRITE_IMPOSSIBLE,		/* no room, or it failed before: wait for it */
} AioStartWriteResult;

extern const PgAioHandleCallbacks aio_md_writev_cb;
extern const PgAioHandleCallbacks aio_page_writev_cb;

/*
 * What belongs to each page of a write's AIO handle: the bounce buffer that
 * has the copy, and its buffer, if it has one.
 */
static inline uint64
AioMakeHandleData(Buffer buffer, int page)
{
	/* no local buffer: other processes complete the write */
	Assert(buffer >= InvalidBuffer && buffer <= NBuffers);
	Assert(page >= 0);
	return (uint64) page << 32 | (uint32) buffer;
}

static inline Buffer
AioHandleDataBuffer(uint64 data)
{
	return (Buffer) (uint32) data;
}

static inline int
AioHandleDataPage(uint64 data)
{
	return data >> 32;
}

/* Are data files read and written with direct I/O? */
static inline bool
AioUsesDirectIO(void)
{
	return (io_direct_flags & IO_DIRECT_DATA) != 0;
}

/* write.c */
extern void AioWriteInitialize(void);
extern int	AioBounceBuffersGet(int n, int *numbers);
extern char *AioBounceBuffer(int page);
extern void AioBounceBufferRelease(int page);
extern void AioIssueWrite(PgAioHandle *ioh, struct SMgrRelationData *reln,
						  ForkNumber forknum, BlockNumber blocknum,
						  int nblocks, const uint64 *data, bool skip_fsync,
						  int fd, uint32 offset);

/* bufmgr_internals.c */
extern AioStartWriteResult AioStartWrite(BufferDesc *buf, AioNeighbours which,
										 IOContext io_context, AioWrite *write);
extern void AioStageWrite(PgAioHandle *ioh, uint8 cb_data);
extern void AioUnlockStagedBuffer(BufferDesc *buf, uint32 buf_state);
extern void AioEndWrite(Buffer buffer, bool clear_dirty, bool failed);
extern bool AioIsVictim(BufferDesc *buf, const BufferTag *tag, int max_usage,
						uint32 *buf_state);
extern void AioBeforeCleanupWait(BufferDesc *buf);
extern Buffer AioVictimBuffer(struct SMgrRelationData *smgr, ForkNumber forknum,
							  BufferAccessStrategy strategy,
							  IOContext io_context);
extern void AioReserveForPin(void);
extern void AioRetryWrite(Buffer buffer, const BufferTag *tag);

/* freelist_internals.c */
extern void AioCountBufferAlloc(void);
extern int	AioPassOverInRing(BufferAccessStrategy strategy,
							  const Buffer *buffers, int n);

/* bulk_write_internals.c, called by seams */
struct BulkWriteState;
extern bool AioBulkFlush(struct BulkWriteState *bulkstate);
extern void AioBulkFinish(struct BulkWriteState *bulkstate);

/* condition_variable_internals.c */
extern bool AioPreparedToSleep(void);

/* write_behind.c */
extern bool AioWritesBehind(void);
extern AioWrite *AioWaitForWriteSlot(void);
extern void AioSubmitWrite(const void *owner);
extern void AioRaiseWriteError(const void *owner);
extern BufferDesc *AioNextVictim(BufferAccessStrategy strategy,
								 uint32 *buf_state, bool *from_ring,
								 bool may_suspend);
extern bool AioWriteVictim(BufferDesc *buf, BufferAccessStrategy strategy,
						   IOContext io_context, bool from_ring);
extern void AioBeginBufferFlush(void);
extern bool AioFlushBuffer(BufferDesc *buf);
extern void AioFinishBufferFlush(void);
extern void AioFinishWrites(void);
extern void AioFinishWritesToSleep(void);
extern void AioExpectBulkWrites(void);

/* this process is reclaiming the handle of an I/O */
extern PGDLLIMPORT bool aio_reclaiming;

/* sleeps of this process on condition variables so far */
extern PGDLLIMPORT uint64 aio_nsleeps;

/* writes of this process of which it does not know that they are complete */
extern PGDLLIMPORT int aio_writes_in_flight;

/* writes that are complete or in flight, whose buffers are the next victims */
extern PGDLLIMPORT int aio_writes_tracked;

/* too many victims have been passed over whose WAL is not on disk */
extern PGDLLIMPORT bool aio_victims_lack_wal;

#endif							/* AIO_WRITE_H */
