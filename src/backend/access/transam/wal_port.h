/*-------------------------------------------------------------------------
 *
 * wal_port.h
 *	  What the pipeline of WAL needs of the program that it runs in.
 *
 * The pipeline (wal.c) and the files (wal_file.c) know positions, segments,
 * locks, spinlocks and atomic variables, but neither xlog.c's shared memory
 * nor upstream's AIO, nor statistics, nor other processes.  What has to do
 * with these, the functions below do for them: the server's in
 * xlog_internals.c and wal_port.c, the simulator's in
 * src/test/simulate/wal_server.c.
 *
 * The program that is linked decides whose they are, at no cost; there is no
 * second set of them in one program, for which a struct of pointers would be
 * needed.  Locks, spinlocks and atomic variables keep upstream's names; the
 * simulator has headers that stand in for upstream's.
 *
 * Unless it says otherwise, a function may be called in a critical section, and
 * raises nothing.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AIO_WAL_PORT_H
#define AIO_WAL_PORT_H

#include "access/xlogdefs.h"
#include "portability/instr_time.h"
#include "storage/aio_types.h"

/*
 * xlog_internals.c: the WAL buffers, and how far they have got
 */
extern void AioWalResult(XLogRecPtr *written, XLogRecPtr *flushed);
extern void AioWalAdvance(XLogRecPtr written, XLogRecPtr flushed);
extern XLogRecPtr AioWalRequest(void);
extern XLogRecPtr AioWalInserted(void);
extern XLogRecPtr AioWalWaitForInsertions(XLogRecPtr upto);
extern char *AioWalBuffers(XLogRecPtr page, XLogRecPtr end, Size *nbytes);
extern int	AioWalBufferPages(void);
extern int	AioWalOpenSegment(XLogSegNo segno, TimeLineID tli, int sync_method,
							  bool may_wait);
extern void AioWalCreateSegment(XLogSegNo segno, TimeLineID tli);
extern void AioWalSegmentFinished(XLogSegNo segno, TimeLineID tli);
extern TimeLineID AioWalTimeLine(void);

/*
 * wal_port.c: writes in flight, system calls, other processes, statistics
 */

/* What a write in flight is of, for whoever completes it. */
typedef struct AioWalTarget
{
	uint32		segno_high;
	uint32		segno_low;
	TimeLineID	tli;
	int			sync_method;	/* its file is opened for it */
} AioWalTarget;

/* A flush that a process is in: when it began, and whether to count it. */
typedef struct AioWalFlush
{
	instr_time	start;
	bool		counted;
} AioWalFlush;

static inline XLogSegNo
AioWalTargetSegment(const AioWalTarget *target)
{
	return ((XLogSegNo) target->segno_high << 32) | target->segno_low;
}

/* So much may be written that is not flushed.  Whole pages, and several. */
extern const uint64 aio_wal_span;

/* Does the server write WAL so?  All of its processes agree, as they must. */
extern bool AioWalInUse(void);

/* May this process ever start a write, and may it now? */
extern bool AioWalMayStartWrites(void);
extern bool AioWalMayStartNow(void);

/*
 * A handle for one write, and how to wait for that; NULL if all are in use.  It
 * must be submitted next.
 */
extern PgAioHandle *AioWalHandle(PgAioWaitRef *wref);

/*
 * Submit it.  'fd' is open for the target's segment and method; the buffers
 * must stay as they are until AioWalWriteComplete() is told that the write with
 * this number is complete, by any process.
 */
extern void AioWalSubmit(PgAioHandle *ioh, int fd, const AioWalTarget *target,
						 char *from, Size nbytes, uint32 offset, uint64 number);

/* Wait for it, unless it is complete; who sleeps next looks again before. */
extern void AioWalAwait(PgAioWaitRef *wref);

/*
 * pwrite(), fdatasync() and close() of a segment; they set errno.  The second
 * close() is for a file that was opened only to complete a write.
 */
extern ssize_t AioWalPwrite(int fd, const char *from, Size nbytes,
							uint32 offset);
extern int	AioWalFdatasync(int fd);
extern int	AioWalClose(int fd);
extern void AioWalCloseReopened(int fd);

/*
 * When recovery ends: the file of a segment, -1 if there is none, which may
 * raise an error; up to so many bytes of it, -1 if they cannot be read; does a
 * page say that it is this one; tell that pages have been erased.
 */
extern int	AioWalOpenOld(XLogSegNo segno, TimeLineID tli);
extern ssize_t AioWalPread(int fd, char *to, Size nbytes, uint32 offset);
extern bool AioWalPageIs(const char *page, XLogRecPtr ptr);
extern void AioWalTellErased(XLogRecPtr end, XLogRecPtr first, XLogRecPtr last,
							 int npages);

/* Wake the WAL writer: it syncs, and makes segments. */
extern void AioWalWakeWriter(void);

/*
 * Create a segment that will be needed, outside of critical sections; an error
 * is only logged.
 */
extern void AioWalTryCreateSegment(XLogSegNo segno, TimeLineID tli);

/* This process begins, or ends, to have WAL flushed. */
extern void AioWalFlushBegins(AioWalFlush *flush);
extern void AioWalFlushEnds(const AioWalFlush *flush);

#endif							/* AIO_WAL_PORT_H */
