/*-------------------------------------------------------------------------
 *
 * backup_internal.h
 *	  What the files of src/backend/backup share among themselves.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AIO_BACKUP_INTERNAL_H
#define AIO_BACKUP_INTERNAL_H

#include <sys/stat.h>

#include "storage/aio.h"

/* Bytes that are read by one I/O, at most; a multiple of all block sizes. */
#define AIO_BACKUP_CHUNK_SIZE	(512 * 1024)

/*
 * Where such a read goes.  Shared memory: an I/O worker may carry it out, which
 * has to open the file.  Who has taken a chunk alone changes it, but for the
 * result while a read into it is in flight.
 */
typedef struct AioBackupChunk
{
	int			next_free;		/* or -1 */
	int			open_flags;
	bool		in_worker;		/* an I/O worker is busy with the read */
	bool		dontcache;		/* pages that come into the page cache by this
								 * read do not stay there */
	int			result;			/* bytes, or an error as -errno */
	dev_t		device;			/* of the file, with the next */
	ino_t		inode;
	char		path[MAXPGPATH];
} AioBackupChunk;

/* backup_pool.c */
extern int	AioBackupChunks(void);
extern int	AioBackupTakeChunk(bool in_worker);
extern void AioBackupReleaseChunk(int chunk);
extern AioBackupChunk *AioBackupChunkAt(int chunk);
extern char *AioBackupChunkData(int chunk);
extern void AioBackupSetTarget(PgAioHandle *ioh, int chunk);

/* page_cache.c */
typedef enum AioCached
{
	AIO_CACHED_NONE,
	AIO_CACHED_SOME,
	AIO_CACHED_ALL,
	AIO_CACHED_UNKNOWN,
} AioCached;

extern AioCached AioPageCacheHas(int fd, dev_t device, off_t offset,
								 size_t length);

/* backup_read.c */
extern ssize_t AioBackupTake(int fd, const char *path, char *buf,
							 size_t nbytes, off_t offset);

#endif							/* AIO_BACKUP_INTERNAL_H */
