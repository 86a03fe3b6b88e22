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

#include "wal_port.h"

/* wal_file.c */
extern bool AioWalMethodSyncsWrites(int sync_method);
extern int	AioWalFile(XLogSegNo segno, TimeLineID tli, bool create);
extern void AioWalCloseFilesBefore(XLogSegNo segno);
extern void AioWalWriteNow(int fd, XLogSegNo segno, TimeLineID tli,
						   const char *from, Size nbytes, uint32 offset);
extern int	AioWalFileToSync(XLogSegNo segno, TimeLineID tli);
extern void AioWalSyncNow(int fd, XLogSegNo segno, TimeLineID tli);
extern void AioWalStartWrite(PgAioHandle *ioh, int fd, XLogSegNo segno,
							 TimeLineID tli, char *from, Size nbytes,
							 uint32 offset, uint64 number);
extern void AioWalEndWrite(const AioWalTarget *target, const char *from,
						   Size nbytes, uint32 offset, int result);

/* wal.c */
extern void AioWalWriteComplete(uint64 number);

#endif							/* AIO_WAL_INTERNAL_H */
