/*-------------------------------------------------------------------------
 *
 * wal_internal.h
 *	  What the pipeline of WAL writes shares among its files.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AIO_WAL_INTERNAL_H
#define AIO_WAL_INTERNAL_H

#include "access/xlogdefs.h"
#include "storage/aio_internal.h"

/* tails/xlog.c */
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

/* wal_file.c */
extern bool AioWalMethodSyncsWrites(int sync_method);
extern int	AioWalFile(XLogSegNo segno, TimeLineID tli, bool create);
extern void AioWalCloseFilesBefore(XLogSegNo segno);
extern void AioWalWriteNow(int fd, XLogSegNo segno, TimeLineID tli,
						   const char *from, Size nbytes, uint32 offset);
extern void AioWalSyncNow(XLogSegNo segno, TimeLineID tli);
extern void AioWalStartWrite(PgAioHandle *ioh, int fd, XLogSegNo segno,
							 TimeLineID tli, char *from, Size nbytes,
							 uint32 offset, uint64 number);

/* wal.c */
extern void AioWalWriteComplete(uint64 number);

#endif							/* AIO_WAL_INTERNAL_H */
