/*-------------------------------------------------------------------------
 *
 * backup_read.c
 *	  BASE_BACKUP reads files ahead: the rest of the one that is being sent, and
 *	  those that come after it in its directory, or in its queue.
 *
 * Upstream reads 32 kB, waits for them, computes checksums and hashes, sends
 * them, and reads on.  Here, reads of 512 kB are in flight meanwhile, as many
 * as maintenance_io_concurrency says and chunks are free (backup_pool.c).
 * What is sent, in which order, and what is checked, is upstream's to say: it
 * asks for bytes of a file, and gets them if they have been read.  If not,
 * for whatever reason, it reads them itself, and raises what there is to
 * raise.
 *
 * What is read ahead was read after the backup had begun, like everything in
 * it, so recovery makes up for what changes meanwhile.  There is one file
 * whose latest state is wanted, which is not read ahead: pg_control.
 *
 * With buffered I/O, what is in the kernel's page cache is copied from there
 * by upstream's read, which costs less than to hand that to somebody else.
 * What is not, is read past it, so that a backup drives nothing out of it.
 *
 * INVARIANT-82: A chunk is given back when no read into it is in flight.  So
 * at the end of a backup, however it ends, its reads are waited for, while
 * files and shared memory are still there.
 *
 * Tests: src/test/aio/backup/t/001_backup.pl.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/utsname.h>

#include "aio/backup.h"
#include "backup_internal.h"
#include "common/file_utils.h"
#include "common/relpath.h"
#include "lib/ilist.h"
#include "miscadmin.h"
#include "storage/aio.h"
#include "storage/aio_internal.h"
#include "storage/bufmgr.h"
#include "storage/fd.h"
#include "storage/ipc.h"
#include "storage/reinit.h"
#include "utils/injection_point.h"
#include "utils/memutils.h"
#include "utils/wait_event.h"

/* Files that are open ahead of need, at most. */
#define FILES_AHEAD		64

/* How a chunk of a file is read. */
typedef enum ReadWay
{
	READ_DIRECT,				/* past the page cache */
	READ_BUFFERED,
	READ_NOT,					/* not ahead: all of it is in the page cache */
} ReadWay;

/* chunks, at most, of which the page cache is not asked whether it has them */
#define CACHED_CHUNKS_MAX	15

/* A read into a chunk, in flight or complete. */
typedef struct BackupRead
{
	dlist_node	node;			/* in its file's reads, or in free_reads */
	int			chunk;
	off_t		offset;
	size_t		length;
	PgAioWaitRef wref;
	bool		bypasses;		/* the page cache of a server that does not */
	bool		complete;		/* is known to be */
} BackupRead;

/* A file that is read ahead. */
typedef struct BackupFile
{
	dlist_node	node;			/* in files_ahead or free_files, or current */
	File		vfd;			/* past the page cache if the server reads so */
	File		direct_vfd;		/* past the page cache otherwise, or -1 */
	dev_t		device;			/* with the next, which file it was then */
	ino_t		inode;
	off_t		size;			/* when it was opened, or its turn had come */
	off_t		next;			/* where the next read begins */
	int			ncached;		/* chunks that have been passed over unseen */
	dlist_head	reads;			/* in order */

	/*
	 * If only these blocks are wanted, in ascending order; the array is the
	 * caller's, and there while the file is current.
	 */
	const BlockNumber *blocks;
	unsigned int nblocks;
	unsigned int next_block;

	char		path[MAXPGPATH];
} BackupFile;

/* Names of a directory that is being sent. */
typedef struct BackupDir
{
	struct BackupDir *parent;	/* that is being sent, too */
	DIR		   *dir;
	char		path[MAXPGPATH];
	char	  **names;
	int			nnames;
	int			nreturned;
	int			nseen;			/* of which files have been opened */
	struct dirent entry;		/* returned last */
} BackupDir;

/* all of a backup's, or NULL */
static MemoryContext backup_context = NULL;

static bool backup_is_incremental;

