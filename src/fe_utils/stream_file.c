/*-------------------------------------------------------------------------
 *
 * stream_file.c
 *	  Files that programs write from the beginning to the end: they leave the
 *	  page cache on their way to the disk, and are synced one by one.
 *
 * AioOpenStream() stands in for fopen(path, "wb"): what it returns is written
 * with fwrite() and closed with fclose(), as any file of stdio.  Beneath,
 * space is allocated where the size is known, data is written in pieces of
 * PIECE bytes, the kernel is told to write them to disk soon, and what is on
 * disk is dropped from the page cache.  So a backup neither fills memory with
 * dirty pages, nor evicts what others have cached.
 *
 * AioOpenStreamFd() stands in for open(), for programs that write by
 * descriptors.  A program has one such stream open at a time.  Nothing is
 * collected for it here: each write() is one, and fails as ever.  If files
 * are not to be synced, it is a file like any other: who waits for no disk at
 * the end does not want to wait for it before.  After AioKeepStreams(), files
 * stay in the page cache.
 *
 * A thread syncs the files that have been closed, while others are written.
 * It has a descriptor of its own for each, but none of the last few that the
 * process may have: whatever else the program opens finds as many as it needs,
 * without waiting for the thread, and if it may have few, files are left for
 * the end.  Files of less than PIECE bytes
 * cost no system call but dup() before it is their turn.  It takes all that
 * are waiting and has the kernel begin to write all of them before it syncs
 * the first, so that they share the work on the file system's journal.
 *
 * The thread neither logs nor exits: the first error is kept, and ends the
 * program when it opens the next file, or at the latest when the last has
 * come. Then upstream's programs sync everything below a directory.  That is
 * when directories are synced, and all files that were not written here, have
 * been changed since, or could not be handed over to the thread.  A file is
 * recognized by its inode, and by its time of change and its size, which are
 * read before its fsync() begins.
 *
 * A program that forks says so in the child, where there is no thread, and has
 * it send to the parent what it has synced.
 *
 * Without AioSyncStreams(true), nothing is synced, small files are left to
 * the kernel, and the thread drops the others when they are on disk.
 *
 * Where the operating system is not Linux, this is fopen().  Where the file
 * system does not allocate, or cannot be told to write, it does not.
 *
 * A file counts as synced if an fsync() that began after it was written and
 * closed has succeeded.  sync_file_range() consumes the error of a write-back
 * that failed, whatever the device calls it, so that no later fsync() by the
 * same descriptor, or a copy of it, would report it; and a file system that
 * finds no space for what it has put off drops that and tells only who wrote
 * it back.  Hence its errors are errors.
 *
 * Tests: src/test/aio/backup/t/002_client.pl, 004_programs.pl.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres_fe.h"

#include "aio/stream_file.h"

#ifdef __linux__

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <linux/magic.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "common/logging.h"

/* what is written at once; files that have less are small */
#define PIECE			(256 * 1024)

/* how much is collected before the kernel is told to write it */
#define STRETCH			(1024 * 1024)

/*
 * How much of an open file the kernel may be writing; here and below, for all
 * processes that share it.
 */
#define MAX_IN_FLIGHT	(8 * 1024 * 1024)

/* how many files may wait for the thread, and how much of them */
#define MAX_CLOSED		64
#define MAX_CLOSED_DIRTY (16 * 1024 * 1024)

/*
 * How many descriptors a program has to find free at any time: for the file
 * that it writes, one that it reads, its connections, and directories that it
 * is walking through.
 */
#define FREE_DESCRIPTORS 20

/* A file that is being written.  Up to each of these, its bytes are ... */
typedef struct Stream
{
	int			fd;
	char	   *path;
	pgoff_t		allocated;		/* given space, or 0 */
	pgoff_t		written;		/* known to the kernel */
	pgoff_t		started;		/* on their way to disk */
	pgoff_t		dropped;		/* on disk, and need not be cached */
	int			error;			/* of the write that failed, or 0 */
	char		buffer[FLEXIBLE_ARRAY_MEMBER];	/* of stdio */
} Stream;

