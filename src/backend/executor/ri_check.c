/*-------------------------------------------------------------------------
 *
 * ri_check.c
 *	  Check foreign keys without a query.
 *
 * PostgreSQL checks that a row's foreign key refers to a row, and that no row
 * refers to one that is deleted, by queries: SELECT ... FOR KEY SHARE.  Here,
 * the index is scanned, and the row that is referred to is locked, by the
 * functions that such a query's plan would call.  Whatever is not plain, and
 * each failure, is left to the query: a row that is missing, or one too many; a
 * row that somebody else has locked or changed; a permission that is missing.
 * So errors and waits are always the query's.
 *
 * While a queue of triggers is worked off, the index and the scan stay open,
 * but nothing is pinned between two rows.  They are closed when all events have
 * been fired, when DDL asks who uses the table, or with their resource owner,
 * which an error may release long before the queue is freed.
 *
 * INVARIANT-93: a row that an index leads to has the key only if the operators
 * of the foreign key say so.  Whatever finds a row, next_row() for a scan and
 * find_row_at() for a place, has to compare where the index does not vouch.
 *
 * INVARIANT-65: a key is not looked up again if this transaction has locked its
 * row and has changed nothing since, which the command counter tells.  Nobody
 * else can delete the row meanwhile, or change its key; and no setting changes
 * what is equal (set_key() in ri_search.c).
 *
 * Tests: src/test/aio/ri.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/heapam.h"
#include "access/htup_details.h"
#include "access/relscan.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "aio/backlog.h"
#include "aio/lookup.h"
#include "aio/recent.h"
#include "catalog/objectaccess.h"
#include "commands/trigger.h"
#include "common/hashfn.h"
#include "executor/executor.h"
#include "guard.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "ri.h"
#include "utils/datum.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

/* checks of one queue whose scans are open at the same time */
#define CHECKS_MAX		32

/* keys whose rows have been locked last, a power of 2, and their size */
#define LOCKED_KEYS		4096
#define LOCKED_KEY_SIZE	16

/* checks after which such keys are remembered, and others found in batches */
#define CHECKS_BEFORE_REMEMBERING	32

typedef struct LockedKey
{
	uint64		image[LOCKED_KEY_SIZE / sizeof(uint64)];	/* padded with zeros */
	CommandId	locked_at;		/* as the command counter was */
	uint8		length;			/* 0: none */
} LockedKey;

/* The checks of a foreign key in one of its two tables, by one trigger. */
typedef struct RiCheck
{
	Oid			trigger;
	bool		of_parent;
	uint64		generation;		/* in which 'direct' is valid */
	AioRiDirect *direct;
	AioTriggerUsage *usage;		/* of the trigger */

	/* open in this resource owner */
	ResourceOwner owner;
	Relation	table;
	Relation	index;
	IndexScanDesc scan;
	TupleTableSlot *slot;

	uint32		nchecks;
	LockedKey  *locked;			/* keys whose rows have been locked */
	uint64		missed;			/* aio_pages_missed before the first */
	AioRiBatch *batch;			/* NULL: keys are not found in batches... */
	bool		batch_tried;	/* ... and cannot be */
} RiCheck;

/* aio.direct_foreign_key_checks */
bool		aio_direct_foreign_key_checks = true;

static void
close_check(AioTriggerQueue *queue, RiCheck *check)
{
	ResourceOwner owner = CurrentResourceOwner;

	queue->checks = list_delete_ptr(queue->checks, check);
	if (check->scan != NULL)
	{
		/* as after a query, locks are kept until the transaction ends */
		CurrentResourceOwner = check->owner;
		index_endscan(check->scan);
		ExecDropSingleTupleTableSlot(check->slot);
		index_close(check->index, NoLock);
		table_close(check->table, NoLock);
		CurrentResourceOwner = owner;
	}
	if (check->locked != NULL)
		pfree(check->locked);
	if (check->batch != NULL)
		AioRiFreeBatch(check->batch);
	pfree(check);
}

/* All events have been fired. */
static void
end_checks(AioTriggerQueue *queue)
{
	while (queue->checks != NIL)
		close_check(queue, linitial(queue->checks));
}

