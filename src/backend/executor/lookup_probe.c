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
 * A key whose lookup is still far away is probed in two steps, if the index is
 * a btree.  The first one begins to read the leaf, if it is not in memory, and
 * does not wait for it.  The second one, later, finds the leaf and begins to
 * read the heap pages.  So the statement goes on while leaves are read, too.
 *
 * While it is suspended it holds what a scan holds between two pages, pins.
 * It ends with its scope, before the statement goes on.
 *
 * INVARIANT-61: a probe fails nothing.  If it meets a page that cannot be read,
 * it ends, and so do those that run beside it.  The lookup will meet that page,
 * if it is made.  What probes hold belongs to a resource owner of theirs, which
 * is released then.  Other errors, such as that of a cancel request, go on, and
 * so do those of memory.
 *
 * Tests: src/test/aio/lookup.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/relation.h"
#include "access/visibilitymap.h"
#include "aio/backlog.h"
#include "aio/block.h"
#include "aio/error_point.h"
#include "aio/index_policy.h"
#include "aio/io_internal.h"
#include "aio/lookup.h"
#include "aio/read.h"
#include "aio/server.h"
#include "aio/sibling_locks.h"
#include "aio/task_port.h"
#include "aio/usage.h"
#include "catalog/catalog.h"
#include "guard.h"
#include "lookup.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "storage/aio.h"
#include "storage/lmgr.h"
#include "utils/rel.h"
#include "utils/resowner.h"
#include "utils/snapmgr.h"
#include "utils/spccache.h"

/*
 * Entries of a key whose heap pages are read.  If there are more, the scan that
 * finds them looks ahead itself (lookup_scan.c).
 */
#define ENTRIES_MAX		32

/*
 * Second steps for index-only scans that have not met a page that is not
 * all-visible, after which only few of them are made.
 */
#define STEPS_IN_VAIN_MAX	16

/* aio.lookup_ahead */
int			aio_lookup_ahead = 64;

uint64		aio_pages_missed = 0;
Oid			aio_rel_missed = InvalidOid;

/*
 * How far ahead of need pages of this table may be read: 0 if its tablespace
 * wants no concurrency, a page is lost by being read or the user is to be told
 * that it is damaged, I/O is synchronous, or tasks cannot be suspended.
 */
int
AioLookupLimit(Relation heap)
{
	if (zero_damaged_pages || ignore_checksum_failure ||
		io_method == IOMETHOD_SYNC ||
		!AioTasksCanSuspend() ||
		get_tablespace_io_concurrency(heap->rd_rel->reltablespace) == 0)
		return 0;
	return Min(aio_lookup_ahead, 2 * AioTaskLimit());
}

/* The access method, if pages of both may be read ahead. */
const AioIndexAmOps *
AioLookupAm(Relation index, Relation heap)
{
	if (index == NULL || heap == NULL ||
		RelationUsesLocalBuffers(heap) || IsCatalogRelation(heap) ||
		!AioIsHeap(heap))
		return NULL;
	return AioFindIndexAm(index->rd_indam->aminsert);
}

/*
 * Open a relation that is going to be probed, if nobody is in the way, and
 * return NULL otherwise.
 */
Relation
AioOpenIfFree(Oid relid)
{
	Relation	rel;

	if (!AioLockIfFree(relid, AccessShareLock))
		return NULL;
	rel = AioOpenQuietly(try_relation_open, relid, NoLock);
	if (rel == NULL)
		UnlockRelationOid(relid, AccessShareLock);
	return rel;
}

/* May a task compare with this key? */
static bool
key_is_trusted(const ScanKeyData *key)
{
	const ScanKeyData *member;

	if ((key->sk_flags & SK_ROW_HEADER) == 0)
		return AioFunctionIsTrusted(key->sk_func.fn_oid);
	member = (const ScanKeyData *) DatumGetPointer(key->sk_argument);
	while (AioFunctionIsTrusted(member->sk_func.fn_oid))
	{
		if (member->sk_flags & SK_ROW_END)
			return true;
		member++;
	}
	return false;
}

/*
 * May tasks scan this index for these keys, of which all but values are set?
 * INVARIANT-97: each target is asked about here, before AioAddProbe() takes it,
 * and so is each function that its scans call: those of the index, and of keys.
 */