/* A file that is complete. */
typedef struct ClosedFile
{
	int			fd;
	char	   *path;
	pgoff_t		dirty;			/* bytes that may not be on disk */
} ClosedFile;

/* A file that is on disk, as it was then. */
typedef struct SyncedFile
{
	dev_t		device;
	ino_t		inode;
	pgoff_t		size;
	struct timespec changed;
} SyncedFile;

/*
 * What is shared with the thread, under the lock: files that it has not taken
 * yet, how many there are including those that it has taken, and the first
 * error.
 */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t file_added = PTHREAD_COND_INITIALIZER;
static pthread_cond_t file_done = PTHREAD_COND_INITIALIZER;
static ClosedFile waiting[MAX_CLOSED];
static int	nwaiting = 0;
static int	nclosed = 0;
static pgoff_t closed_dirty = 0;
static int	failure = 0;
static char *failed_path = NULL;

/* the thread's own while there are closed files, and then the main thread's */
static SyncedFile *synced = NULL;
static size_t nsynced = 0;
static size_t synced_limit = 0;
static bool synced_is_sorted = false;

/* is there a thread, or could none be started? */
static bool thread_is_started = false;
static bool thread_is_missing = false;

/* set before there is a thread */
static bool sync_streams = false;
static bool keep_streams = false;

/* processes that write streams together, and share what may be dirty */
static int	nsharing = 1;

/* what this program needs besides FREE_DESCRIPTORS */
static int	reserved_descriptors = 0;

/* the one that AioOpenStreamFd() has opened, or NULL */
static Stream *descriptor_stream = NULL;


/*
 * Remember a file.  If there is no memory, it will be synced once more.
 */
static void
add_synced(const SyncedFile *file)
{
	if (nsynced == synced_limit)
	{
		size_t		limit = Max(1024, 2 * synced_limit);
		SyncedFile *larger = realloc(synced, limit * sizeof(SyncedFile));

		if (larger == NULL)
			return;
		synced = larger;
		synced_limit = limit;
	}
	synced[nsynced++] = *file;
	synced_is_sorted = false;
}

/* What is to be remembered of a file; bytes that mean nothing are 0. */
static void
describe_file(SyncedFile *file, const struct stat *st)
{
	memset(file, 0, sizeof(*file));
	file->device = st->st_dev;
	file->inode = st->st_ino;
	file->size = st->st_size;
	file->changed = st->st_ctim;
}

/*
 * Have the kernel write these bytes of a file; with 'wait', until they are on
 * disk.  Returns errno, or 0 also where there is no such thing.
 */
static int
write_range(int fd, pgoff_t offset, pgoff_t length, bool wait)
{
	unsigned int flags = SYNC_FILE_RANGE_WRITE;

	if (wait)
		flags |= SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WAIT_AFTER;
	if (sync_file_range(fd, offset, length, flags) == 0)
		return 0;
	switch (errno)
	{
		case EINVAL:
		case ENOSYS:
		case EOPNOTSUPP:
		case EPERM:
		case ESPIPE:
			return 0;
		case EAGAIN:
		case ENOMEM:
			/* they are still to be written */
			return wait ? errno : 0;
		default:
			return errno;
	}
}

/*
 * Bring a file to disk and out of the page cache, in the thread.  Returns
 * errno.
 */
static int
sync_closed_file(const ClosedFile *file)
{
	struct stat st;
	SyncedFile	done;
	int			error = 0;

	if (!sync_streams)
		error = write_range(file->fd, 0, 0, true);
	else if (fstat(file->fd, &st) != 0 || fsync(file->fd) != 0)
		error = errno;
	else
	{
		describe_file(&done, &st);
		add_synced(&done);
	}

	if (!keep_streams)
		(void) posix_fadvise(file->fd, 0, 0, POSIX_FADV_DONTNEED);
	/* an error of close() was met when the first descriptor was closed */
	(void) close(file->fd);
	return error;
}

