/*-------------------------------------------------------------------------
 *
 * backup_pool.c
 *	  Chunks of shared memory into which base backups read files, and files as
 *	  a target of upstream's AIO.
 *
 * An I/O worker opens the file anew, by the path that is in the chunk.  Files
 * go while a backup is taken, and others get their names.  Then the read
 * fails, which is no error here: its result is the number of one, and who
 * takes the backup reads by itself, from the file that he has opened.
 *
 * With buffered I/O, what a backup brings into the kernel's page cache leaves
 * it with the read (RWF_DONTCACHE), and what is there already is used.
 *
 * Tests: src/test/aio/backup/t/001_backup.pl.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include "aio/backup.h"
#include "aio/shared_state.h"
#include "aio/worker_file.h"
#include "backup_internal.h"
#include "miscadmin.h"
#include "port/atomics.h"
#include "port/pg_iovec.h"
#include "storage/aio_internal.h"
#include "storage/fd.h"
#include "storage/io_worker.h"
#include "storage/spin.h"

/* of Linux 6.14 */
#ifndef RWF_DONTCACHE
#define RWF_DONTCACHE	0x00000080
#endif

typedef struct ChunkPool
{
	slock_t		mutex;
	int			first_free;		/* or -1 */
	int			nin_workers;	/* chunks with which a worker is busy */
	pg_atomic_uint32 nusers;	/* backups, or connections of one */
	char	   *data;			/* of all chunks, aligned for direct I/O */
	AioBackupChunk chunks[FLEXIBLE_ARRAY_MEMBER];
} ChunkPool;

/* What is known of such a read, in its handle. */
typedef struct BackupTarget
{
	int			chunk;
} BackupTarget;

StaticAssertDecl(sizeof(BackupTarget) <= sizeof(PgAioTargetData),
				 "a handle has room for a target");
StaticAssertDecl(AIO_BACKUP_CHUNK_SIZE % BLCKSZ == 0,
				 "a chunk has whole pages");

int			aio_backup_buffers = 8 * 1024;

static ChunkPool *pool = NULL;

/* How many chunks are there? */
int
AioBackupChunks(void)
{
	return (int) ((Size) aio_backup_buffers * 1024 / AIO_BACKUP_CHUNK_SIZE);
}

static Size
header_size(void)
{
	return offsetof(ChunkPool, chunks) +
		AioBackupChunks() * sizeof(AioBackupChunk);
}

static Size
pool_size(void)
{
	return header_size() + PG_IO_ALIGN_SIZE +
		mul_size(AioBackupChunks(), AIO_BACKUP_CHUNK_SIZE);
}

static void
initialize_pool(void)
{
	SpinLockInit(&pool->mutex);
	pool->first_free = -1;
	pool->nin_workers = 0;
	pg_atomic_init_u32(&pool->nusers, 0);
	pool->data = (char *) TYPEALIGN(PG_IO_ALIGN_SIZE,
									(char *) pool + header_size());
	for (int chunk = AioBackupChunks() - 1; chunk >= 0; chunk--)
	{
		pool->chunks[chunk].next_free = pool->first_free;
		pool->chunks[chunk].path[0] = '\0';
		pool->chunks[chunk].in_worker = false;
		pool->chunks[chunk].result = 0;
		pool->first_free = chunk;
	}
}

static const AioSharedState pool_state = {
	.name = "AIO buffers of base backups",
	.size = pool_size,
	.address = (void **) &pool,
	.initialize = initialize_pool,
};

/* While libraries are preloaded: ask for the chunks. */
void
AioBackupInitialize(void)
{
	AioShareState(&pool_state);
}

/* This process begins, or has ended, to take and release chunks. */
void
AioBackupUseChunks(bool begin)
{
	pg_atomic_fetch_add_u32(&pool->nusers, begin ? 1 : -1);
}

/*
 * How many of them are this process's share?  It may have more, because others
 * have just come.
 */
int
AioBackupShareOfChunks(void)
{
	int			nchunks = AioBackupChunks();

	if (nchunks == 0)
		return 0;
	return Max(nchunks / Max((int) pg_atomic_read_u32(&pool->nusers), 1), 1);
}

/*
 * Take a chunk; -1 if none is free.
 *
 * If an I/O worker will be busy with the read, it does nothing else meanwhile.
 * So one worker, if there are several, is left to others by all backups
 * together; -1 as well if that would not be so.
 */
int
AioBackupTakeChunk(bool in_worker)
{
	int			chunk = -1;

	SpinLockAcquire(&pool->mutex);
	if (!in_worker || pool->nin_workers < Max(io_workers - 1, 1))
		chunk = pool->first_free;
	if (chunk >= 0)
	{
		pool->first_free = pool->chunks[chunk].next_free;
		pool->chunks[chunk].in_worker = in_worker;
		pool->nin_workers += in_worker;
	}
	SpinLockRelease(&pool->mutex);
	return chunk;
}

