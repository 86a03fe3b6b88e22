/*-------------------------------------------------------------------------
 *
 * fd_internals.c
 *	  Included at the end of storage/file/fd.c: how much is in temporary files?
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "aio/temp_room.h"

/* Bytes in all temporary files of this session that temp_file_limit counts. */
uint64
AioTempBytes(void)
{
	return temporary_files_size;
}