/* The thread. */
static void *
sync_closed_files(void *arg)
{
	for (;;)
	{
		ClosedFile	files[MAX_CLOSED];
		int			errors[MAX_CLOSED] = {0};
		int			nfiles;

		pthread_mutex_lock(&lock);
		while (nwaiting == 0)
			pthread_cond_wait(&file_added, &lock);
		nfiles = nwaiting;
		memcpy(files, waiting, nfiles * sizeof(ClosedFile));
		nwaiting = 0;
		pthread_mutex_unlock(&lock);

		for (int i = 0; i < nfiles && nfiles > 1; i++)
			errors[i] = write_range(files[i].fd, 0, 0, false);

		for (int i = 0; i < nfiles; i++)
		{
			int			error = sync_closed_file(&files[i]);

			if (errors[i] != 0)
				error = errors[i];
			pthread_mutex_lock(&lock);
			if (error != 0 && failure == 0)
			{
				failure = error;
				failed_path = files[i].path;
			}
			else
				free(files[i].path);
			nclosed--;
			closed_dirty -= files[i].dirty;
			pthread_cond_signal(&file_done);
			pthread_mutex_unlock(&lock);
		}
	}
	return NULL;
}

/*
 * Start the thread if there is none.  No signal is its business.  If there
 * cannot be one, all is synced at the end.
 */
static bool
have_thread(void)
{
	if (!thread_is_started && !thread_is_missing)
	{
		pthread_t	thread;
		sigset_t	all,
					before;

		sigfillset(&all);
		pthread_sigmask(SIG_SETMASK, &all, &before);
		thread_is_started =
			pthread_create(&thread, NULL, sync_closed_files, NULL) == 0;
		thread_is_missing = !thread_is_started;
		pthread_sigmask(SIG_SETMASK, &before, NULL);
		if (thread_is_started)
			pthread_detach(thread);
	}
	return thread_is_started;
}

/*
 * Give a file to the thread, when there is room.  The descriptor and the path
 * are its own from now on.  Who sends a backup must not wait long, so of
 * small files those for which there is none are left for the end.
 */
static void
hand_over(int fd, char *path, pgoff_t dirty)
{
	bool		taken = false;

	if (have_thread())
	{
		pthread_mutex_lock(&lock);
		while (failure == 0 && dirty >= PIECE &&
			   (nclosed == MAX_CLOSED ||
				(nclosed > 0 && closed_dirty + dirty > MAX_CLOSED_DIRTY / nsharing)))
			pthread_cond_wait(&file_done, &lock);
		if (failure == 0 && nclosed < MAX_CLOSED)
		{
			waiting[nwaiting++] = (ClosedFile)
			{
				fd, path, dirty
			};
			nclosed++;
			closed_dirty += dirty;
			pthread_cond_signal(&file_added);
			taken = true;
		}
		pthread_mutex_unlock(&lock);
	}
	if (!taken)
	{
		(void) close(fd);
		free(path);
	}
}

/*
 * End the program if the thread has met an error; before, if wanted, wait
 * until it has nothing more to do.
 */
static void
check_thread(bool wait)
{
	int			error;

	pthread_mutex_lock(&lock);
	while (wait && nclosed > 0 && failure == 0)
		pthread_cond_wait(&file_done, &lock);
	error = failure;
	pthread_mutex_unlock(&lock);

	if (error != 0)
	{
		errno = error;
		if (sync_streams)
			pg_fatal("could not fsync file \"%s\": %m", failed_path);
		else
			pg_fatal("could not write to file \"%s\": %m", failed_path);
	}
}

/* For qsort() and bsearch(). */
static int
compare_synced(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(SyncedFile));
}

/*
 * Is this file on disk, as it is now?  The first call waits for the thread.
 */
