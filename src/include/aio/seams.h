/*-------------------------------------------------------------------------
 *
 * seams.h
 *	  What upstream's source files call: the only header of ours they include.
 *
 * Every function here is inserted by a rule in src/seams/.  Each does next
 * to nothing unless a task is running, because all of them stand in paths
 * that every backend takes all the time.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AIO_SEAMS_H
#define AIO_SEAMS_H

#include "aio/apply_ahead.h"
#include "aio/backlog.h"
#include "aio/backup.h"
#include "aio/backup_share.h"
#include "aio/block.h"
#include "aio/btree_find.h"
#include "aio/btree_search.h"
#include "aio/btree_split.h"
#include "aio/client.h"
#include "aio/commit.h"
#include "aio/copy_wait.h"
#include "aio/executor_run.h"
#include "aio/explain.h"
#include "aio/file_copy.h"
#include "aio/foreign.h"
#include "aio/gist_insert.h"
#include "aio/index_insert.h"
#include "aio/io_method.h"
#include "aio/lookup.h"
#include "aio/node_usage.h"
#include "aio/parallel_insert.h"
#include "aio/pgstat_aio.h"
#include "aio/preallocate.h"
#include "aio/read.h"
#include "aio/recovery_point.h"
#include "aio/replay.h"
#include "aio/ri.h"
#include "aio/server.h"
#include "aio/sibling_locks.h"
#include "aio/table_gate.h"
#include "aio/task.h"
#include "aio/trigger_queue.h"
#include "aio/usage.h"
#include "aio/wal.h"
#include "aio/walreceiver.h"
#include "aio/write.h"
#include "catalog/catalog.h"

/*
 * ExecInsertIndexTuples(): insert an entry into the table's index at this
 * position, perhaps later or in a task
 */
static inline bool
AioIndexInsert(AioInsertBatch *batch, int position,
			   Relation indexRelation, Datum *values, bool *isnull,
			   ItemPointer tid, Relation heapRelation,
			   IndexUniqueCheck checkUnique, bool indexUnchanged,
			   IndexInfo *indexInfo)
{
	if (batch == NULL)
		return index_insert(indexRelation, values, isnull, tid, heapRelation,
							checkUnique, indexUnchanged, indexInfo);
	return AioIndexInsertInBatch(batch, position, indexRelation, values,
								 isnull, tid, heapRelation, checkUnique,
								 indexUnchanged, indexInfo);
}

/* string_to_uuid(): the value of two hexadecimal digits, in ASCII */
static inline unsigned char
AioHexByte(const char *digits)
{
	unsigned char high = digits[0];
	unsigned char low = digits[1];

	/* letters have bit 6 set, and their last four bits count from 1 */
	return (((high & 0x0F) + (high >> 6) * 9) << 4) | ((low & 0x0F) + (low >> 6) * 9);
}

/* _bt_search(): does it end here, with the buffer's lock and pin given back? */
static inline bool
AioSearchEnds(Relation rel, Buffer *buffer, BlockNumber child)
{
	return unlikely(aio_current_task != NULL || aio_btree_finding != NULL) &&
		AioBtreeSearchEnds(rel, buffer, child);
}

/* ExecInsert(): keep the row back, to insert it together with others? */
static inline bool
AioKeepBack(ModifyTableState *mtstate, ResultRelInfo *rri,
			TupleTableSlot *slot, bool canSetTag)
{
	return unlikely(mtstate->ps.state->es_processed >= (uint64) aio_debug_rows_before_batch) &&
		AioBufferRow(mtstate, rri, slot, canSetTag);
}

/*
 * A statement's rows are in: insert what it has collected for their indexes,
 * and await those that have been sent to other servers
 */
static inline void
AioRowsInserted(EState *estate)
{
	if (unlikely(aio_backlogs_exist))
		AioDrainStatement(estate);
	if (unlikely(aio_foreign_inserts_pending))
		AioFinishForeignInserts(estate);
}

/* a query is about to look at tables through this snapshot */
static inline void
AioBeforeQuery(Snapshot snapshot)
{
	Assert(aio_current_task == NULL && AioNothingIsSuspended());
	if (unlikely(aio_backlogs_exist))
		AioDrainVisibleTo(snapshot);
}

/* index_rescan(): a search begins; those in tasks are not for rows */
static inline void
AioBeforeSearch(IndexScanDesc scan)
{
	Assert(aio_current_task != NULL || AioNothingIsSuspended() ||
		   IsSystemRelation(scan->indexRelation));
	if (unlikely(aio_backlogs_exist) && aio_current_task == NULL)
		AioDrainForSearch(scan);
}

/* relation_open(), and others like it: somebody may look into this relation */
static inline void
AioRelationOpened(Relation rel)
{
	if (unlikely(aio_backlogs_exist) && rel->rd_refcnt > 1)
		AioDrainOpened(rel);
}

/* index_open() for one who does not look into the index, or by searches only */
static inline Relation
AioOpenIndex(Oid indexid, LOCKMODE lockmode)
{
	if (likely(!aio_backlogs_exist))
		return index_open(indexid, lockmode);
	return AioOpenQuietly(index_open, indexid, lockmode);
}

/* ExecCloseIndices(): entries for these indexes may wait */
static inline void
AioBeforeClosingIndices(ResultRelInfo *rri)
{
	if (unlikely(aio_backlogs_exist))
		AioDrainBeforeClosing(rri);
}

/* apply_dispatch(): a message of the logical replication protocol has come */
static inline void
AioBeforeMessage(int action)
{
	if (unlikely(aio_rows_applied > 0))
		AioEndApplyFor(action);
}

