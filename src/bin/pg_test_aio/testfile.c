/*-------------------------------------------------------------------------
 *
 * testfile.c
 *	  What is in the one file that is read and written.
 *
 * A failure of the file system ends the program with a message.
 *
 * Tests: src/bin/pg_test_aio/t/001_pg_test_aio.pl.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres_fe.h"

#include <fcntl.h>
#include <unistd.h>

#include "common/logging.h"
#include "common/pg_prng.h"
#include "pg_test_aio.h"

#define FILL_CHUNK		MEGABYTE

StaticAssertDecl(FILL_CHUNK <= BUFFER_TOTAL, "a chunk fits into the buffers");

#define SECTOR			512

/* so much is written between two looks at the clock, each after a sync */
#define FILL_STEP		(16 * MEGABYTE)

/* no more than this many seconds, or times those of a test, to fill it */
#define FILL_SECONDS	10

static int64 size = 0;

/* Report that an I/O has failed, and end. */
void
testfile_failed(IoOp op, int error)
{
	errno = error;
	if (op == IO_READ)
		pg_fatal("could not read the test file in directory \"%s\": %m", options.directory);
	if (op == IO_DATASYNC)
		pg_fatal("could not sync the test file in directory \"%s\": %m", options.directory);
	pg_fatal("could not write the test file in directory \"%s\": %m", options.directory);
}

/*
 * Does this error say that a file system, or a kernel, has no such operation?
 * Which one it is, they do not agree about.
 */
bool
testfile_cannot(int error)
{
	return error == EOPNOTSUPP || error == ENOSYS || error == EINVAL;
}

/*
 * Memory for the i-th of I/Os of this length, aligned for direct I/O.  Its
 * content is random, and it stays as long as the program runs.
 */
char *
testfile_buffer(int i, size_t length)
{
	static char *buffers = NULL;

	Assert((i + 1) * length <= BUFFER_TOTAL);
	if (buffers == NULL)
	{
		buffers = pg_malloc(BUFFER_TOTAL + PG_IO_ALIGN_SIZE);
		buffers = (char *) TYPEALIGN(PG_IO_ALIGN_SIZE, buffers);
		for (size_t at = 0; at < BUFFER_TOTAL; at += sizeof(uint64))
			*(uint64 *) (buffers + at) = pg_prng_uint64(&pg_global_prng_state);
	}
	return buffers + i * length;
}

/*
 * Make what is about to be written unlike anything that was written before, in
 * each of its sectors: a file system, or a disk, may store the same data once.
 */
void
testfile_vary(char *buffer, size_t length)
{
	for (size_t at = 0; at < length; at += SECTOR)
		*(uint64 *) (buffer + at) = pg_prng_uint64(&pg_global_prng_state);
}

/*
 * Make the file so large, or as large as it becomes in FILL_SECONDS, if the
 * disk is slow.  The content is random: a file system might compress other
 * content.
 */
void
testfile_fill(int64 wanted)
{
	FileMode	mode = testfile_has(MODE_DIRECT) ? MODE_DIRECT : MODE_BUFFERED;
	double		limit = FILL_SECONDS * Max(options.seconds, 1);
	int64		deadline = now_ns() + (int64) (limit * 1e9);
	IoRequest	request = {
		.op = IO_WRITE,
		.fd = testfile_fd(mode, SYNC_NONE),
		.length = FILL_CHUNK,
		.buffer = testfile_buffer(0, FILL_CHUNK),
	};

	if (size >= wanted)
		return;
	while (size < wanted)
	{
		testfile_vary(request.buffer, FILL_CHUNK);
		request.offset = size;
		io_perform(&request);
		size += FILL_CHUNK;
		if (size % FILL_STEP == 0)
		{
			testfile_sync();
			if (now_ns() > deadline)
				break;
		}
	}
	testfile_sync();
}

/* How much of it is filled? */
int64
testfile_size(void)
{
	return size;
}

/* Give its space back. */
void
testfile_truncate(void)
{
	if (ftruncate(testfile_fd(MODE_BUFFERED, SYNC_NONE), 0) != 0)
		testfile_failed(IO_WRITE, errno);
	size = 0;
}

/* Sync it. */
void
testfile_sync(void)
{
	if (fdatasync(testfile_fd(MODE_BUFFERED, SYNC_NONE)) != 0)
		testfile_failed(IO_DATASYNC, errno);
}

/*
 * Have the kernel drop what it has cached, such that buffered reads have to go
 * to the disk.
 */
void
testfile_forget_cached(void)
{
	testfile_sync();
#if defined(USE_POSIX_FADVISE) && defined(POSIX_FADV_DONTNEED)
	(void) posix_fadvise(testfile_fd(MODE_BUFFERED, SYNC_NONE), 0, 0,
						 POSIX_FADV_DONTNEED);
#endif
}

/*
 * Allocate space, without moving the end of the file if 'keep_size'.  Returns
 * 0, or the errno of a file system or a kernel that cannot do that.
 */
int
testfile_allocate(int64 offset, int64 length, bool keep_size)
{
	int			fd = testfile_fd(MODE_BUFFERED, SYNC_NONE);
	int			error;

	do
	{
#ifdef __linux__
		error = fallocate(fd, keep_size ? FALLOC_FL_KEEP_SIZE : 0, offset,
						  length) == 0 ? 0 : errno;
#elif defined(HAVE_POSIX_FALLOCATE)
		error = keep_size ? EOPNOTSUPP : posix_fallocate(fd, offset, length);
#else
		error = EOPNOTSUPP;
#endif
	} while (error == EINTR);
	if (error != 0 && !testfile_cannot(error))
		testfile_failed(IO_WRITE, error);
	return error;
}