static RiCheck *
open_check(AioTriggerQueue *queue, Oid constraint, bool of_parent,
		   Relation rel, Relation table)
{
	MemoryContext context = queue->estate->es_query_cxt;
	MemoryContext old = MemoryContextSwitchTo(context);
	RiCheck    *check = palloc0(sizeof(RiCheck));

	check->trigger = aio_trigger_due.trigger;
	check->usage = AioTriggerUsageIn(queue, check->trigger);
	check->missed = aio_pages_missed;
	check->of_parent = of_parent;
	check->owner = CurrentResourceOwner;
	check->generation = aio_ri_generation;
	check->direct = AioRiGetDirect(constraint, of_parent, rel, table);
	if (check->direct->target != NULL)
	{
		check->table = table_open(RelationGetRelid(table), NoLock);
		check->index = AioOpenQuietly(index_open, check->direct->target->index, RowShareLock);
		check->slot = table_slot_create(table, NULL);

		/* each check has a snapshot of its own */
		check->scan = index_beginscan(check->table, check->index,
									  GetActiveSnapshot(), NULL,
									  check->direct->target->lookup.nkeys, 0);
	}
	queue->checks = lcons(check, queue->checks);
	queue->end_checks = end_checks;
	MemoryContextSwitchTo(old);
	return check;
}

/*
 * ResourceReleaseCallback: what is open in an owner is closed when that is
 * released, without us, after an error.  A queue whose portal is older than the
 * subtransaction that fails is still there then.
 */
static void
owner_released(ResourceReleasePhase phase, bool isCommit, bool isTopLevel,
			   void *arg)
{
	if (likely(aio_trigger_queues == NULL) ||
		phase != RESOURCE_RELEASE_BEFORE_LOCKS)
		return;
	for (AioTriggerQueue *queue = aio_trigger_queues; queue != NULL; queue = queue->next)
	{
		foreach_ptr(RiCheck, check, queue->checks)
		{
			if (check->owner != CurrentResourceOwner)
				continue;
			check->scan = NULL;
			check->owner = NULL;
		}
	}
}

/* While libraries are preloaded. */
void
AioRiInitialize(void)
{
	RegisterResourceReleaseCallback(owner_released, NULL);
}

/* DDL wants a table for itself. */
void
AioRiCloseTables(void)
{
	for (AioTriggerQueue *queue = aio_trigger_queues; queue != NULL; queue = queue->next)
		end_checks(queue);
}

/*
 * The check that this trigger makes; NULL if it needs a query.  After this,
 * what the transaction has done so far is visible to new snapshots, as to a
 * query.
 */
static RiCheck *
get_check(const TriggerData *trigger, Oid constraint, bool of_parent,
		  Relation table)
{
	Oid			due = trigger->tg_trigger->tgoid;
	AioTriggerQueue *queue;
	RiCheck    *check = NULL;
	AioRiDirect *direct;

	/*
	 * A hook may want to be asked for permission; a query may be forbidden to
	 * lock rows; and a trigger may have been called without a queue, or have
	 * executed statements with queues of their own, as SET DEFAULT does
	 * before it looks for rows that still refer to the one that is gone.
	 */
	if (!aio_direct_foreign_key_checks || IsolationIsSerializable() ||
		ExecutorCheckPerms_hook != NULL || object_access_hook != NULL ||
		XactReadOnly || IsInParallelMode() ||
		!AioIsTriggerDue(trigger))
		return NULL;
	CHECK_FOR_INTERRUPTS();
	CommandCounterIncrement();
	queue = AioTriggerQueueOf(aio_trigger_due.estate);
	foreach_ptr(RiCheck, known, queue->checks)
	{
		if (known->trigger != due)
			continue;
		check = known;
		break;
	}
	if (unlikely(check != NULL &&
				 (check->generation != aio_ri_generation ||
				  check->owner != CurrentResourceOwner)))
	{
		close_check(queue, check);
		check = NULL;
	}
	direct = check != NULL ? check->direct : AioRiKnownDirect(constraint, of_parent);
	if (direct != NULL && AioRiPauses(direct))
		return NULL;
	if (check == NULL)
	{
		if (list_length(queue->checks) >= CHECKS_MAX)
			close_check(queue, llast(queue->checks));
		check = open_check(queue, constraint, of_parent, trigger->tg_relation,
						   table);
	}
	return check->scan != NULL ? check : NULL;
}

/*
 * The bytes of a row's keys, by which equal ones are recognised.  Returns their
 * number, or 0 if there are too many.
 */
