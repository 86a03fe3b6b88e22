/*-------------------------------------------------------------------------
 *
 * preallocate_trim.c
 *	  Give back space past the end of files that is not needed.
 *
 * Whoever is the last to use a preallocation asks the background writer to give
 * back what is left of it (trim.c): under the extension lock of the relation
 * that has the file, and a lock against truncation, or in recovery, which
 * extends files alone; and while nobody uses a preallocation of it.  What a
 * crash leaves behind does no harm, and is freed after the next load, or after
 * VACUUM, which asks the file system whether there is much; after a crash of a
 * standby VACUUM passes over some kinds of files.
 *
 * Upholds INVARIANT-46 and 47.
 *
 * Tests: src/test/aio/preallocation/t/001_preallocate.pl,
 *		  src/test/aio/replay/t/008_extensions.pl.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <sys/stat.h>

#include "access/genam.h"
#include "aio/recovery_point.h"
#include "aio/sibling_locks.h"
#include "catalog/pg_attribute.h"
#include "catalog/pg_class.h"
#include "catalog/pg_index.h"
#include "common/relpath.h"
#include "miscadmin.h"
#include "preallocate_internal.h"
#include "storage/lmgr.h"
#include "utils/rel.h"
#include "utils/syscache.h"

/*
 * Have the background writer give back what is allocated past the end of a
 * fork, unless somebody uses a preallocation of it, or too much is asked for
 * already: then it stays.  The caller sees to it that nobody is about to change
 * the length of the file.
 */
void
AioWantTrim(const RelFileLocator *locator, ForkNumber forknum)
{
	LWLock	   *lock = AioPreallocationLock();
	bool		asked;

	LWLockAcquire(lock, LW_EXCLUSIVE);
	asked = !AioIsUsed(locator, forknum) && AioAskForTrim(locator, forknum);
	LWLockRelease(lock);
	if (asked)
		AioWakeBackgroundWriter();
}

/*
 * The same, of a relation that the caller has locked such that it is not
 * truncated; unless somebody is extending it.
 */
static void
ask(Relation rel, ForkNumber forknum)
{
	Assert(!RelationUsesLocalBuffers(rel));
	Assert(CheckRelationLockedByMe(rel, AccessShareLock, true));
	if (!ConditionalLockRelationForExtension(rel, ExclusiveLock))
		return;
	AioWantTrim(&rel->rd_locator, forknum);
	UnlockRelationForExtension(rel, ExclusiveLock);
}

/*
 * Is this the main file of a relation, or another fork of it, as the catalog
 * has it?  The relation is locked.  Catalogs may be locked, too, even by who
 * waits for us: without them, it is not.
 */
static bool
is_file_of(const RelFileLocator *locator, Oid relid)
{
	/* which finding a row of pg_class may open, and their descriptors need */
	static const Oid catalogs[] = {
		RelationRelationId, ClassOidIndexId,
		AttributeRelationId, AttributeRelidNumIndexId,
		IndexRelationId, IndexRelidIndexId
	};
	int			nlocked = 0;
	bool		result = false;

	while (nlocked < lengthof(catalogs) &&
		   AioLockIfFree(catalogs[nlocked], AccessShareLock))
		nlocked++;
	if (nlocked == lengthof(catalogs))
	{
		HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(relid));

		if (HeapTupleIsValid(tuple))
		{
			Form_pg_class form = (Form_pg_class) GETSTRUCT(tuple);
			Oid			tablespace = form->reltablespace;

			if (!OidIsValid(tablespace))
				tablespace = MyDatabaseTableSpace;
			result = form->relfilenode == locator->relNumber &&
				tablespace == locator->spcOid;
			ReleaseSysCache(tuple);
		}
	}
	while (nlocked > 0)
		UnlockRelationOid(catalogs[--nlocked], AccessShareLock);
	return result;
}

/*
 * Have what is left of a fork's preallocation given back, in a transaction that
 * has done nothing else; `extension` is the lock of who extends it.  By now its
 * relation may have another file, or be gone, or locked, or somebody may be
 * extending it.  Nobody who is idle waits for any of them.
 */
void
AioGiveBack(const RelFileLocator *locator, ForkNumber forknum,
			const LOCKTAG *extension)
{
	Oid			relid = extension->locktag_field2;

	if (!AioLockIfFree(relid, AccessShareLock))
		return;
	if (is_file_of(locator, relid) &&
		LockAcquireExtended(extension, ExclusiveLock, false, true, false, NULL,
							false) != LOCKACQUIRE_NOT_AVAIL)
	{
		AioWantTrim(locator, forknum);
		LockRelease(extension, ExclusiveLock, false);
	}
	UnlockRelationOid(relid, AccessShareLock);
}

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
		ask(rel, MAIN_FORKNUM);
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
