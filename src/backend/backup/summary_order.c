/*-------------------------------------------------------------------------
 *
 * summary_order.c
 *	  WAL summaries are merged in the order of the WAL that they are of.
 *
 * A summary tells which blocks its WAL has changed, and from which block on
 * its WAL has cut a relation short.  Merging the latter forgets the blocks
 * after that, which is right only if they come from earlier WAL.
 *
 * Tests: src/test/aio/backup/t/007_summaries.pl.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "aio/backup.h"
#include "backup/walsummary.h"
#include "common/int.h"

/*
 * A timeline comes after those of which it is a branch.  Where summaries
 * overlap, the one that ends later is merged later: what it has of the WAL
 * that both are of is right, too.
 */
static int
compare_summaries(const ListCell *a, const ListCell *b)
{
	const WalSummaryFile *left = lfirst(a);
	const WalSummaryFile *right = lfirst(b);

	if (left->tli != right->tli)
		return pg_cmp_u32(left->tli, right->tli);
	return pg_cmp_u64(left->end_lsn, right->end_lsn);
}

/*
 * PrepareForIncrementalBackup(): these summaries, WalSummaryFile, are about to
 * be merged.  Sorts the list in place.  Raises nothing.
 */
void
AioSortWalSummaries(List *summaries)
{
	list_sort(summaries, compare_summaries);
}
