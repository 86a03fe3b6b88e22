/*-------------------------------------------------------------------------
 *
 * file_copy.h
 *	  Files that a backend copies do not fill the page cache.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AIO_FILE_COPY_H
#define AIO_FILE_COPY_H

extern void AioFlushCopy(int fd, pgoff_t offset, pgoff_t length);

#endif							/* AIO_FILE_COPY_H */
