/*-------------------------------------------------------------------------
 *
 * backup.h
 *	  Base backups read files ahead.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AIO_BACKUP_H
#define AIO_BACKUP_H

#include <dirent.h>

#include "datatype/timestamp.h"
#include "nodes/pg_list.h"
#include "storage/aio.h"
#include "storage/block.h"

/* aio.backup_buffers, in kB; 0 is never */
extern PGDLLIMPORT int aio_backup_buffers;

/* backup_pool.c */
extern const PgAioTargetInfo aio_backup_target_info;
extern const PgAioHandleCallbacks aio_backup_cb;

extern void AioBackupInitialize(void);
extern int	AioReadVFlags(PgAioHandle *ioh);
extern ssize_t AioPerformReadV(PgAioHandle *ioh);

/* method_io_uring_internals.c */
struct io_uring_sqe;
extern void AioUringSetFlags(PgAioHandle *ioh, struct io_uring_sqe *sqe);

/* backup_read.c */
extern void AioBackupBegin(bool incremental);
extern void AioBackupEnd(void);
extern struct dirent *AioBackupReadDir(DIR *dir, const char *path,
									   bool sizeonly);
extern void AioBackupFile(int fd, const char *path, const BlockNumber *blocks,
						  unsigned int nblocks);

/* backup_pace.c */
extern bool AioBackupPace(TimestampTz *due, uint64 rate_bytes,
						  TimeOffset rate_time, size_t nbytes);

/* summary_order.c */
extern void AioSortWalSummaries(List *summaries);

/* truncated.c */
struct BlockRefTableEntry;
extern int	AioGetChangedBlocks(BlockNumber *limit,
								struct BlockRefTableEntry *entry,
								BlockNumber start, BlockNumber stop,
								BlockNumber *blocks, int nblocks);

/* basebackup_internals.c */
extern ssize_t AioBackupRead(int fd, char *buf, size_t nbytes, off_t offset,
							 const char *path);

#endif							/* AIO_BACKUP_H */