/* BeginInternalSubTransaction(): what is inserted from now on may be undone */
static inline void
AioBeforeSubtransaction(void)
{
	if (unlikely(aio_backlogs_exist))
		AioInsertKeptRows();
}

/* ExecCallTriggerFunc() */
static inline void
AioBeforeTrigger(const struct TriggerData *trigger)
{
	if (unlikely(aio_rows_applied > 0))
		AioEndApplyForTrigger(trigger);
}

/* InitResultRelInfo(): a row of this table may be about to be inserted */
static inline void
AioBeforeRow(Relation rel)
{
	if (unlikely(aio_rows_applied > 0))
		AioEndApplyBeforeRow(rel);
}

/* LockAcquireExtended() */
static inline void
AioBeforeLock(const LOCKTAG *tag, LOCKMODE mode, bool session, bool no_wait)
{
	if (no_wait)
		return;
	if (unlikely(aio_rows_applied > 0))
		AioEndApplyBeforeLock(tag, mode, session);
	if (unlikely(aio_backlogs_exist))
		AioDrainKeysBeforeLock(tag, mode, session);
}

/* CheckTableNotInUse(): a table's relcache entry may only be used by DDL */
static inline void
AioBeforeDDL(void)
{
	if (unlikely(aio_rows_applied > 0))
		AioEndApply();
	if (unlikely(aio_trigger_queues != NULL))
		AioRiCloseTables();
}

/* COPY TO: the next row of the table, of which these columns are written */
static inline bool
AioCopyNextSlot(TableScanDesc scan, ScanDirection direction,
				TupleTableSlot *slot, List *columns)
{
	if (likely(aio_pages_missed == aio_copy_missed && aio_copies_ahead == 0 &&
			   !AIO_LOOKUPS_FORCED))
		return table_scan_getnextslot(scan, direction, slot);
	return AioCopyNextAhead(scan, direction, slot, columns);
}

/* afterTriggerInvokeEvents(): this event is about to be fired */
static inline void
AioTriggerEventDue(EState *estate, void *chunk, void *event,
				   CommandId firing_id, Oid trigger)
{
	bool		first = aio_trigger_due.estate != estate ||
		aio_trigger_due.cursor.firing_id != firing_id;

	aio_trigger_due.estate = estate;
	aio_trigger_due.cursor.chunk = chunk;
	aio_trigger_due.cursor.event = event;
	aio_trigger_due.cursor.firing_id = firing_id;
	aio_trigger_due.cursor.at_end = false;
	aio_trigger_due.trigger = trigger;
	aio_trigger_due.call = NULL;
	if (unlikely(aio_pages_missed != aio_ri_missed || aio_ri_nahead > 0 ||
				 AIO_LOOKUPS_FORCED))
		AioRiEventDue(first);
}

/* AfterTriggerExecute(): the function of the event's trigger is called */
static inline void
AioTriggerCalled(const TriggerData *call)
{
	aio_trigger_due.call = call;
}

/* afterTriggerInvokeEvents(): all that were to be fired have been */
static inline void
AioTriggerEventsFired(EState *estate)
{
	if (aio_trigger_queues != NULL)
		AioTriggerQueueEnd(estate);
}

/* WaitEventSetWait(): it sleeps, and will notice nothing meanwhile */
static inline void
AioBeforeSleep(void)
{
	AioBeforeBlock();
	if (unlikely(aio_writes_in_flight > 0) && io_method == IOMETHOD_IO_URING)
		AioFinishWritesToSleep();
	AioAssertMaySleep();
}

/* pgaio_io_reclaim(): around all that it does */
static inline void
AioBeginReclaim(void)
{
	Assert(!aio_reclaiming);
	aio_reclaiming = true;
}

static inline void
AioEndReclaim(void)
{
	aio_reclaiming = false;
}

/*
 * ConditionVariableTimedSleep(): likewise, while it can still notice that its
 * sleep has been cancelled
 */
static inline void
AioBeforeConditionVariable(void)
{
	aio_nsleeps++;
	AioBeforeSleep();
}

/* GetVictimBuffer(): which buffer next?  May the running task be suspended? */
static inline BufferDesc *
AioVictim(BufferAccessStrategy strategy, uint32 *buf_state, bool *from_ring,
		  bool may_suspend)
{
	if (likely(aio_writes_tracked == 0 && !aio_victims_lack_wal))
		return StrategyGetBuffer(strategy, buf_state, from_ring);
	return AioNextVictim(strategy, buf_state, from_ring, may_suspend);
}

/* ProcessClientReadInterrupt(): while waiting for the next command */
static inline void
AioWhileIdle(void)
{
	if (unlikely(aio_preallocation_used))
		AioEndPreallocation();
	if (unlikely(aio_read_ahead_used))
		AioEndReadAhead(true);
}

/* secure_write(): may something be sent?  Waits until it may. */
static inline bool
AioBeforeSend(void)
{
	AioAssertMayTell();
	return AioMaySend();
}

/* secure_read(): there is nothing to read, so wait for it */
static inline void
AioBeforeClientWait(void)
{
	if (unlikely(aio_messages_kept))
		AioSendKept();
	if (unlikely(aio_replies_held))
		AioSendReplies();
	AioAssertMayTell();
}

/* ProcessInterrupts() */
static inline void
AioInterrupts(void)
{
	if (unlikely(aio_messages_kept))
		AioSendKeptIfAllowed();
	if (unlikely(aio_replies_due))
		AioSendRepliesIfAllowed();
	if (unlikely(aio_keys_wait))
		AioLookAtQueries();
}

#endif							/* AIO_SEAMS_H */
