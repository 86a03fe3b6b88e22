/*-------------------------------------------------------------------------
 *
 * table_gate.c
 *	  Keep other sessions from writing to a table, for a moment.
 *
 * Whoever inserts unique keys in another order than that of the rows must not
 * meet a transaction that is in progress: it would wait for it while it has
 * keys in the index that come later by row, and the two could deadlock where
 * row order would not have them.  So it closes the table's gate, which fails
 * unless nobody else has written to the table in a transaction that is still in
 * progress, and opens it when the keys are in.
 *
 * A transaction that writes to a table has a ROW EXCLUSIVE lock on it, until it
 * ends.  Whoever closes the gate says so in shared memory, and then looks for
 * the locks of others.  Whoever has got a lock looks at the gate.  Since both
 * take an LWLock in between, which protects the place where that lock is noted,
 * one of the two sees the other, and it is the closer who yields.  That is
 * INVARIANT-72.
 *
 * INVARIANT-73: nobody waits at a gate for one who waits for him.  A gate is
 * waited at only where the lock could have been waited for, that is without
 * LWLocks, and without heavyweight locks that are held briefly.  Between
 * AioCloseGate() and AioOpenGate() no transaction is waited for.  If a table
 * lock is, such as one on a catalog, those at the gate notice it after
 * deadlock_timeout, and open the gate: a deadlock is one that the detector sees
 * then.
 *
 * INVARIANT-74: a gate is open again when the session that has closed it has
 * raised an error, or is gone.  The caller opens it in a PG_FINALLY; a process
 * that exits, when its transaction is aborted, which may be long before the end
 * of what it does then.  After a crash, shared memory is new.
 *
 * Conditional requests for a lock do not wait at the gate, and nothing is
 * written on their account: a statement that writes has asked for the lock
 * itself.
 *
 * Tests: src/test/aio/isolation/specs/gate.spec,
 *		  src/test/aio/index/t/006_gate.pl.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "aio/shared_state.h"
#include "aio/table_gate.h"
#include "aio/task.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "storage/proc.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/timestamp.h"
#include "utils/wait_event.h"

AioTableGates *aio_table_gates = NULL;

/* Has this process closed one? */
static bool mine_is_closed = false;

static Size
gates_size(void)
{
	return add_size(offsetof(AioTableGates, tables),
					mul_size(MaxBackends, sizeof(pg_atomic_uint64)));
}

static void
init_gates(void)
{
	pg_atomic_init_u32(&aio_table_gates->closed, 0);
	ConditionVariableInit(&aio_table_gates->opened);
	for (int i = 0; i < MaxBackends; i++)
		pg_atomic_init_u64(&aio_table_gates->tables[i], 0);
}

static const AioSharedState gates_state = {
	.name = "aio table gates",
	.size = gates_size,
	.address = (void **) &aio_table_gates,
	.initialize = init_gates,
};

/* While libraries are preloaded: ask for shared memory. */
void
AioTableGateInitialize(void)
{
	AioShareState(&gates_state);
}

static LOCKTAG
tag_of(Relation rel)
{
	LOCKTAG		tag;

	SET_LOCKTAG_RELATION(tag, rel->rd_lockInfo.lockRelId.dbId,
						 rel->rd_lockInfo.lockRelId.relId);
	return tag;
}

static uint64
table_of(const LOCKTAG *tag)
{
	Assert(tag->locktag_type == LOCKTAG_RELATION);
	return (uint64) tag->locktag_field1 << 32 | tag->locktag_field2;
}

/*
 * Is a transaction one of VACUUM's?  It writes to no table, but has a lock that
 * is like that of one who does.
 */
static bool
is_vacuum(VirtualTransactionId vxid)
{
	PGPROC	   *proc;
	bool		result;

	/* prepared */
	if (vxid.procNumber == INVALID_PROC_NUMBER)
		return false;
	proc = GetPGProcByNumber(vxid.procNumber);
	LWLockAcquire(ProcArrayLock, LW_SHARED);
	result = proc->vxid.lxid == vxid.localTransactionId &&
		(proc->statusFlags & PROC_IN_VACUUM) != 0;
	LWLockRelease(ProcArrayLock);
	return result;
}

/*
 * Can another transaction have written to this table, and be in progress?  Says
 * yes if in doubt: ANALYZE and CREATE INDEX CONCURRENTLY count, too.
 */
bool
AioOthersWrite(Relation rel)
{
	LOCKTAG		tag = tag_of(rel);
	int			n;
	VirtualTransactionId *vxids = GetLockConflicts(&tag, ShareLock, &n);
	bool		result = false;

	for (int i = 0; i < n && !result; i++)
		result = !is_vacuum(vxids[i]);
	pfree(vxids);
	return result;
}