static bool
is_synced(const char *path)
{
	struct stat st;
	SyncedFile	key;

	check_thread(true);
	if (!synced_is_sorted)
	{
		qsort(synced, nsynced, sizeof(SyncedFile), compare_synced);
		synced_is_sorted = true;
	}
	if (nsynced == 0 || stat(path, &st) != 0)
		return false;
	describe_file(&key, &st);
	return bsearch(&key, synced, nsynced, sizeof(SyncedFile),
				   compare_synced) != NULL;
}

/*
 * Have the kernel write what has been written to a stream, wait for what is
 * too far behind, and drop it from the page cache.  Returns false, with
 * errno, if something could not be written.
 */
static bool
write_back(Stream *stream)
{
	pgoff_t		behind;
	int			error;

	if (stream->written - stream->started < STRETCH)
		return true;
	error = write_range(stream->fd, stream->started,
						stream->written - stream->started, false);
	stream->started = stream->written;

	behind = stream->started - stream->dropped -
		Max(MAX_IN_FLIGHT / nsharing, STRETCH);
	if (error == 0 && behind > 0)
		error = write_range(stream->fd, stream->dropped, behind, true);
	if (error != 0)
	{
		errno = error;
		return false;
	}
	if (behind <= 0)
		return true;
	if (!keep_streams)
		(void) posix_fadvise(stream->fd, stream->dropped, behind,
							 POSIX_FADV_DONTNEED);
	stream->dropped += behind;
	return true;
}

/* What stdio calls to write: less than all of it is an error. */
static ssize_t
write_stream(void *cookie, const char *data, size_t size)
{
	Stream	   *stream = cookie;
	size_t		done = 0;

	while (done < size)
	{
		ssize_t		written = write(stream->fd, data + done, size - done);

		if (written > 0)
			done += written;
		else if (written == 0 || errno != EINTR)
		{
			/* nothing written and no error: there is no space */
			stream->error = errno = written == 0 ? ENOSPC : errno;
			return 0;
		}
	}
	stream->written += size;
	if (!write_back(stream))
	{
		stream->error = errno;
		return 0;
	}
	return size;
}

/*
 * A descriptor for the thread, or -1.  The system hands out the lowest number
 * that is free, so if the thread has none of the highest, these are free for
 * others.  For a file that is not small, it is worth while to wait until the
 * thread has given back those that it has.
 */
static int
copy_for_thread(int fd, pgoff_t dirty)
{
	struct rlimit limit;
	int			copy;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
		return -1;
	copy = dup(fd);
	for (int i = 0;; i++)
	{
		if (copy >= 0 &&
			copy + FREE_DESCRIPTORS + reserved_descriptors < limit.rlim_cur)
			return copy;
		if (copy >= 0)
			(void) close(copy);
		if (i > 0 || dirty < PIECE)
			return -1;
		check_thread(true);
		copy = dup(fd);
	}
}

/*
 * What stdio calls to close, when it has tried to write everything.  If it
 * could not, the error of that is the one to tell.
 */
static int
close_stream(void *cookie)
{
	Stream	   *stream = cookie;
	pgoff_t		dirty = stream->written - stream->dropped;
	int			copy = -1;
	int			error = stream->error;

	/* only space is lost if this fails */
	if (stream->allocated > stream->written)
		(void) !ftruncate(stream->fd, stream->written);

	/* close() reports errors of some file systems, to us and not the thread */
	if (error == 0 && (sync_streams || stream->written >= PIECE))
		copy = copy_for_thread(stream->fd, dirty);
	if (close(stream->fd) != 0 && error == 0)
		error = errno;

	if (copy >= 0)
		hand_over(copy, stream->path, dirty);
	else
		free(stream->path);
	free(stream);
	errno = error;
	return error != 0 ? EOF : 0;
}

static const cookie_io_functions_t stream_functions = {
	.write = write_stream,
	.close = close_stream
};

