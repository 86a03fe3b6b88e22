/*-------------------------------------------------------------------------
 *
 * stream_file.h
 *	  Files that programs write from the beginning to the end: they leave the
 *	  page cache on their way to the disk, and are synced one by one.
 *
 * Only for programs.  src/fe_utils/stream_file.c says more.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AIO_STREAM_FILE_H
#define AIO_STREAM_FILE_H

#include <stdio.h>

/* what a walk through a directory does with each file */
typedef int (*AioFileAction) (const char *path, bool isdir);

extern FILE *AioOpenStream(const char *path, pgoff_t size);
extern int	AioOpenStreamFd(const char *path, int flags, mode_t mode,
							pgoff_t size);
extern pgoff_t AioSeekStreamFd(int fd, pgoff_t offset, int whence);
extern ssize_t AioWriteStreamFd(int fd, const void *data, size_t size);
extern int	AioCloseStreamFd(int fd);
extern void AioEndStreamFd(int fd, const char *path);
extern void AioSyncStreams(bool sync);
extern void AioKeepStreams(void);
extern void AioFinishStreams(void);
extern void AioShareStreams(int nprocesses);
extern void AioReserveDescriptors(int n);
extern void AioForkStreams(void);
extern bool AioSendSynced(int fd);
extern bool AioReceiveSynced(int fd);

/* in upstream's file_utils.c, which does not know where streams are */
extern bool (*aio_file_is_synced) (const char *path);
extern int	AioSyncFile(AioFileAction action, const char *path);

#endif							/* AIO_STREAM_FILE_H */
