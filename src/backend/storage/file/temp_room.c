/*-------------------------------------------------------------------------
 *
 * temp_room.c
 *	  Is there room for more, in temporary files or elsewhere?
 *
 * Asked by those who would rather do without than fail, or than have others
 * fail: who writes temporary files, and who takes space before it is needed.
 * temp_file_limit counts all temporary files of a session; half of it is left
 * to the sorts and hash tables of upstream's, which cannot do without.  Nor is
 * a file system filled, in any tablespace where the next file could be: tables
 * and WAL may be there as well.
 *
 * The answer is an estimate.  Somebody else may take the room meanwhile, and
 * then a write fails as any to a temporary file.
 *
 * Tests: src/test/aio/index/t/010_spill.pl,
 *		  src/test/aio/preallocation/t/001_preallocate.pl.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <sys/statvfs.h>

#include "aio/temp_room.h"
#include "commands/tablespace.h"
#include "miscadmin.h"
#include "storage/fd.h"
#include "utils/guc.h"
#include "utils/injection_point.h"

/* what is left for others in each file system */
#define BYTES_LEFT	((uint64) 64 * 1024 * 1024)

/* tablespaces that are looked at */
#define SPACES_MAX	64

/*
 * Could so many bytes be taken in the file system of an open file, before they
 * are needed?  No if in doubt.  May be called wherever a system call may be
 * made.
 */
bool
AioFileHasRoom(int fd, uint64 bytes)
{
	struct statvfs fs;

	if (IS_INJECTION_POINT_ATTACHED("aio-no-room"))
		return false;
	return fstatvfs(fd, &fs) == 0 &&
		(uint64) fs.f_bavail * fs.f_frsize >= bytes + BYTES_LEFT;
}

/*
 * Could so many bytes be written to this tablespace, and then as many to
 * indexes, before these files are gone?  No if in doubt.
 */
static bool
space_has_room(Oid space, uint64 bytes)
{
	char		path[MAXPGPATH];
	struct statvfs fs;

	TempTablespacePath(path, space);
	/* directories for temporary files are made for the first of them */
	while (statvfs(path, &fs) != 0)
	{
		if (errno != ENOENT)
			return false;
		get_parent_directory(path);
		if (path[0] == '\0')
			return false;
	}
	return (uint64) fs.f_bavail * fs.f_frsize >= 2 * bytes + BYTES_LEFT;
}

/*
 * Could the session write so many more bytes to temporary files?  May look up
 * catalogs, in a transaction, if temp_tablespaces has changed.
 */
bool
AioTempHasRoom(uint64 bytes)
{
	Oid			spaces[SPACES_MAX];
	int			nspaces;

	if (IS_INJECTION_POINT_ATTACHED("aio-no-temp-room"))
		return false;
	if (temp_file_limit >= 0 &&
		AioTempBytes() + bytes > (uint64) temp_file_limit * 1024 / 2)
		return false;

	PrepareTempTablespaces();
	nspaces = GetTempTablespaces(spaces, lengthof(spaces));
	Assert(nspaces >= 0 && nspaces <= SPACES_MAX);
	if (nspaces == 0)
		spaces[nspaces++] = InvalidOid;
	for (int i = 0; i < nspaces; i++)
	{
		if (!space_has_room(OidIsValid(spaces[i]) ? spaces[i] : MyDatabaseTableSpace,
							bytes))
			return false;
	}
	return true;
}
