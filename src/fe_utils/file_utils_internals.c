/*-------------------------------------------------------------------------
 *
 * file_utils_internals.c
 *	  Included at the end of common/file_utils.c: what has been synced already
 *	  is not synced again.
 *
 * Upstream's programs sync everything below a directory when they have written
 * it.  fsync() of a file that is on disk is not free: file systems let the disk
 * empty its cache for each.  Directories are always synced.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#ifdef FRONTEND

/* set by stream_file.c in programs that write streams */
bool		(*aio_file_is_synced) (const char *path) = NULL;

/* Do this with a file, unless it has been synced and not changed since. */
int
AioSyncFile(AioFileAction action, const char *path)
{
	if (aio_file_is_synced != NULL && aio_file_is_synced(path))
		return 0;
	return action(path, false);
}

#endif							/* FRONTEND */