/* Is space allocated for nothing?  On btrfs, that switches off compression. */
static bool
may_allocate(int fd)
{
	struct statfs st;

	return fstatfs(fd, &st) == 0 && st.f_type != BTRFS_SUPER_MAGIC;
}

/*
 * Open a file that will be written from the beginning to the end, with room
 * for a buffer.  The size is what it is likely to have, or 0.  Returns NULL,
 * with errno, as open() fails; ends the program if a file that was closed
 * before could not be synced.
 */
static Stream *
open_stream(const char *path, int flags, mode_t mode, pgoff_t size,
			size_t buffer_size)
{
	Stream	   *stream;
	int			fd;

	check_thread(false);
	fd = open(path, flags, mode);
	if (fd < 0)
		return NULL;

	stream = pg_malloc(offsetof(Stream, buffer) + buffer_size);
	stream->fd = fd;
	stream->path = pg_strdup(path);
	stream->allocated = stream->written = 0;
	stream->started = stream->dropped = 0;
	stream->error = 0;

	/* if there is no space, write() will say so */
	if (size >= PIECE && may_allocate(fd) &&
		fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, size) == 0)
		stream->allocated = size;
	return stream;
}

/* The same for stdio, as fopen(path, "wb"). */
FILE *
AioOpenStream(const char *path, pgoff_t size)
{
	Stream	   *stream;
	FILE	   *file;

	stream = open_stream(path, O_WRONLY | O_CREAT | O_TRUNC | PG_BINARY,
						 S_IRUSR | S_IWUSR | S_IRGRP | S_IWGRP |
						 S_IROTH | S_IWOTH, size, PIECE);
	if (stream == NULL)
		return NULL;
	file = fopencookie(stream, "wb", stream_functions);
	if (file == NULL || setvbuf(file, stream->buffer, _IOFBF, PIECE) != 0)
		pg_fatal("out of memory");
	return file;
}

/*
 * The same for a program that calls write(): returns a descriptor, or -1 with
 * errno.
 */
int
AioOpenStreamFd(const char *path, int flags, mode_t mode, pgoff_t size)
{
	if (!sync_streams)
		return open(path, flags, mode);
	Assert(descriptor_stream == NULL);
	descriptor_stream = open_stream(path, flags, mode, size, 0);
	return descriptor_stream == NULL ? -1 : descriptor_stream->fd;
}

/*
 * As lseek() from the beginning.  What is skipped counts as written, which
 * does no harm; what is written once more will be on disk when it is synced.
 */
pgoff_t
AioSeekStreamFd(int fd, pgoff_t offset, int whence)
{
	Stream	   *stream = descriptor_stream;

	Assert(whence == SEEK_SET);
	if (stream != NULL && stream->fd == fd)
	{
		if (offset < stream->written)
			stream->started = stream->dropped = offset;
		stream->written = offset;
	}
	return lseek(fd, offset, whence);
}

/* As write().  An error may be that of something that was written before. */
ssize_t
AioWriteStreamFd(int fd, const void *data, size_t size)
{
	Stream	   *stream = descriptor_stream;
	ssize_t		written = write(fd, data, size);

	if (stream == NULL || stream->fd != fd)
		return written;
	if (written < 0)
		stream->error = errno;
	else
	{
		stream->written += written;
		if (!write_back(stream))
		{
			stream->error = errno;
			return -1;
		}
	}
	return written;
}

/*
 * As close().  A file to which nothing was written is likely to be opened once
 * more, and left for the end.
 */
int
AioCloseStreamFd(int fd)
{
	Stream	   *stream = descriptor_stream;

	if (stream == NULL || stream->fd != fd)
		return close(fd);
	descriptor_stream = NULL;
	if (stream->written > 0 || stream->error != 0)
		return close_stream(stream);
	free(stream->path);
	free(stream);
	return close(fd);
}

/* The same where nobody looks at what close() says: end the program. */
void
AioEndStreamFd(int fd, const char *path)
{
	if (AioCloseStreamFd(fd) != 0)
		pg_fatal("could not close file \"%s\": %m", path);
}

