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

#include "access/xlogdefs.h"
#include "common/checksum_helper.h"
#include "common/relpath.h"
#include "nodes/pg_list.h"
#include "storage/aio.h"
#include "storage/fileset.h"

struct backup_manifest_info;

/* Bytes that are read by one I/O, at most; a multiple of all block sizes. */
#define AIO_BACKUP_CHUNK_SIZE	(512 * 1024)

#define AIO_BACKUP_IN_FLIGHT	PG_INT32_MIN

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
	int			result;			/* bytes, or an error as -errno, or
								 * AIO_BACKUP_IN_FLIGHT */
	dev_t		device;			/* of the file, with the next */
	ino_t		inode;
	char		path[MAXPGPATH];
} AioBackupChunk;

/* backup_pool.c */
extern int	AioBackupChunks(void);
extern void AioBackupUseChunks(bool begin);
extern int	AioBackupShareOfChunks(void);
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
extern void AioBackupExpect(const char *path);

/* backup_share.c: a file that any connection of a shared backup may send */
typedef struct AioSharedFile
{
	int64		size;			/* when it was found */
	int			tablespace;		/* position in the list of them */
	Oid			dboid;
	Oid			spcoid;
	RelFileNumber relfilenumber;
	unsigned int segno;
	Size		path;			/* for backup_share.c, which has the names */
	Size		name;			/* where the name in the archive begins in the
								 * path */
} AioSharedFile;

/* What is the same for all files of a shared backup. */
typedef struct AioShareTerms
{
	XLogRecPtr	startptr;
	TimeLineID	starttli;
	bool		in_recovery;	/* the server, when the backup began */
	bool		verify_checksums;
	bool		with_manifest;
	bool		force_encode;	/* paths in it */
	pg_checksum_type checksum_type; /* of files in it */
} AioShareTerms;

extern void AioSharePrepare(int nconnections);
extern bool AioShareIsPrepared(void);
extern void AioShareNote(const AioSharedFile *file, const char *path);
extern char *AioShareCreate(const AioShareTerms *terms, List *tablespaces);
extern int	AioShareJoin(const char *digits, AioShareTerms *terms);
extern List *AioShareTablespaces(void);
extern FileSet *AioShareFileSet(void);
extern const char *AioShareFileName(const AioSharedFile *file);
extern const AioSharedFile *AioShareTake(int64 room);
extern bool AioShareWait(int64 *checksum_failures);
extern void AioShareEnd(int64 checksum_failures);
pg_noreturn extern void AioShareFail(void);

/* backup_manifest_internals.c */
extern void AioManifestToFileSet(struct backup_manifest_info *manifest,
								 FileSet *fileset, int number);
extern void AioExportManifest(struct backup_manifest_info *manifest);
extern void AioAppendManifest(struct backup_manifest_info *manifest,
							  FileSet *fileset, int number);

#endif							/* AIO_BACKUP_INTERNAL_H */