/*
 * Open the gate that this process has closed, if there is one.  Raises nothing,
 * and may be called in a critical section.
 */
void
AioOpenGate(void)
{
	if (!mine_is_closed)
		return;
	mine_is_closed = false;
	pg_atomic_write_u64(&aio_table_gates->tables[MyProcNumber], 0);
	pg_atomic_fetch_sub_u32(&aio_table_gates->closed, 1);
	ConditionVariableBroadcast(&aio_table_gates->opened);
}

/* XactCallback: errors that end the process skip PG_FINALLY. */
static void
open_at_abort(XactEvent event, void *arg)
{
	if (event == XACT_EVENT_ABORT || event == XACT_EVENT_PARALLEL_ABORT)
		AioOpenGate();
}

/*
 * Keep others from writing to a table that this transaction writes to.  Returns
 * false if another transaction has, and is in progress.
 *
 * The caller opens the gate in any case, also after an error, soon, and waits
 * for nobody in between.  Looks up no catalog.
 */
bool
AioCloseGate(Relation rel)
{
	static bool registered = false;
	LOCKTAG		tag = tag_of(rel);

	Assert(!mine_is_closed && aio_current_task == NULL);
	Assert(CheckRelationLockedByMe(rel, RowExclusiveLock, true));
	if (aio_table_gates == NULL)
		return false;
	if (!registered)
		RegisterXactCallback(open_at_abort, NULL);
	registered = true;

	pg_atomic_write_u64(&aio_table_gates->tables[MyProcNumber], table_of(&tag));
	pg_atomic_fetch_add_u32(&aio_table_gates->closed, 1);
	mine_is_closed = true;
	if (!AioOthersWrite(rel))
		return true;
	AioOpenGate();
	return false;
}

/* Does a gate that this process has closed keep others out? */
bool
AioGateIsMine(void)
{
	return mine_is_closed && pg_atomic_read_u64(&aio_table_gates->tables[MyProcNumber]) != 0;
}

/* A process other than this one that has closed a table's gate, or NULL. */
static PGPROC *
find_closer(uint64 table)
{
	for (int i = 0; i < MaxBackends; i++)
	{
		if (pg_atomic_read_u64(&aio_table_gates->tables[i]) == table && i != MyProcNumber)
			return GetPGProcByNumber(i);
	}
	return NULL;
}

/*
 * Is a process waiting for a lock on a table?  It does not expect to, while it
 * has closed a gate: what it reads then are its own table's indexes, unless
 * something must be looked up in a catalog that somebody has locked.
 */
static bool
waits_for_table(const PGPROC *proc)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext,
												  "locks of who is waited for",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	BlockedProcsData *data = GetBlockerStatusData(proc->pid);

	/* all of them are those of the one lock that it waits for */
	bool		result = data->nlocks > 0 &&
		data->locks[0].locktag.locktag_type == LOCKTAG_RELATION;

	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);
	return result;
}

/* Have those at a gate go on, if it is still closed by this process. */
static void
open_by_force(PGPROC *closer, uint64 table)
{
	if (pg_atomic_compare_exchange_u64(&aio_table_gates->tables[GetNumberFromPGProc(closer)],
									   &table, 0))
		ConditionVariableBroadcast(&aio_table_gates->opened);
}

/*
 * A lock on this table has been got, while some gates are closed: wait until
 * its own is open, if it is one of them.  Can be interrupted.
 */
void
AioWaitAtGate(const LOCKTAG *tag)
{
	static uint32 gate_event = 0;
	uint64		table = table_of(tag);
	PGPROC	   *closer = find_closer(table);
	TimestampTz begin;

	if (closer == NULL)
		return;
	Assert(aio_current_task == NULL && CritSectionCount == 0);
	/* or it would wait for us */
	Assert(!mine_is_closed);

	if (gate_event == 0)
		gate_event = WaitEventExtensionNew("AioTableGate");
	begin = GetCurrentTimestamp();
	ConditionVariablePrepareToSleep(&aio_table_gates->opened);
	while ((closer = find_closer(table)) != NULL)
	{
		/* others that open and close theirs wake us up, too */
		long		waited = TimestampDifferenceMilliseconds(begin, GetCurrentTimestamp());

		if (waited < DeadlockTimeout)
			ConditionVariableTimedSleep(&aio_table_gates->opened, DeadlockTimeout - waited,
										gate_event);
		else
		{
			if (waits_for_table(closer))
				open_by_force(closer, table);
			begin = GetCurrentTimestamp();
		}
	}
	ConditionVariableCancelSleep();
}