/* No worker is busy with a read into this chunk any more. */
static void
leave_worker(AioBackupChunk *chunk)
{
	pool->nin_workers -= chunk->in_worker;
	chunk->in_worker = false;
}

/* Give one back, into which no read is in flight. */
void
AioBackupReleaseChunk(int chunk)
{
	Assert(pool->chunks[chunk].result != AIO_BACKUP_IN_FLIGHT);
	SpinLockAcquire(&pool->mutex);
	leave_worker(&pool->chunks[chunk]);
	pool->chunks[chunk].next_free = pool->first_free;
	pool->first_free = chunk;
	SpinLockRelease(&pool->mutex);
}

AioBackupChunk *
AioBackupChunkAt(int chunk)
{
	Assert(chunk >= 0 && chunk < AioBackupChunks());
	return &pool->chunks[chunk];
}

char *
AioBackupChunkData(int chunk)
{
	Assert(chunk >= 0 && chunk < AioBackupChunks());
	return pool->data + (Size) chunk * AIO_BACKUP_CHUNK_SIZE;
}

/* A handle that has been acquired will read into this chunk. */
void
AioBackupSetTarget(PgAioHandle *ioh, int chunk)
{
	pool->chunks[chunk].result = AIO_BACKUP_IN_FLIGHT;
	pgaio_io_set_target(ioh, AIO_TID_BACKUP);
	((BackupTarget *) pgaio_io_get_target_data(ioh))->chunk = chunk;
	pgaio_io_register_callbacks(ioh, AIO_HCB_BACKUP, 0);
}

static AioBackupChunk *
chunk_of(const PgAioTargetData *target_data)
{
	return AioBackupChunkAt(((const BackupTarget *) target_data)->chunk);
}

/*
 * reopen, in an I/O worker.  Raises nothing, because that would end the
 * worker: if the file is not there any more, the read fails for want of a
 * descriptor.
 */
static void
backup_reopen(PgAioHandle *ioh)
{
	const AioBackupChunk *chunk = chunk_of(pgaio_io_get_target_data(ioh));
	int			fd = BasicOpenFile(chunk->path, chunk->open_flags);
	struct stat status;

	if (fd >= 0 &&
		(fstat(fd, &status) != 0 || status.st_dev != chunk->device ||
		 status.st_ino != chunk->inode))
	{
		close(fd);
		fd = -1;
	}
	pgaio_io_get_op_data(ioh)->read.fd = fd;
	AioSetWorkerFile(ioh, fd);
}

static char *
backup_describe(const PgAioTargetData *target_data)
{
	return psprintf(_("file \"%s\""), chunk_of(target_data)->path);
}

const PgAioTargetInfo aio_backup_target_info = {
	.name = "backup",
	.reopen = backup_reopen,
	.describe_identity = backup_describe,
};

/* complete_shared */
static PgAioResult
backup_complete(PgAioHandle *ioh, PgAioResult prior_result, uint8 cb_data)
{
	AioBackupChunk *chunk = chunk_of(pgaio_io_get_target_data(ioh));

	(void) AioCloseWorkerFile(ioh);
	chunk->result = prior_result.result;
	if (chunk->in_worker)
	{
		SpinLockAcquire(&pool->mutex);
		leave_worker(chunk);
		SpinLockRelease(&pool->mutex);
	}
	prior_result.status = PGAIO_RS_OK;
	return prior_result;
}

const PgAioHandleCallbacks aio_backup_cb = {
	.complete_shared = backup_complete,
};

/* Flags of preadv2() with which an I/O is to be carried out. */
int
AioReadVFlags(PgAioHandle *ioh)
{
	if (ioh->op == PGAIO_OP_READV && ioh->target == AIO_TID_BACKUP &&
		chunk_of(pgaio_io_get_target_data(ioh))->dontcache)
		return RWF_DONTCACHE;
	return 0;
}

/*
 * pgaio_io_perform_synchronously(): in place of pg_preadv(), whose result
 * this has.
 */
ssize_t
AioPerformReadV(PgAioHandle *ioh)
{
	const struct iovec *iov = &pgaio_ctl->iovecs[ioh->iovec_off];
	int			iovcnt = ioh->op_data.read.iov_length;
	int			fd = ioh->op_data.read.fd;
	off_t		offset = ioh->op_data.read.offset;
	int			flags = AioReadVFlags(ioh);

	if (flags == 0)
		return pg_preadv(fd, iov, iovcnt, offset);
#ifdef __linux__
	return preadv2(fd, iov, iovcnt, offset, flags);
#else
	errno = EOPNOTSUPP;
	return -1;
#endif
}