static int
image_of(const RiCheck *check, const ScanKeyData *keys, const TupleDesc desc,
		 char *image)
{
	const AioRiTarget *target = check->direct->target;
	int			length = 0;

	memset(image, 0, LOCKED_KEY_SIZE);
	for (int i = 0; i < target->lookup.nkeys; i++)
	{
		AttrNumber	attnum =
			check->direct->search->row_attnums[target->key_of[i]];
		CompactAttribute *type = TupleDescCompactAttr(desc, attnum - 1);
		Datum		value = keys[i].sk_argument;
		const void *bytes = type->attbyval ? (void *) &value : DatumGetPointer(value);
		Size		size = type->attbyval ? sizeof(Datum) :
			datumGetSize(value, false, type->attlen);

		if (size > LOCKED_KEY_SIZE - length)
			return 0;
		memcpy(image + length, bytes, size);
		length += size;
	}
	return length;
}

/*
 * Where a key is remembered when its row has been locked; NULL if it is not.
 * Sets *is_locked to whether it has been.
 */
static LockedKey *
find_locked(RiCheck *check, const LockedKey *key, bool *is_locked)
{
	LockedKey  *locked;
	uint32		hash;

	*is_locked = false;
	if (check->nchecks++ < CHECKS_BEFORE_REMEMBERING || key->length == 0)
		return NULL;
	if (check->locked == NULL)
		check->locked =
			MemoryContextAllocZero(GetMemoryChunkContext(check),
								   LOCKED_KEYS * sizeof(LockedKey));
	hash = (uint32) hash_combine64(key->image[0], murmurhash64(key->image[1]));
	locked = &check->locked[murmurhash32(hash) % LOCKED_KEYS];
	*is_locked = locked->length == key->length &&
		locked->locked_at == key->locked_at &&
		locked->image[0] == key->image[0] && locked->image[1] == key->image[1];
	return locked;
}

/*
 * Lock the row as the query does; false if that cannot be done at once.
 *
 * If somebody may be updating the row, its later versions have to be locked as
 * well, which waits for others; so that is left to the query.  Only if the
 * update begins right now, it is done here.
 */
static bool
lock_row(RiCheck *check)
{
	HeapTuple	tuple = ExecFetchSlotHeapTuple(check->slot, false, NULL);
	uint16		infomask = tuple->t_data->t_infomask;
	TM_FailureData failure;

	if (!(infomask & HEAP_XMAX_INVALID) && !HEAP_XMAX_IS_LOCKED_ONLY(infomask))
		return false;
	return table_tuple_lock(check->table, &check->slot->tts_tid,
							check->scan->xs_snapshot, check->slot,
							GetCurrentCommandId(false), LockTupleKeyShare,
							LockWaitSkip,
							TUPLE_LOCK_FLAG_LOCK_UPDATE_IN_PROGRESS,
							&failure) == TM_Ok;
}

/* Does the row in the slot have these keys? */
static bool
has_keys(RiCheck *check, ScanKey keys)
{
	for (int i = 0; i < check->direct->target->lookup.nkeys; i++)
	{
		AttrNumber	attnum =
			check->index->rd_index->indkey.values[keys[i].sk_attno - 1];
		bool		isnull;
		Datum		value = slot_getattr(check->slot, attnum, &isnull);

		if (isnull ||
			!DatumGetBool(FunctionCall2Coll(&keys[i].sk_func,
											keys[i].sk_collation, value,
											keys[i].sk_argument)))
			return false;
	}
	return true;
}

/*
 * The next row that the scan finds, and that has these keys.  What a scan
 * allocates as it goes on has to stay until it ends; what comparing keys
 * allocates goes with the event.
 */
static bool
next_row(RiCheck *check, ScanKey keys)
{
	for (;;)
	{
		MemoryContext old = MemoryContextSwitchTo(GetMemoryChunkContext(check));
		bool		found = index_getnext_slot(check->scan, ForwardScanDirection,
											   check->slot);

		MemoryContextSwitchTo(old);
		if (!found || !check->scan->xs_recheck || has_keys(check, keys))
			return found;
		CHECK_FOR_INTERRUPTS();
	}
}

