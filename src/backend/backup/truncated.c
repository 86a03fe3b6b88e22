/*-------------------------------------------------------------------------
 *
 * truncated.c
 *	  An incremental backup brings nothing back that was cut off.
 *
 * A WAL summary tells from which block on a relation has been cut short, and
 * which blocks have been changed since.  If the relation has grown again,
 * there may be blocks behind that limit which nobody has used yet: no WAL is
 * of them, but what an earlier backup has in their place is what was cut off.
 *
 * So whatever is behind the limit counts as changed, and is in the backup.
 * Blocks of the file that are not in it are those of the backup before, and
 * the file is as long as it is in the server, whoever combines the backups.
 * If it were only said to be shorter, unused blocks at its end would be lost,
 * and if that is the end of a segment, with them all segments that follow.
 *
 * Nor may a block come from before a backup whose file ended in front of it:
 * pg_combinebackup looks at the file of each backup for that (see the seam
 * combine-chain).
 *
 * Tests: src/test/aio/backup/t/007_summaries.pl.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "aio/backup.h"
#include "common/blkreftable.h"

/*
 * GetFileBackupMethod(): in place of BlockRefTableEntryGetBlocks(), which
 * blocks of a file have to be in the backup.  There is room for all.  From the
 * limit on, which is behind the first of them, these are all; so there is no
 * limit to be minded any more.  Raises nothing.
 */
int
AioGetChangedBlocks(BlockNumber *limit, BlockRefTableEntry *entry,
					BlockNumber start, BlockNumber stop,
					BlockNumber *blocks, int nblocks)
{
	BlockNumber first_cut = Min(*limit, stop);
	int			nresults;

	Assert(start <= first_cut && stop - start <= nblocks);
	nresults = BlockRefTableEntryGetBlocks(entry, start, first_cut,
										   blocks, nblocks);
	for (BlockNumber block = first_cut; block < stop; block++)
		blocks[nresults++] = block;
	*limit = InvalidBlockNumber;
	return nresults;
}