/* what kernel and file systems can do, as far as this process knows */
static bool may_dontcache = true;
static bool may_bypass = PG_O_DIRECT != 0;	/* the page cache */
static BackupDir *current_dir;
static List *expected;			/* paths, if files come from no directory */
static BackupFile *current;
static char refused[MAXPGPATH]; /* that cannot be, whose turn it is */
static dlist_head files_ahead;
static dlist_head free_files;
static dlist_head free_reads;
static int	nreads;				/* neither free nor taken */

/* ------------------------------------------------------------------------
 * Reads
 * ------------------------------------------------------------------------
 */

/* Wait for a read.  Returns bytes, or an error as -errno. */
static int
finish_read(BackupRead *read)
{
	if (!read->complete)
		pgaio_wref_wait(&read->wref);
	read->complete = true;
	return AioBackupChunkAt(read->chunk)->result;
}

/* Forget a read, which is waited for. */
static void
drop_read(BackupRead *read)
{
	finish_read(read);
	AioBackupReleaseChunk(read->chunk);
	dlist_delete(&read->node);
	dlist_push_head(&free_reads, &read->node);
	nreads--;
}

/* Learn which reads are complete, so that their handles can be used again. */
static void
note_complete(BackupFile *file)
{
	dlist_iter	iter;

	dlist_foreach(iter, &file->reads)
	{
		BackupRead *read = dlist_container(BackupRead, node, iter.cur);

		if (!read->complete)
			read->complete = pgaio_wref_check_done(&read->wref);
	}
}

/* How many reads may be neither free nor taken? */
static int
max_reads(void)
{
	return Min(maintenance_io_concurrency, AioBackupShareOfChunks());
}

/* A handle, or NULL if all are in use, and some of them by reads of ours. */
static PgAioHandle *
acquire_handle(void)
{
	PgAioHandle *ioh = pgaio_io_acquire_nb(NULL, NULL);
	dlist_iter	iter;

	if (ioh != NULL)
		return ioh;
	if (nreads == 0)
		return pgaio_io_acquire(NULL, NULL);
	if (current != NULL)
		note_complete(current);
	dlist_foreach(iter, &files_ahead)
		note_complete(dlist_container(BackupFile, node, iter.cur));
	return pgaio_io_acquire_nb(NULL, NULL);
}

/*
 * What is to be read next of a file, up to a chunk; false if there is
 * nothing. '*file' becomes what it is after that.
 */
static bool
next_extent(BackupFile *file, off_t *offset, size_t *length)
{
	const BlockNumber *blocks = file->blocks;

	*offset = file->next;
	if (blocks == NULL)
		*length = Min(AIO_BACKUP_CHUNK_SIZE, file->size - *offset);
	else
	{
		unsigned int first = file->next_block;
		unsigned int last;

		while (first < file->nblocks &&
			   (off_t) blocks[first] * BLCKSZ < file->next)
			first++;
		if (first == file->nblocks)
			return false;
		for (last = first;
			 last + 1 < file->nblocks && blocks[last + 1] == blocks[last] + 1 &&
			 last + 1 - first < AIO_BACKUP_CHUNK_SIZE / BLCKSZ;
			 last++)
			;
		file->next_block = first;
		*offset = (off_t) blocks[first] * BLCKSZ;
		*length = (last + 1 - first) * BLCKSZ;
		*length = Min(*length, file->size - *offset);
	}
	return *offset < file->size;
}

/* Choose by what the page cache has of these bytes. */
static ReadWay
choose_way(const BackupFile *file, off_t offset, size_t length)
{
	int			fd;

	if ((io_direct_flags & IO_DIRECT_DATA) != 0)
		return READ_DIRECT;
	fd = FileGetRawDesc(file->vfd);
	switch (fd < 0 ? AIO_CACHED_UNKNOWN :
			AioPageCacheHas(fd, file->device, offset, length))
	{
		case AIO_CACHED_ALL:
			return READ_NOT;
		case AIO_CACHED_NONE:
			if (may_bypass && file->direct_vfd >= 0)
				return READ_DIRECT;
			break;
		case AIO_CACHED_SOME:
		case AIO_CACHED_UNKNOWN:
			break;
	}
	return READ_BUFFERED;
}

