/*-------------------------------------------------------------------------
 *
 * lookup_probe.c
 *	  Read what a lookup in an index will read, before it is made.
 *
 * A probe is a task that scans an index for a key by the access method's own
 * functions, and begins to read the heap pages that it finds.  It sees no
 * visibility, locks no row, leaves no predicate lock, marks no entry as dead,
 * and is not counted as a scan of the index.  What it finds may be out of date
 * at once.  The lookup that follows is upstream's, and does not know of it.
 *
 * While it is suspended it holds what a scan holds between two pages, pins.
 * It ends with its scope, before the statement goes on.
 *
 * Tests: src/test/aio/lookup.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/visibilitymap.h"
#include "aio/block.h"
#include "aio/read.h"
#include "aio/usage.h"
#include "lookup.h"
#include "pgstat.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

/*
 * Entries of a key whose heap pages are read.  If there are more, the scan that
 * finds them looks ahead itself (lookup_scan.c).
 */
#define ENTRIES_MAX		32

typedef struct Probe
{
	const AioLookupTarget *target;
	ScanKey		keys;
	int			ahead;
} Probe;

static void
run_probe(void *arg)
{
	Probe	   *probe = arg;
	const AioLookupTarget *target = probe->target;
	int			max = target->first_only || target->leaf_only ? 1 : ENTRIES_MAX;
	BlockNumber last = InvalidBlockNumber;
	Buffer		vmbuffer = InvalidBuffer;
	uint64		reads = aio_usage[AIO_KIND_READ].started;
	uint64		suspensions = aio_task_counters.suspensions;
	IndexScanDesc scan;

	scan = index_beginscan(target->heap, target->index, SnapshotAny, NULL,
						   target->nkeys, 0);
	index_rescan(scan, probe->keys, target->nkeys, NULL, 0);
	for (int i = 0; i < max; i++)
	{
		ItemPointer tid = index_getnext_tid(scan, target->direction);
		BlockNumber block;

		if (tid == NULL || target->leaf_only)
			break;
		block = ItemPointerGetBlockNumber(tid);
		if (block == last)
			continue;
		last = block;
		if (target->index_only && VM_ALL_VISIBLE(target->heap, block, &vmbuffer))
			continue;
		if (AioReadAhead(target->heap, block) == AIO_READ_AHEAD_FULL)
			break;
	}
	if (BufferIsValid(vmbuffer))
		ReleaseBuffer(vmbuffer);
	index_endscan(scan);

	/* a task that has not been suspended is the only one that has read */
	AioCountLookup(aio_usage[AIO_KIND_READ].started != reads ||
				   aio_task_counters.suspensions != suspensions,
				   probe->ahead);
}

/*
 * Probe a key in a task of this scope, while so many lookups are ahead of need.
 * The keys stay the caller's, and have to be there until the scope ends.
 */
void
AioProbe(AioScope *scope, const AioLookupTarget *target, ScanKey keys,
		 int ahead)
{
	AioTaskOptions options = {.subject = target->index};
	Probe		probe = {.target = target,.keys = keys,.ahead = ahead};

	AioSpawn(scope, &options, run_probe, &probe, sizeof(probe));
}

/* What the server counts of a scan, which a probe is not. */
typedef struct ScanCounts
{
	PgStat_Counter scans;
	PgStat_Counter returned;
} ScanCounts;

static void
exchange_counts(List *targets, ScanCounts *counts, bool restore)
{
	int			i = 0;

	foreach_ptr(AioLookupTarget, target, targets)
	{
		PgStat_TableStatus *status = target->index->pgstat_info;

		if (status != NULL && restore)
		{
			status->counts.numscans = counts[i].scans;
			status->counts.tuples_returned = counts[i].returned;
		}
		else if (!restore)
		{
			counts[i].scans = status == NULL ? 0 : status->counts.numscans;
			counts[i].returned = status == NULL ? 0 :
				status->counts.tuples_returned;
		}
		i++;
	}
}

/*
 * Run a scope whose body probes some of these targets, and submit the reads of
 * heap pages that the probes have begun.  Returns whether any read has begun.
 * Allocates in the current memory context.
 */
bool
AioRunProbes(List *targets, AioScopeBody body, void *arg)
{
	uint64		started = aio_usage[AIO_KIND_READ].started;
	ScanCounts *counts = palloc_array(ScanCounts, list_length(targets));

	exchange_counts(targets, counts, false);
	AioScopeRun(body, arg, NULL);
	AioSubmitBatch();
	exchange_counts(targets, counts, true);
	return aio_usage[AIO_KIND_READ].started != started;
}