/*
 * Shall files be synced?  The first call counts, and has to come before the
 * first file is closed.
 */
void
AioSyncStreams(bool sync)
{
	static bool called = false;

	if (called)
		return;
	called = true;
	sync_streams = sync;
	aio_file_is_synced = sync ? is_synced : NULL;
}

/* Who has written the files will soon read them: do not drop them. */
void
AioKeepStreams(void)
{
	keep_streams = true;
}

/*
 * The last file has been closed: wait until the thread is done with all, and
 * end the program if that has met an error.
 */
void
AioFinishStreams(void)
{
	check_thread(true);
}

/*
 * So many processes, with those that this one is going to fork, write streams
 * at the same time.
 */
void
AioShareStreams(int nprocesses)
{
	nsharing = nprocesses;
}

/*
 * The program is going to need so many more descriptors at a time than others
 * do.
 */
void
AioReserveDescriptors(int n)
{
	reserved_descriptors = n;
}

/*
 * This is the child of a process that may have a thread, which has not come
 * along.  Files that the parent has closed are its business.
 */
void
AioForkStreams(void)
{
	pthread_mutex_init(&lock, NULL);
	pthread_cond_init(&file_added, NULL);
	pthread_cond_init(&file_done, NULL);
	nwaiting = nclosed = 0;
	closed_dirty = 0;
	synced = NULL;
	nsynced = synced_limit = 0;
	thread_is_started = thread_is_missing = false;
}

/*
 * A child has finished its streams: tell its parent which files are synced, by
 * this descriptor, and close it.  Returns false, with errno, if that fails.
 */
bool
AioSendSynced(int fd)
{
	const char *data = (const char *) synced;
	size_t		left = nsynced * sizeof(SyncedFile);

	while (left > 0)
	{
		ssize_t		written = write(fd, data, left);

		if (written < 0 && errno != EINTR)
			return false;
		if (written > 0)
		{
			data += written;
			left -= written;
		}
	}
	return close(fd) == 0;
}

/*
 * The parent: receive that until the child has closed its end.  Returns false,
 * with errno, if that fails.
 */
bool
AioReceiveSynced(int fd)
{
	SyncedFile	file;
	size_t		length = 0;
	ssize_t		nread;

	/* the thread has a list of its own */
	check_thread(true);
	while ((nread = read(fd, (char *) &file + length,
						 sizeof(file) - length)) != 0)
	{
		if (nread < 0 && errno != EINTR)
			return false;
		if (nread > 0)
			length += nread;
		if (length == sizeof(file))
		{
			add_synced(&file);
			length = 0;
		}
	}
	close(fd);
	return true;
}

#else							/* not Linux */

FILE *
AioOpenStream(const char *path, pgoff_t size)
{
	return fopen(path, "wb");
}

int
AioOpenStreamFd(const char *path, int flags, mode_t mode, pgoff_t size)
{
	return open(path, flags, mode);
}

pgoff_t
AioSeekStreamFd(int fd, pgoff_t offset, int whence)
{
	return lseek(fd, offset, whence);
}

ssize_t
AioWriteStreamFd(int fd, const void *data, size_t size)
{
	return write(fd, data, size);
}

int
AioCloseStreamFd(int fd)
{
	return close(fd);
}

void
AioEndStreamFd(int fd, const char *path)
{
	(void) close(fd);
}

void
AioSyncStreams(bool sync)
{
}

void
AioKeepStreams(void)
{
}

void
AioFinishStreams(void)
{
}

void
AioShareStreams(int nprocesses)
{
}

void
AioReserveDescriptors(int n)
{
}

void
AioForkStreams(void)
{
}

bool
AioSendSynced(int fd)
{
	close(fd);
	return true;
}

bool
AioReceiveSynced(int fd)
{
	close(fd);
	return true;
}

#endif