/* Will an I/O worker be busy until a read is complete? */
static bool
is_in_worker(ReadWay way)
{
	return io_method == IOMETHOD_WORKER ||
		(io_method == IOMETHOD_LIBAIO && way == READ_BUFFERED);
}

/*
 * Have a file open, as it may have been closed because there are too many.
 * False if it is not there any more, though another one may have its name.
 */
static bool
is_open(const BackupFile *file, File vfd)
{
	int			fd = FileGetRawDesc(vfd);
	struct stat status;

	return fd >= 0 && fstat(fd, &status) == 0 &&
		status.st_dev == file->device && status.st_ino == file->inode;
}

/*
 * Begin the next read of a file.  False if there is nothing left to read, or
 * 'full' says that nothing can be read now.
 */
static bool
begin_read(BackupFile *file, bool *full)
{
	AioBackupChunk *chunk;
	BackupRead *read;
	PgAioHandle *ioh;
	struct iovec *iov;
	off_t		offset;
	size_t		length;
	ReadWay		way;
	File		vfd;

	if (nreads >= max_reads())
	{
		*full = true;
		return false;
	}
	for (;;)
	{
		if (!next_extent(file, &offset, &length))
			return false;
		way = choose_way(file, offset, length);
		if (way != READ_NOT)
			break;

		file->next = offset + length;

		/* then so is what comes next, probably: ask about ever fewer */
		if (file->blocks == NULL)
		{
			file->ncached = Min(2 * file->ncached + 1, CACHED_CHUNKS_MAX);
			file->next += (off_t) file->ncached * AIO_BACKUP_CHUNK_SIZE;
		}
	}
	file->ncached = 0;
	vfd = way == READ_DIRECT && file->direct_vfd >= 0 ?
		file->direct_vfd : file->vfd;
	if (!is_open(file, vfd))
	{
		file->next = file->size;
		return false;
	}
	*full = true;
	read = dlist_head_element(BackupRead, node, &free_reads);
	read->chunk = AioBackupTakeChunk(is_in_worker(way));
	if (read->chunk < 0)
		return false;
	chunk = AioBackupChunkAt(read->chunk);
	strlcpy(chunk->path, file->path, sizeof(chunk->path));
	chunk->open_flags = O_RDONLY | PG_BINARY;
	if (way == READ_DIRECT)
		chunk->open_flags |= PG_O_DIRECT;
	chunk->dontcache = way == READ_BUFFERED && may_dontcache;
	chunk->device = file->device;
	chunk->inode = file->inode;

	/* the file stays open, and nothing is interrupted */
	HOLD_INTERRUPTS();
	ioh = acquire_handle();
	if (ioh != NULL)
	{
		pgaio_io_get_wref(ioh, &read->wref);
		AioBackupSetTarget(ioh, read->chunk);
		if (way == READ_BUFFERED)
			pgaio_io_set_flag(ioh, PGAIO_HF_BUFFERED);
		pgaio_io_get_iovec(ioh, &iov);
		iov->iov_base = AioBackupChunkData(read->chunk);

		/* direct I/O wants whole blocks, also at the end of the file */
		iov->iov_len = TYPEALIGN(PG_IO_ALIGN_SIZE, length);
		if (FileStartReadV(ioh, vfd, 1, offset,
						   WAIT_EVENT_BASEBACKUP_READ) < 0)
			elog(ERROR, "file \"%s\" has been closed", file->path);
	}
	if (ioh == NULL)
	{
		AioBackupReleaseChunk(read->chunk);
		RESUME_INTERRUPTS();
		return false;
	}
	dlist_delete(&read->node);
	dlist_push_tail(&file->reads, &read->node);
	read->offset = offset;
	read->length = length;
	read->bypasses = vfd == file->direct_vfd;
	read->complete = false;
	nreads++;
	file->next = offset + length;
	RESUME_INTERRUPTS();
	*full = false;
	return true;
}

