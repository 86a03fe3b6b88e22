/*-------------------------------------------------------------------------
 *
 * preallocate_trim.c
 *	  Give back space past the end of files that is not needed.
 *
 * Whoever is the last to use a preallocation gives back what is left of it.
 * What a crash leaves behind does no harm, and is freed after the next load,
 * or by VACUUM, which asks the file system whether there is much; after a crash
 * of a standby VACUUM passes over some kinds of files.
 *
 * Upholds INVARIANT-47.
 *
 * Tests: src/test/aio/preallocation/t/001_preallocate.pl.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <sys/stat.h>
#include <unistd.h>

#include "access/genam.h"
#include "access/relation.h"
#include "aio/sibling_locks.h"
#include "common/relpath.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "preallocate_internal.h"
#include "storage/bufmgr.h"
#include "storage/lmgr.h"
#include "storage/md.h"
#include "utils/relcache.h"
#include "utils/relfilenumbermap.h"
#include "utils/wait_event.h"

/*
 * Give back what is allocated past the end of a fork, which stays where it is
 * meanwhile, as nobody else may move it.
 *
 * Setting a file's length to what it is frees what lies beyond, on all file
 * systems that know of such space.
 */
void
AioTrim(SMgrRelation reln, ForkNumber forknum)
{
	BlockNumber nblocks;
	uint32		offset;
	int			status;

	AioForgetPreallocation(&reln->smgr_rlocator.locator, forknum);
	reln->smgr_cached_nblocks[forknum] = InvalidBlockNumber;
	nblocks = smgrnblocks(reln, forknum);
	if (nblocks % RELSEG_SIZE == 0)
		return;
	HOLD_INTERRUPTS();
	pgstat_report_wait_start(WAIT_EVENT_DATA_FILE_TRUNCATE);
	status = ftruncate(mdfd(reln, forknum, nblocks - 1, &offset),
					   (off_t) (nblocks % RELSEG_SIZE) * BLCKSZ);
	pgstat_report_wait_end();
	RESUME_INTERRUPTS();
	if (status != 0)
		ereport(LOG,
				errcode_for_file_access(),
				errmsg("could not give back unused space of file \"%s\": %m",
					   relpath(reln->smgr_rlocator, forknum).str));
}

/*
 * Likewise, of a relation that the caller has locked such that it is not
 * truncated; its extension lock, under which the end stays where it is, is
 * taken here.
 */
static void
trim(Relation rel, ForkNumber forknum)
{
	Assert(!RelationUsesLocalBuffers(rel));
	Assert(CheckRelationLockedByMe(rel, AccessShareLock, true));
	LockRelationForExtension(rel, ExclusiveLock);
	AioTrim(RelationGetSmgr(rel), forknum);
	UnlockRelationForExtension(rel, ExclusiveLock);
}

/*
 * Give back what is allocated past the end of a fork, in a transaction that
 * has done nothing else.  By now its relation may have another file, or be
 * gone, or locked.
 */
void
AioGiveBack(const RelFileLocator *locator, ForkNumber forknum)
{
	Oid			relid = RelidByRelfilenumber(locator->spcOid,
											 locator->relNumber);
	Relation	rel;

	if (!OidIsValid(relid) ||
		!AioLockIfFree(relid, AccessShareLock))
		return;
	rel = try_relation_open(relid, NoLock);
	if (rel == NULL)
		return;
	if (RelFileLocatorEquals(rel->rd_locator, *locator))
		trim(rel, forknum);
	relation_close(rel, NoLock);
}

/*
 * Is much allocated past the end of a relation's main fork?  Its last segment
 * is looked at.  No file is opened, and no error is raised: whoever has
 * vacuumed a table has not used indexes whose files are lost, if told so.
 */
static bool
much_is_unused(Relation rel)
{
	RelPathStr	path = relpathbackend(rel->rd_locator, INVALID_PROC_NUMBER,
									  MAIN_FORKNUM);
	struct stat file;
	char		segment[MAXPGPATH];

	if (stat(path.str, &file) != 0)
		return false;
	for (int i = 1; file.st_size == (off_t) RELSEG_SIZE * BLCKSZ; i++)
	{
		snprintf(segment, sizeof(segment), "%s.%d", path.str, i);
		if (stat(segment, &file) != 0 || file.st_size == 0)
			return false;
	}

	/* the file system's own data about the file count, too */
	return (uint64) file.st_blocks * 512 >
		(uint64) file.st_size + file.st_size / 64 + MIN_PREALLOCATION * BLCKSZ;
}

/* Give back what is allocated past the end of a relation, if it is much. */
static void
trim_unused(Relation rel)
{
	Assert(CheckRelationLockedByMe(rel, AccessShareLock, true));
	if (AioCanHavePreallocation(rel) &&
		!AioHasPreallocation(&rel->rd_locator, MAIN_FORKNUM) &&
		much_is_unused(rel))
		trim(rel, MAIN_FORKNUM);
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