/* Find a row with these keys, and lock it if it is the parent. */
static bool
find_row(RiCheck *check, ScanKey keys, Snapshot snapshot)
{
	int			nkeys = check->direct->target->lookup.nkeys;
	MemoryContext old;
	bool		found;

	old = MemoryContextSwitchTo(GetMemoryChunkContext(check));
	PushActiveSnapshot(snapshot);
	check->scan->xs_snapshot = GetActiveSnapshot();
	index_rescan(check->scan, keys, nkeys, NULL, 0);
	MemoryContextSwitchTo(old);
	found = next_row(check, keys) && (!check->of_parent || lock_row(check));
	MemoryContextSwitchTo(GetMemoryChunkContext(check));
	ExecClearTuple(check->slot);

	/* it gives back its pins */
	index_rescan(check->scan, NULL, nkeys, NULL, 0);
	check->scan->xs_snapshot = InvalidSnapshot;
	PopActiveSnapshot();
	MemoryContextSwitchTo(old);
	return found;
}

/*
 * Fetch the row in this place if it is visible.  The page is likely to be in
 * the buffer in which it was last.
 */
static bool
fetch_row_at(RiCheck *check, ItemPointer tid)
{
	IndexFetchHeapData *fetch = (IndexFetchHeapData *) check->scan->xs_heapfetch;
	BlockNumber block = ItemPointerGetBlockNumber(tid);
	Buffer		buffer = AioRiRecentBuffer(check->batch, block);
	bool		call_again = false;
	bool		all_dead = false;
	bool		found;

	Assert(!BufferIsValid(fetch->xs_cbuf));
	if (BufferIsValid(buffer) && AioPinRecent(check->table, block, buffer))
	{
		/* as where a scan comes to another page */
		heap_page_prune_opt(check->table, buffer);
		fetch->xs_cbuf = buffer;
	}
	found = table_index_fetch_tuple(check->scan->xs_heapfetch, tid,
									GetActiveSnapshot(), check->slot,
									&call_again, &all_dead);
	if (fetch->xs_cbuf != buffer)
		AioRiRememberBuffer(check->batch, block, fetch->xs_cbuf);
	return found;
}

/* A row is found otherwise, and counted as if the index had been scanned. */
static void
count_scan(RiCheck *check)
{
	pgstat_count_index_scan(check->index);
	pgstat_count_index_tuples(check->index, 1);
	pgstat_count_heap_fetch(check->index);
}

/* Lock the row with these keys if it is in this place. */
static bool
find_row_at(RiCheck *check, ItemPointer tid, ScanKey keys, Snapshot snapshot)
{
	bool		found;

	PushActiveSnapshot(snapshot);
	check->scan->xs_snapshot = GetActiveSnapshot();
	found = fetch_row_at(check, tid) && has_keys(check, keys) && lock_row(check);
	if (found)
		count_scan(check);
	ExecClearTuple(check->slot);
	table_index_fetch_reset(check->scan->xs_heapfetch);
	check->scan->xs_snapshot = InvalidSnapshot;
	PopActiveSnapshot();
	return found;
}

/* The batches in which keys of rel's rows are found; NULL if they are not. */
static AioRiBatch *
get_batch(RiCheck *check, Relation rel)
{
	MemoryContext old;

	/* not for the few rows of most statements */
	if (check->batch_tried || check->nchecks <= CHECKS_BEFORE_REMEMBERING ||
		!AioIsHeap(rel))
		return check->batch;
	old = MemoryContextSwitchTo(GetMemoryChunkContext(check));
	check->batch = AioRiMakeBatch(check->direct->search, check->direct->target,
								  check->table, check->index,
								  check->of_parent, check->missed,
								  check->usage);
	check->batch_tried = true;
	MemoryContextSwitchTo(old);
	return check->batch;
}

/* Are the keys that this trigger checks found in batches? */
bool
AioRiFindsInBatches(const AioTriggerQueue *queue, Oid trigger)
{
	foreach_ptr(RiCheck, check, queue->checks)
	{
		if (check->trigger == trigger)
			return check->batch != NULL;
	}
	return false;
}

/* Find the row that is referred to, and lock it. */
static bool
find_parent(RiCheck *check, Relation rel, ScanKey keys)
{
	AioRiBatch *batch = get_batch(check, rel);
	ItemPointer tid = batch != NULL ? AioRiFindPlace(batch, rel) : NULL;

	return (tid != NULL &&
			find_row_at(check, tid, keys, GetTransactionSnapshot())) ||
		find_row(check, keys, GetTransactionSnapshot());
}