/* ------------------------------------------------------------------------
 * Files
 * ------------------------------------------------------------------------
 */

/*
 * Open a file, to read it ahead.  NULL if that cannot be; why not, will be
 * said by who has to read it.
 */
static BackupFile *
open_file(const char *path)
{
	BackupFile *file;
	struct stat status;
	int			flags = O_RDONLY | PG_BINARY;
	bool		direct = (io_direct_flags & IO_DIRECT_DATA) != 0;

	if (dlist_is_empty(&free_files) || strlen(path) >= MAXPGPATH)
		return NULL;
	file = dlist_head_element(BackupFile, node, &free_files);
	file->vfd = PathNameOpenFile(path, direct ? flags | PG_O_DIRECT : flags);
	if (file->vfd < 0)
		return NULL;
	file->direct_vfd = !direct && may_bypass ?
		PathNameOpenFile(path, flags | PG_O_DIRECT) : -1;
	dlist_delete(&file->node);
	if (FileGetRawDesc(file->vfd) < 0 ||
		fstat(FileGetRawDesc(file->vfd), &status) != 0)
		MemSet(&status, 0, sizeof(status));
	file->device = status.st_dev;
	file->inode = status.st_ino;
	file->size = status.st_size;
	file->next = 0;
	file->ncached = 0;
	file->blocks = NULL;
	dlist_init(&file->reads);
	strlcpy(file->path, path, sizeof(file->path));
	return file;
}

/*
 * Close a file that is in no list.  No interrupt can come between, and leave
 * what nobody knows of.
 */
static void
close_file(BackupFile *file)
{
	HOLD_INTERRUPTS();
	while (!dlist_is_empty(&file->reads))
		drop_read(dlist_head_element(BackupRead, node, &file->reads));
	FileClose(file->vfd);
	if (file->direct_vfd >= 0)
		FileClose(file->direct_vfd);
	dlist_push_head(&free_files, &file->node);
	RESUME_INTERRUPTS();
}

static void
close_current(void)
{
	if (current != NULL)
		close_file(current);
	current = NULL;
}

static void
close_first_ahead(void)
{
	close_file(dlist_container(BackupFile, node,
							   dlist_pop_head_node(&files_ahead)));
}

static void
close_last_ahead(void)
{
	BackupFile *file = dlist_tail_element(BackupFile, node, &files_ahead);

	dlist_delete(&file->node);
	close_file(file);
}

/*
 * Is what has this name in this directory a file that is read ahead?  Of
 * those that upstream does not send, this only has to know the ones that can
 * be large; others are read in vain.  If it is a directory, which comes
 * before what is behind it, 'is_dir' is set.
 */
static bool
is_sent(const BackupDir *dir, const char *name, bool *is_dir)
{
	RelFileNumber relfilenumber;
	ForkNumber	fork;
	unsigned int segno;
	char		path[MAXPGPATH];
	struct stat status;

	*is_dir = false;
	if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 ||
		strcmp(name, "backup_manifest") == 0 ||
		strncmp(name, PG_TEMP_FILE_PREFIX, strlen(PG_TEMP_FILE_PREFIX)) == 0 ||
		strcmp(name, "pg_control") == 0 || looks_like_temp_rel_name(name))
		return false;

	/* of an unlogged relation? */
	if (parse_filename_for_nontemp_relation(name, &relfilenumber, &fork,
											&segno) &&
		fork != INIT_FORKNUM)
	{
		snprintf(path, sizeof(path), "%s/%u_init", dir->path, relfilenumber);
		if (lstat(path, &status) == 0)
			return false;
	}
	snprintf(path, sizeof(path), "%s/%s", dir->path, name);
	if (lstat(path, &status) != 0)
		return false;
	*is_dir = S_ISDIR(status.st_mode);
	return S_ISREG(status.st_mode) && status.st_size > 0;
}

/*
 * Open the next file of this directory, or that is expected; NULL if there is
 * none.  Looks at so many names at once, because it cannot be interrupted.
 */
#define NAMES_AT_ONCE	256

