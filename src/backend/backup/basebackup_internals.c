/*-------------------------------------------------------------------------
 *
 * basebackup_internals.c
 *	  Included at the end of backup/basebackup.c: what has not been read ahead
 *	  is read as ever.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "backup_internal.h"

/*
 * In place of basebackup_read_file(), where less than was asked for will do.
 * Arguments, result and errors are that function's.
 */
ssize_t
AioBackupRead(int fd, char *buf, size_t nbytes, off_t offset, const char *path)
{
	ssize_t		taken = AioBackupTake(fd, path, buf, nbytes, offset);

	if (taken > 0)
		return taken;
	return basebackup_read_file(fd, buf, nbytes, offset, path, true);
}