/* Find a row that refers to one with these keys, which is one of rel's. */
static bool
find_child(RiCheck *check, Relation rel, ScanKey keys)
{
	AioRiBatch *batch = get_batch(check, rel);

	check->nchecks++;
	if (batch != NULL)
		AioRiReadAhead(batch, rel);

	/* rows that its snapshot is too old for count, too */
	return find_row(check, keys, IsolationUsesXactSnapshot() ?
					GetLatestSnapshot() : GetTransactionSnapshot());
}

/*
 * Find what the check asks for, as the owner of the table in which it searches:
 * so would the query, and a function in C might ask.  An error resets this as
 * it resets what the query sets.
 */
static bool
find_as_owner(RiCheck *check, Relation rel, ScanKey keys)
{
	Oid			userid;
	int			sec_context;
	bool		found;

	GetUserIdAndSecContext(&userid, &sec_context);
	SetUserIdAndSecContext(check->table->rd_rel->relowner,
						   sec_context | SECURITY_LOCAL_USERID_CHANGE |
						   SECURITY_NOFORCE_RLS);
	found = check->of_parent ? find_parent(check, rel, keys) :
		find_child(check, rel, keys);
	SetUserIdAndSecContext(userid, sec_context);
	return found;
}

/*
 * A check has been made; in vain, if it needs a query.  Finding and locking a
 * row processes invalidations, after which nobody knows the search any more.
 */
static void
note_check(RiCheck *check, bool in_vain)
{
	if (check->generation == aio_ri_generation)
		AioRiNoteDirect(check->direct, in_vain);
}

/*
 * RI_FKey_check(): this row of the referencing table has keys, none of which is
 * null; pk_rel is locked.  Returns whether the row that they refer to has been
 * found and locked.  If so, pk_rel is closed, and its lock kept.
 *
 * Raises what finding and locking a row raises.  Waits for another transaction
 * only if that begins to update the row at this moment.
 */
bool
AioRiHasParent(const TriggerData *trigger, Oid constraint, Relation pk_rel,
			   TupleTableSlot *row)
{
	RiCheck    *check = get_check(trigger, constraint, true, pk_rel);
	ScanKeyData keys[INDEX_MAX_KEYS];
	LockedKey	key;
	LockedKey  *locked;
	bool		found;

	if (check == NULL ||
		!AioRiSetKeys(check->direct->search, check->direct->target, row, false, keys))
	{
		AioRiCountQuery(trigger);
		return false;
	}
	key.length = image_of(check, keys, row->tts_tupleDescriptor, (char *) key.image);
	key.locked_at = GetCurrentCommandId(false);
	locked = find_locked(check, &key, &found);
	if (found)
		count_scan(check);
	else
	{
		found = find_as_owner(check, trigger->tg_relation, keys);
		note_check(check, !found);
		if (found && locked != NULL)
			*locked = key;
	}
	if (!found)
	{
		AioRiCountQuery(trigger);
		return false;
	}
	AioCountDirectCheck(check->usage);
	table_close(pk_rel, NoLock);
	return true;
}

/*
 * ri_restrict(): this row of the referenced table has been deleted, or has
 * other keys now; fk_rel is locked.  Returns whether it is known that no row
 * refers to it.  If so, fk_rel is closed, and its lock kept.
 *
 * With NO ACTION, rows may refer to it if there is another one with the same
 * keys.  Nobody needs to look for that one if no row does.
 *
 * Raises what finding a row raises.  Does not wait for other transactions.
 */
bool
AioRiHasNoChild(const TriggerData *trigger, Oid constraint, Relation fk_rel,
				TupleTableSlot *row)
{
	RiCheck    *check = get_check(trigger, constraint, false, fk_rel);
	ScanKeyData keys[INDEX_MAX_KEYS];
	bool		found;

	if (check == NULL ||
		!AioRiSetKeys(check->direct->search, check->direct->target, row, false, keys))
	{
		AioRiCountQuery(trigger);
		return false;
	}
	found = find_as_owner(check, trigger->tg_relation, keys);
	note_check(check, found);
	if (found)
	{
		AioRiCountQuery(trigger);
		return false;
	}
	AioCountDirectCheck(check->usage);
	table_close(fk_rel, NoLock);
	return true;
}
