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
 * Upholds INVARIANT-46, 47 and 116.
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
#include "access/htup_details.h"
#include "access/table.h"
#include "aio/recovery_point.h"
#include "aio/sibling_locks.h"
#include "catalog/pg_attribute.h"
#include "catalog/pg_class.h"
#include "catalog/pg_index.h"
#include "common/relpath.h"
#include "miscadmin.h"
#include "preallocate_internal.h"
#include "storage/lmgr.h"
#include "utils/fmgroids.h"
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
 * truncated; unless somebody is extending it, or there is no room for a lock.
 */
static void
ask(const RelFileLocator *locator, ForkNumber forknum, Oid relid)
{
	LOCKTAG		extension;

	Assert(CheckRelationOidLockedByMe(relid, AccessShareLock, true));
	SET_LOCKTAG_RELATION_EXTEND(extension, MyDatabaseId, relid);
	if (LockAcquireExtended(&extension, ExclusiveLock, false, true, false, NULL,
							false) == LOCKACQUIRE_NOT_AVAIL)
		return;
	AioWantTrim(locator, forknum);
	LockRelease(&extension, ExclusiveLock, false);
}

/* Does a relation have this file, or another fork of it, as its row says? */
static bool
has_file(HeapTuple tuple, const RelFileLocator *locator)
{
	Form_pg_class form = (Form_pg_class) GETSTRUCT(tuple);
	Oid			tablespace = OidIsValid(form->reltablespace) ?
		form->reltablespace : MyDatabaseTableSpace;

	return form->relfilenode == locator->relNumber &&
		tablespace == locator->spcOid &&
		form->relpersistence != RELPERSISTENCE_TEMP;
}

/* The same, of the relation with this OID, if there is one. */
static bool
is_file_of(const RelFileLocator *locator, Oid relid)
{
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(relid));
	bool		result;

	if (!HeapTupleIsValid(tuple))
		return false;
	result = has_file(tuple, locator);
	ReleaseSysCache(tuple);
	return result;
}

/*
 * The relation with this file, or InvalidOid.  No index is searched, as its
 * descriptor would need other catalogs.
 */
static Oid
relation_of(const RelFileLocator *locator)
{
	Relation	pg_class = table_open(RelationRelationId, AccessShareLock);
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	tuple;
	Oid			result = InvalidOid;

	ScanKeyInit(&key, Anum_pg_class_relfilenode, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(locator->relNumber));
	scan = systable_beginscan(pg_class, InvalidOid, false, NULL, 1, &key);
	while (!OidIsValid(result) &&
		   HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		if (has_file(tuple, locator))
			result = ((Form_pg_class) GETSTRUCT(tuple))->oid;
	}
	systable_endscan(scan);
	table_close(pg_class, AccessShareLock);
	return result;
}

/* With pg_class locked: ask, unless the relation is locked, or extended. */
static void
ask_if_free(const RelFileLocator *locator, ForkNumber forknum, Oid relid)
{
	if (!AioLockIfFree(relid, AccessShareLock))
		return;
	if (is_file_of(locator, relid))
		ask(locator, forknum, relid);
	UnlockRelationOid(relid, AccessShareLock);
}

/*
 * Have what is left of a fork's preallocation given back, in a transaction that
 * has done nothing else; it was extended as one of the relation `relid`.  By
 * now that may have another file, and another relation this one, as after a
 * table is rewritten; or it may be gone, or locked, or somebody may be
 * extending it.  Nobody who is idle waits for any of them, nor for catalogs.
 */
void
AioGiveBack(const RelFileLocator *locator, ForkNumber forknum, Oid relid)
{
	/* which finding a row of pg_class may open, and their descriptors need */
	static const Oid catalogs[] = {
		RelationRelationId, ClassOidIndexId,
		AttributeRelationId, AttributeRelidNumIndexId,
		IndexRelationId, IndexRelidIndexId
	};
	int			nlocked = 0;

	while (nlocked < lengthof(catalogs) &&
		   AioLockIfFree(catalogs[nlocked], AccessShareLock))
		nlocked++;
	if (nlocked == lengthof(catalogs))
	{
		if (!is_file_of(locator, relid))
			relid = relation_of(locator);
		if (OidIsValid(relid))
			ask_if_free(locator, forknum, relid);
	}
	while (nlocked > 0)
		UnlockRelationOid(catalogs[--nlocked], AccessShareLock);
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
		ask(&rel->rd_locator, MAIN_FORKNUM, RelationGetRelid(rel));
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