bool
AioMayProbe(AioLookupTarget *target)
{
	if (!target->ops->scans_suspend ||
		target->index->rd_indam->amgettuple == NULL ||
		!AioIndexIsTrusted(target->index))
		return false;
	for (int i = 0; i < target->nkeys; i++)
	{
		if (!key_is_trusted(&target->keys[i]))
			return false;
	}
	target->may_probe = true;
	return true;
}

/* A probe that is wanted, and the argument of its task. */
typedef struct Probe
{
	AioLookupTarget *target;
	ScanKey		keys;
	int			ahead;
	bool	   *begun;			/* has the first step been made?  NULL: make
								 * both */
	IndexScanDesc scan;
	BlockNumber leaf;			/* where the first step has ended */
} Probe;

/*
 * AioTaskHook: if it is a search that will have to wait for a leaf, the first
 * step ends there.
 */
static void
end_first_step(void *event, void *arg)
{
	AioPageEvent *page = event;
	Probe	   *probe = arg;

	if (BufferIsValid(page->buffer) || probe->begun == NULL || *probe->begun ||
		probe->target->ops->search_may_end == NULL ||
		!probe->target->ops->search_may_end(probe->scan) ||
		AioPageIsHere(page->rel, page->leaf))
		return;
	probe->leaf = page->leaf;
	page->end = true;
}

/* Has the target a scan that no probe uses at the moment? */
static IndexScanDesc
begin_scan(AioLookupTarget *target)
{
	IndexScanDesc scan = target->idle_scan;

	target->idle_scan = NULL;
	if (scan == NULL)
		scan = index_beginscan(target->heap, target->index, SnapshotAny, NULL,
							   target->nkeys, 0);
	return scan;
}

static void
end_scan(AioLookupTarget *target, IndexScanDesc scan)
{
	if (target->idle_scan != NULL)
	{
		index_endscan(scan);
		return;
	}

	/* it gives back its pins */
	index_rescan(scan, NULL, target->nkeys, NULL, 0);
	target->idle_scan = scan;
}

/* Is there anything to do for a probe when its leaf has arrived? */
static bool
wants_second_step(AioLookupTarget *target)
{
	if (target->leaf_only)
		return false;
	if (!target->index_only)
		return true;
	target->steps_in_vain++;
	return target->steps_in_vain <= STEPS_IN_VAIN_MAX ||
		target->steps_in_vain % STEPS_IN_VAIN_MAX == 0;
}

/*
 * Begin to read a page, if it is not in memory; returns whether it was not.  As
 * AioReadAhead(), but waits if too many reads are in flight.
 */
bool
AioBeginRead(Relation rel, BlockNumber block)
{
	AioReadAheadResult result;

	while ((result = AioReadAhead(rel, block)) == AIO_READ_AHEAD_FULL)
		AioReadAheadWait();
	return result == AIO_READ_AHEAD_BEGUN;
}

static void
run_probe(void *arg)
{
	Probe	   *probe = arg;
	AioLookupTarget *target = probe->target;
	bool		second = probe->begun != NULL && *probe->begun;
	int			max = target->first_only || target->leaf_only ? 1 : ENTRIES_MAX;
	BlockNumber last = InvalidBlockNumber;
	Buffer		vmbuffer = InvalidBuffer;
	bool		has_read = false;
	uint64		suspensions = aio_task_counters.suspensions;
	IndexScanDesc scan = begin_scan(target);

	probe->scan = scan;
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
		has_read |= AioBeginRead(target->heap, block);
		target->steps_in_vain = 0;
	}
	if (BufferIsValid(vmbuffer))
		ReleaseBuffer(vmbuffer);
	end_scan(target, scan);

	if (second)
	{
		*probe->begun = false;
		return;
	}
	if (BlockNumberIsValid(probe->leaf))
	{
		has_read |= AioBeginRead(target->index, probe->leaf);
		*probe->begun = wants_second_step(target);
	}

	/* a page that it has awaited, or somebody has meanwhile */
	has_read |= aio_task_counters.suspensions != suspensions;
	AioCountLookup(has_read, probe->ahead);
}

