/*-------------------------------------------------------------------------
 *
 * buf_internals.h
 *	  Stands in for upstream's header of this name; see ../postgres.h.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef SIMULATE_BUF_INTERNALS_H
#define SIMULATE_BUF_INTERNALS_H

#include "pgstat.h"
#include "port/atomics.h"
#include "storage/aio_types.h"
#include "storage/buf.h"
#include "storage/condition_variable.h"
#include "storage/lwlock.h"
#include "storage/relfilelocator.h"

typedef struct WritebackContext WritebackContext;

/* the state of a buffer: pins, usage, flags */
#define BUF_REFCOUNT_ONE		1
#define BUF_USAGECOUNT_ONE		0x100
#define BM_MAX_USAGE_COUNT		5
#define BM_LOCKED				0x00010000
#define BM_DIRTY				0x00020000
#define BM_VALID				0x00040000
#define BM_TAG_VALID			0x00080000
#define BM_IO_IN_PROGRESS		0x00100000
#define BM_IO_ERROR				0x00200000
#define BM_JUST_DIRTIED			0x00400000
#define BM_PIN_COUNT_WAITER		0x00800000
#define BM_CHECKPOINT_NEEDED	0x01000000
#define BM_PERMANENT			0x02000000
#define BUF_STATE_GET_REFCOUNT(state)	((state) & 0xff)
#define BUF_STATE_GET_USAGECOUNT(state)	(((state) >> 8) & 0xff)

typedef struct BufferTag
{
	Oid			spcOid;
	Oid			dbOid;
	RelFileNumber relNumber;
	ForkNumber	forkNum;
	BlockNumber blockNum;
} BufferTag;

typedef struct BufferDesc
{
	BufferTag	tag;
	int			buf_id;
	pg_atomic_uint32 state;
	int			wait_backend_pgprocno;
	int			freeNext;
	PgAioWaitRef io_wref;
	LWLock		content_lock;
	int			changing;		/* processes that are changing it now */
	uint64		failed_at;		/* step in which its last write failed */
} BufferDesc;

typedef BufferDesc BufferDescPadded;

extern BufferDesc sim_buffers[];
extern ConditionVariable sim_io_cvs[];
extern WritebackContext BackendWritebackContext;

extern uint32 LockBufHdr(BufferDesc *buf);
extern void UnlockBufHdr(BufferDesc *buf, uint32 state);
extern BufferDesc *StrategyGetBuffer(BufferAccessStrategy strategy,
									 uint32 *buf_state, bool *from_ring);
extern void ScheduleBufferTagForWriteback(WritebackContext *context,
										  IOContext io_context,
										  BufferTag *tag);

static inline BufferDesc *
GetBufferDescriptor(int id)
{
	return &sim_buffers[id];
}

static inline Buffer
BufferDescriptorGetBuffer(const BufferDesc *buf)
{
	return buf->buf_id + 1;
}

static inline LWLock *
BufferDescriptorGetContentLock(const BufferDesc *buf)
{
	return &sim_buffers[buf->buf_id].content_lock;
}

static inline ConditionVariable *
BufferDescriptorGetIOCV(const BufferDesc *buf)
{
	return &sim_io_cvs[buf->buf_id];
}

static inline bool
BufferTagsEqual(const BufferTag *one, const BufferTag *other)
{
	return one->relNumber == other->relNumber &&
		one->blockNum == other->blockNum;
}

static inline RelFileLocator
BufTagGetRelFileLocator(const BufferTag *tag)
{
	RelFileLocator locator = {tag->spcOid, tag->dbOid, tag->relNumber};

	return locator;
}

static inline ForkNumber
BufTagGetForkNum(const BufferTag *tag)
{
	return tag->forkNum;
}

static inline bool
BufTagMatchesRelFileLocator(const BufferTag *tag, const RelFileLocator *locator)
{
	return tag->relNumber == locator->relNumber;
}

#endif							/* SIMULATE_BUF_INTERNALS_H */