static BackupFile *
open_next(void)
{
	BackupDir  *dir = current_dir;
	BackupFile *file = NULL;

	while (dir == NULL && file == NULL && expected != NIL &&
		   !dlist_is_empty(&free_files))
	{
		char	   *path = linitial(expected);

		expected = list_delete_first(expected);
		file = open_file(path);
		if (file != NULL)
			dlist_push_tail(&files_ahead, &file->node);
		pfree(path);
	}
	if (dir == NULL)
		return file;
	dir->nseen = Max(dir->nseen, dir->nreturned);
	for (int i = 0; i < NAMES_AT_ONCE && file == NULL &&
		 dir->nseen < dir->nnames && !dlist_is_empty(&free_files); i++)
	{
		const char *name = dir->names[dir->nseen];
		char		path[MAXPGPATH];
		bool		is_dir;
		bool		sent = is_sent(dir, name, &is_dir);

		if (is_dir)
			break;
		dir->nseen++;
		if (!sent)
			continue;
		snprintf(path, sizeof(path), "%s/%s", dir->path, name);
		file = open_file(path);
		if (file != NULL)
			dlist_push_tail(&files_ahead, &file->node);
	}
	return file;
}

/* Begin as many reads as may be. */
static void
begin_reads(void)
{
	bool		full = false;
	dlist_iter	iter;

	while (current != NULL && begin_read(current, &full))
		;

	/* it comes before those for whose reads there was room */
	while (full && current != NULL && current->next < current->size &&
		   dlist_is_empty(&current->reads) && !dlist_is_empty(&files_ahead))
	{
		close_last_ahead();
		full = false;
		begin_read(current, &full);
	}
	dlist_foreach(iter, &files_ahead)
	{
		while (!full &&
			   begin_read(dlist_container(BackupFile, node, iter.cur), &full))
			;
	}
	while (!full)
	{
		BackupFile *file = open_next();

		if (file == NULL)
			break;
		while (begin_read(file, &full))
			;
	}
	if (pgaio_my_backend->num_staged_ios > 0)
		pgaio_submit_staged();
}

/*
 * This file's turn has come, and upstream has opened it.  False if it cannot
 * be read ahead.
 */
static bool
switch_to(const char *path, int fd)
{
	dlist_iter	iter;
	bool		found = false;

	if (current != NULL && strcmp(current->path, path) == 0)
		return true;
	if (strcmp(refused, path) == 0)
		return false;
	refused[0] = '\0';
	close_current();
	dlist_foreach(iter, &files_ahead)
	{
		if (strcmp(dlist_container(BackupFile, node, iter.cur)->path, path) == 0)
		{
			found = true;
			break;
		}
	}
	if (found)
	{
		/* those before it have not been sent, and will not be */
		while (strcmp(dlist_head_element(BackupFile, node, &files_ahead)->path,
					  path) != 0)
			close_first_ahead();
		current = dlist_container(BackupFile, node,
								  dlist_pop_head_node(&files_ahead));
	}
	else
	{
		/* it comes before those that are open, and may need the place of one */
		if (dlist_is_empty(&free_files))
			close_last_ahead();
		current = open_file(path);
	}
	if (current != NULL)
	{
		struct stat status;

		/* the rest of it may have to come from there */
		if (fstat(fd, &status) != 0 || status.st_dev != current->device ||
			status.st_ino != current->inode)
			close_current();
		else if (status.st_size != current->size)
		{
			/* what had been its end is not where direct I/O can begin */
			current->size = status.st_size;
			current->next -= current->next % AIO_BACKUP_CHUNK_SIZE;
		}
	}
	if (current == NULL)
		strlcpy(refused, path, sizeof(refused));
	INJECTION_POINT("aio-backup-file", NULL);
	return current != NULL;
}

/*
 * Bytes of a file, which is open, from 'offset' on, up to as many as there is
 * room for.
 * Returns how many; 0 if they have not been read ahead, or there are none.
 */