/*
 * Add a probe of a key, while so many lookups are ahead of need, to a list of
 * them in the current memory context.  The keys stay the caller's, and have to
 * be there until the probes have been run.
 *
 * If begun is given, its value says whether this is the second step, or the
 * first one and perhaps the only one.  It is set to whether there is another
 * step to make; so the caller keeps it, false at first, as long as the key may
 * be looked up.
 */
List *
AioAddProbe(List *probes, AioLookupTarget *target, ScanKey keys, int ahead,
			bool *begun)
{
	Probe	   *probe = palloc(sizeof(Probe));

	Assert(target->may_probe);
	probe->target = target;
	probe->keys = keys;
	probe->ahead = ahead;
	probe->begun = begun;
	probe->scan = NULL;
	probe->leaf = InvalidBlockNumber;
	return lappend(probes, probe);
}

/* AioScopeBody */
static void
start_probes(AioScope *scope, void *arg)
{
	foreach_ptr(Probe, probe, (List *) arg)
	{
		AioTaskOptions options = {.subject = probe->target->index,
		.hook = end_first_step};

		AioSpawn(scope, &options, run_probe, probe, sizeof(Probe));
	}
}

/* What is probed, each target once. */
static List *
targets_of(List *probes)
{
	List	   *targets = NIL;

	foreach_ptr(Probe, probe, probes)
		targets = list_append_unique_ptr(targets, probe->target);
	return targets;
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

/* Give up what targets' scans hold. */
static void
end_idle_scans(List *targets)
{
	foreach_ptr(AioLookupTarget, target, targets)
	{
		if (target->idle_scan != NULL)
			index_endscan(target->idle_scan);
		target->idle_scan = NULL;
	}
}

/*
 * Is an error about a page that cannot be read?  Not if it is one of a catalog:
 * an entry of the relation cache that was being made would be in the way.
 */
static bool
is_about_page(int sqlerrcode)
{
	return (sqlerrcode == ERRCODE_DATA_CORRUPTED ||
			sqlerrcode == ERRCODE_INDEX_CORRUPTED ||
			ERRCODE_TO_CATEGORY(sqlerrcode) == ERRCODE_SYSTEM_ERROR ||
			ERRCODE_TO_CATEGORY(sqlerrcode) == ERRCODE_INSUFFICIENT_RESOURCES) &&
		!AioRelcacheIsBuilding();
}

/* What is tried: probes, and what they are about. */
typedef struct TriedProbes
{
	List	   *probes;
	List	   *targets;
} TriedProbes;

static void
try_probes(void *arg)
{
	TriedProbes *tried = arg;

	AioScopeRun(start_probes, tried->probes, NULL);
	end_idle_scans(tried->targets);
	AioSubmitBatch();

	/* in a batch of upstream's, a read is not left to its owner, either */
	pgaio_submit_staged();
}

/*
 * Run probes until they have ended, or until one meets a page that cannot be
 * read.
 */
static void
run_scope(List *probes, List *targets)
{
	TriedProbes tried = {.probes = probes,.targets = targets};

	if (AioTry(try_probes, &tried, is_about_page, NULL))
		return;
	foreach_ptr(AioLookupTarget, target, targets)
		target->idle_scan = NULL;
}

/*
 * Run these probes, each as a task, and submit the reads of heap pages that
 * they have begun.  Returns whether any read has begun.  Allocates in the
 * current memory context.  Does not raise errors of pages that cannot be read.
 */
bool
AioRunProbes(List *probes)
{
	uint64		started = aio_usage[AIO_KIND_READ].started;
	List	   *targets = targets_of(probes);
	ScanCounts *counts;
	bool		in_read_hook = aio_in_read_hook;

	if (probes == NIL)
		return false;
	counts = palloc_array(ScanCounts, list_length(targets));
	exchange_counts(targets, counts, false);
	foreach_ptr(AioLookupTarget, target, targets)
		target->idle_scan = NULL;

	/* without memory for stacks, probes run on the backend's own */
	aio_in_read_hook = true;
	PG_TRY();
	{
		run_scope(probes, targets);
	}
	PG_FINALLY();
	{
		aio_in_read_hook = in_read_hook;
	}
	PG_END_TRY();
	exchange_counts(targets, counts, true);
	return aio_usage[AIO_KIND_READ].started != started;
}
