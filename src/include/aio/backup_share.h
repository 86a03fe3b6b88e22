/*-------------------------------------------------------------------------
 *
 * backup_share.h
 *	  Several connections send the files of one base backup.
 *
 * src/backend/backup/backup_share.c says more.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AIO_BACKUP_SHARE_H
#define AIO_BACKUP_SHARE_H

#include <sys/stat.h>

#include "common/relpath.h"
#include "storage/block.h"

struct backup_manifest_info;
struct bbsink;
struct IncrementalBackupInfo;
struct List;

/* basebackup_internals.c; the type of 'options' is known in basebackup.c */
extern struct List *AioBackupOptions(struct List *options);
extern void AioPerformBaseBackup(void *options, struct bbsink *sink,
								 struct IncrementalBackupInfo *ib);
extern bool AioBackupSendFile(struct bbsink *sink, const char *readfilename,
							  const char *tarfilename, struct stat *statbuf,
							  bool missing_ok, Oid dboid, Oid spcoid,
							  RelFileNumber relfilenumber, unsigned segno,
							  struct backup_manifest_info *manifest,
							  unsigned num_incremental_blocks,
							  BlockNumber *incremental_blocks,
							  unsigned truncation_block_length);
extern void AioBackupShareOut(struct bbsink *sink,
							  struct backup_manifest_info *manifest);

#endif							/* AIO_BACKUP_SHARE_H */