ssize_t
AioBackupTake(int fd, const char *path, char *buf, size_t nbytes, off_t offset)
{
	BackupRead *read = NULL;
	off_t		end = offset;
	int			result;

	if (backup_context == NULL || !switch_to(path, fd))
		return 0;

	/* what has not been asked for will not be */
	while (!dlist_is_empty(&current->reads))
	{
		read = dlist_head_element(BackupRead, node, &current->reads);
		if (read->offset + (off_t) read->length > offset)
			break;
		drop_read(read);
		read = NULL;
	}
	if (read == NULL)
		current->next = Max(current->next, offset);
	begin_reads();
	if (read == NULL && !dlist_is_empty(&current->reads))
		read = dlist_head_element(BackupRead, node, &current->reads);

	if (read != NULL && read->offset <= offset)
	{
		result = finish_read(read);
		if (result == -EOPNOTSUPP)
			may_dontcache = false;
		else if (result == -EINVAL && read->bypasses)
			may_bypass = false;
		else if (result < 0)
			current->next = current->size;
		if (result > (int) read->length)
			result = read->length;	/* it was rounded up */

		/*
		 * Who checks pages wants whole ones, but for the end of the file.
		 * What is left when a read was short, he reads himself.
		 */
		if (result > 0 && read->offset + result < current->size)
			result -= (read->offset + result) % BLCKSZ;
		if (result > 0)
			end = read->offset + result;
		if (end > offset)
		{
			nbytes = Min(nbytes, (size_t) (end - offset));
			memcpy(buf, AioBackupChunkData(read->chunk) + (offset - read->offset),
				   nbytes);
			if (offset + (off_t) nbytes == read->offset + (off_t) read->length)
			{
				drop_read(read);
				begin_reads();
			}
			return nbytes;
		}
	}

	/* who reads it now need not do so again */
	current->next = Max(current->next, offset + (off_t) nbytes);
	return 0;
}

/*
 * This file will be sent after those that are expected already, and after the
 * one that is being sent.
 */
void
AioBackupExpect(const char *path)
{
	MemoryContext old;

	if (backup_context == NULL)
		return;
	Assert(current_dir == NULL);
	old = MemoryContextSwitchTo(backup_context);
	expected = lappend(expected, pstrdup(path));
	MemoryContextSwitchTo(old);
}

/* A file's turn has come: it, and those before it, are not expected now. */
static void
end_expecting(const char *path)
{
	int			nearlier = 0;

	foreach_ptr(char, other, expected)
	{
		nearlier++;
		if (strcmp(other, path) == 0)
		{
			for (int i = 0; i < nearlier; i++)
				pfree(list_nth(expected, i));
			expected = list_delete_first_n(expected, nearlier);
			break;
		}
	}
}

/*
 * sendFile(): a file's turn has come, which is open.  If it is sent
 * incrementally, these blocks of it are wanted, otherwise 'blocks' is NULL.
 */
void
AioBackupFile(int fd, const char *path, const BlockNumber *blocks,
			  unsigned int nblocks)
{
	if (backup_context == NULL)
		return;

	/* what it was read for has been sent, and the array may be another one */
	close_current();
	refused[0] = '\0';
	end_expecting(path);
	if (blocks == NULL || nblocks == 0 || !switch_to(path, fd))
		return;
	current->blocks = blocks;
	current->nblocks = nblocks;
	current->next_block = 0;
}

/* ------------------------------------------------------------------------
 * Directories
 * ------------------------------------------------------------------------
 */

/* Read all names of a directory. */
static void
open_dir(DIR *dir, const char *path)
{
	MemoryContext old = MemoryContextSwitchTo(backup_context);
	BackupDir  *new = palloc0_object(BackupDir);
	int			room = 64;
	struct dirent *entry;

	new->dir = dir;
	strlcpy(new->path, path, sizeof(new->path));
	new->names = palloc_array(char *, room);
	while ((entry = ReadDir(dir, path)) != NULL)
	{
		if (new->nnames == room)
			new->names = repalloc_array(new->names, char *, room *= 2);
		new->names[new->nnames++] = pstrdup(entry->d_name);
	}
	new->parent = current_dir;
	current_dir = new;
	while (!dlist_is_empty(&files_ahead))
		close_first_ahead();	/* they have not been sent */
	MemoryContextSwitchTo(old);
}

