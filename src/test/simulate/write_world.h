/*-------------------------------------------------------------------------
 *
 * write_world.h
 *	  What the parts of the simulator of write-behind share: pages and what has
 *	  become of them, the disk (write_disk.c), AIO (write_aio.c), and buffers
 *	  (write_buffers.c).
 *
 * A page has the LSN of the record that made it what it is, the record's
 * contents ('body'), and hints, of which there is no WAL.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef SIMULATE_WRITE_WORLD_H
#define SIMULATE_WRITE_WORLD_H

#include "access/xlog.h"
#include "aio/write.h"
#include "storage/aio_internal.h"
#include "storage/buf_internals.h"
#include "storage/condition_variable.h"
#include "storage/smgr.h"
#include "storage/sync.h"
#include "wal_world.h"

#define FILES_MAX		2
#define BLOCKS_MAX		32		/* of a file */
#define PAGES_MAX		(FILES_MAX * BLOCKS_MAX)
#define SEGMENTS_MAX	(BLOCKS_MAX / RELSEG_SIZE)
#define BUFFERS_MAX		32
#define HANDLES_MAX		16		/* of a process */
#define FIRST_NUMBER	16384

typedef struct SimPage
{
	XLogRecPtr	lsn;
	uint32		body;
	uint32		hints;
	uint32		number;			/* file * BLOCKS_MAX + block */
	uint32		checksum;
} SimPage;

StaticAssertDecl(sizeof(SimPage) <= BLCKSZ, "a page has room for that");

/* One of read and written pages, on its way. */
typedef struct SimIO SimIO;

/* Which process is it? */
static inline int
SimMe(void)
{
	return sim_me - sim_processes;
}

static inline int
SimPageNumber(const BufferTag *tag)
{
	return (tag->relNumber - FIRST_NUMBER) * BLOCKS_MAX + tag->blockNum;
}

/* write_behind.c: WAL, and what pages should be */
extern SimPage sim_newest[PAGES_MAX];	/* contents of the buffer, if any */
extern int	sim_nfiles;
extern int	sim_nblocks;		/* of each file */
extern XLogRecPtr sim_inserted;
extern XLogRecPtr sim_flushed;
extern XLogRecPtr sim_noted;	/* in pg_control: needed for consistency */
extern bool sim_notes;			/* that is so in this recovery */

extern bool SimIsUnlogged(int page);
extern uint32 SimBodyOf(XLogRecPtr lsn);
extern bool SimMayWrite(XLogRecPtr lsn);
extern bool SimHasSeen(uint64 step);

/* write_disk.c */
extern int	sim_data_faults;	/* chances in a thousand */
extern int	sim_sync_room;		/* of the queue of sync requests */

extern void SimDataReset(void);
extern SimIO *SimIOStart(bool write, int file, BlockNumber block, int npages,
						 char **pages, const void *wakes);
extern bool SimIODone(SimIO *io, int *result);
extern void SimIOForget(SimIO *io);
extern int	SimWriteNow(int file, BlockNumber block, int npages, char **pages);
extern const SimPage *SimOnDisk(int page);
extern bool SimIsDurable(int page, XLogRecPtr lsn);
extern void SimMakeDurable(int page, const SimPage *contents);
extern bool SimIsWritten(int page);
extern void SimSyncSegment(int file, int segment);
extern void SimProcessSyncRequests(void);
extern void SimAbsorbSyncRequests(void);
extern void SimSyncAll(void);
extern void SimDataCrash(bool power_lost);
extern void SimDataSettle(void);
extern bool SimDataIdle(void);
extern uint32 SimChecksum(const SimPage *page);

/* write_aio.c */
extern bool sim_warns;			/* reads complain, to a client who is slow */

extern void SimAioReset(int nhandles);
extern void SimAioInit(void);
extern void SimAioRestore(void);
extern void SimAioError(void);
extern void SimAioShutdown(void);
extern void SimAioCheckIdle(void);
extern void SimIOWorker(void);
extern PgAioHandle *pgaio_io_acquire(ResourceOwner owner, PgAioReturn *ret);
extern void pgaio_io_release(PgAioHandle *ioh);
extern void pgaio_io_start_readv(PgAioHandle *ioh, int fd, int n,
								 uint64 offset);
extern void pgaio_enter_batchmode(void);
extern void pgaio_exit_batchmode(void);
extern bool pgaio_have_staged(void);
extern void SimSleep(uint64 timeout);

/* ends the read of a buffer */
#define SIM_HCB_READ	3
extern const PgAioHandleCallbacks sim_read_cb;

/* write_included.c */
extern void SimBehindInit(void);
extern void SimBehindSave(void);
extern void SimBehindRestore(void);
extern bool SimMaySleepWithWrites(void);

/* write_buffers.c */
extern void SimBuffersReset(int nbuffers);
extern void SimBuffersInit(void);
extern void SimBuffersAbort(void);
extern void SimBuffersCheckIdle(bool clean);
extern BufferAccessStrategy SimMakeRing(int nbuffers, bool reads);
extern Buffer SimReadBuffer(int page, BufferAccessStrategy strategy);
extern bool SimStartRead(int page, BufferAccessStrategy strategy,
						 ReadBuffersOperation *operation);
extern void SimWaitRead(ReadBuffersOperation *operation);
extern void SimReleaseBuffer(Buffer buffer);
extern void SimLockBuffer(Buffer buffer, LWLockMode mode);
extern void SimUnlockBuffer(Buffer buffer);
extern bool SimLockForCleanup(Buffer buffer);
extern void SimMarkDirty(Buffer buffer);
extern void SimSetHint(Buffer buffer);
extern SimPage *SimBufferPage(Buffer buffer);
extern void SimFlushRelation(int file);
extern void SimBufferSync(bool all);
extern void SimBackgroundPass(void);

#endif							/* SIMULATE_WRITE_WORLD_H */
