/*-------------------------------------------------------------------------
 *
 * preallocate_trim.c
 *	  VACUUM gives back space past the end of files that is not needed.
 *
 * Whoever is the last to use a preallocation has what is left of it given back
 * (trim.c).  What a crash leaves behind does no harm, and is freed after the
 * next load, or after VACUUM, which asks the file system whether there is much;
 * after a crash of a standby VACUUM passes over some kinds of files.
 *
 * Tests: src/test/aio/preallocation/t/001_preallocate.pl.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <sys/stat.h>

#include "access/genam.h"
#include "common/relpath.h"
#include "preallocate_internal.h"
#include "storage/lmgr.h"
#include "utils/rel.h"

/*
 * Is much allocated past the end of a relation's main fork?  No file is opened,
 * and no error is raised: whoever has vacuumed a table has not used indexes
 * whose files are lost, if told so.
 */
static bool
much_is_unused(Relation rel)
{
	RelPathStr	path = relpathbackend(rel->rd_locator, INVALID_PROC_NUMBER,
									  MAIN_FORKNUM);
	char		segment[MAXPGPATH];
	struct stat file;
	int			number = 0;

	while (AioUnfilledSegment(path.str, &number, segment, &file))
	{
		/* the file system's own data about the file count, too */
		if ((uint64) file.st_blocks * 512 >
			(uint64) file.st_size + file.st_size / 64 + MIN_PREALLOCATION * BLCKSZ)
			return true;
	}
	return false;
}

/* Have what is allocated past a relation's end given back, if it is much. */
static void
trim_unused(Relation rel)
{
	Assert(CheckRelationLockedByMe(rel, AccessShareLock, true));
	if (AioCanHavePreallocation(rel) &&
		!AioHasPreallocation(&rel->rd_locator, MAIN_FORKNUM) &&
		much_is_unused(rel))
		AioWantTrim(&rel->rd_locator, MAIN_FORKNUM);
}

/*
 * A table that is open and locked has been vacuumed: give back what is
 * allocated past its end and those of its indexes.
 */
void
AioTableVacuumed(Relation rel)
{
	List	   *indexes = RelationGetIndexList(rel);

	trim_unused(rel);
	foreach_oid(id, indexes)
	{
		Relation	index = index_open(id, AccessShareLock);

		trim_unused(index);
		index_close(index, AccessShareLock);
	}
	list_free(indexes);
}
