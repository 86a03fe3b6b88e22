/*-------------------------------------------------------------------------
 *
 * worker_file.h
 *	  The file that an I/O worker has opened for an I/O.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AIO_WORKER_FILE_H
#define AIO_WORKER_FILE_H

#include "storage/aio_types.h"

extern void AioSetWorkerFile(const PgAioHandle *ioh, int fd);
extern bool AioCloseWorkerFile(const PgAioHandle *ioh);

#endif							/* AIO_WORKER_FILE_H */