static void
close_dir(void)
{
	BackupDir  *dir = current_dir;

	while (!dlist_is_empty(&files_ahead))
		close_first_ahead();
	current_dir = dir->parent;
	for (int i = 0; i < dir->nnames; i++)
		pfree(dir->names[i]);
	pfree(dir->names);
	pfree(dir);
}

/*
 * sendDir(): in place of ReadDir(), whose arguments, result and errors this
 * has.  With 'sizeonly', nothing is going to be read.
 */
struct dirent *
AioBackupReadDir(DIR *dir, const char *path, bool sizeonly)
{
	if (backup_context == NULL || sizeonly || backup_is_incremental ||
		dir == NULL || strlen(path) >= MAXPGPATH)
		return ReadDir(dir, path);

	if (current_dir == NULL || current_dir->dir != dir)
		open_dir(dir, path);
	if (current_dir->nreturned == current_dir->nnames)
	{
		close_dir();
		return NULL;
	}
	strlcpy(current_dir->entry.d_name,
			current_dir->names[current_dir->nreturned++],
			sizeof(current_dir->entry.d_name));
	return &current_dir->entry;
}

/* ------------------------------------------------------------------------
 * Beginning and end
 * ------------------------------------------------------------------------
 */

static void
at_exit(int code, Datum arg)
{
	AioBackupEnd();
}

/* Can RWF_DONTCACHE be relied on?  Versions before 6.16 have faults in it. */
static bool
kernel_can_dontcache(void)
{
	struct utsname name;
	int			major;
	int			minor;

	return uname(&name) == 0 && strcmp(name.sysname, "Linux") == 0 &&
		sscanf(name.release, "%d.%d", &major, &minor) == 2 &&
		(major > 6 || (major == 6 && minor >= 16));
}

/*
 * SendBaseBackup(): a backup begins.  All that could fail later is done here.
 */
void
AioBackupBegin(bool incremental)
{
	int			nfiles = Min(FILES_AHEAD, max_safe_fds / 8) + 1;
	int			nchunks = AioBackupChunks();
	static bool registered = false;
	MemoryContext context;
	BackupFile *files;
	BackupRead *reads;

	Assert(backup_context == NULL);
	if (io_method == IOMETHOD_SYNC || max_reads() == 0)
		return;
	if (!registered)
		before_shmem_exit(at_exit, (Datum) 0);
	registered = true;
	context = AllocSetContextCreate(TopMemoryContext, "AIO base backup",
									ALLOCSET_DEFAULT_SIZES);
	backup_is_incremental = incremental;
	may_dontcache = may_dontcache && kernel_can_dontcache();
	current_dir = NULL;
	expected = NIL;
	current = NULL;
	refused[0] = '\0';
	nreads = 0;
	dlist_init(&files_ahead);
	dlist_init(&free_files);
	dlist_init(&free_reads);
	files = MemoryContextAlloc(context, nfiles * sizeof(BackupFile));
	for (int i = 0; i < nfiles; i++)
		dlist_push_head(&free_files, &files[i].node);
	reads = MemoryContextAlloc(context, nchunks * sizeof(BackupRead));
	for (int i = 0; i < nchunks; i++)
		dlist_push_head(&free_reads, &reads[i].node);
	AioBackupUseChunks(true);
	backup_context = context;
}

/*
 * It has ended, perhaps with an error, or the process is about to exit.
 * Waits for reads, raises nothing.
 */
void
AioBackupEnd(void)
{
	MemoryContext context = backup_context;

	if (context == NULL)
		return;
	HOLD_INTERRUPTS();
	close_current();
	while (!dlist_is_empty(&files_ahead))
		close_first_ahead();
	Assert(nreads == 0);
	AioBackupUseChunks(false);
	backup_context = NULL;
	MemoryContextDelete(context);
	RESUME_INTERRUPTS();
}
