/*-------------------------------------------------------------------------
 *
 * backlog.h
 *	  Index entries that a statement has still to insert.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AIO_BACKLOG_H
#define AIO_BACKLOG_H

#include <signal.h>

#include "access/genam.h"
#include "commands/copy.h"
#include "executor/execdesc.h"
#include "nodes/execnodes.h"
#include "storage/lock.h"
#include "utils/snapshot.h"

struct TriggerData;

/* aio.index_batch_memory, in kB */
extern PGDLLIMPORT int aio_index_batch_memory;

/* aio.batch_unique_keys */
typedef enum AioBatchUniqueKeys
{
	AIO_BATCH_UNIQUE_KEYS_OFF,
	AIO_BATCH_UNIQUE_KEYS_AUTO,
	AIO_BATCH_UNIQUE_KEYS_ON,
} AioBatchUniqueKeys;

extern PGDLLIMPORT int aio_batch_unique_keys;

/* rows of a statement that are inserted without a backlog */
#define AIO_ROWS_BEFORE_BATCH	1000
#ifdef USE_ASSERT_CHECKING
extern PGDLLIMPORT int aio_debug_rows_before_batch;
extern PGDLLIMPORT bool aio_debug_spill;
#else
#define aio_debug_spill		false
#define aio_debug_rows_before_batch AIO_ROWS_BEFORE_BATCH
#endif

/* does any running statement have a backlog? */
extern PGDLLIMPORT bool aio_backlogs_exist;

/* are statements to be looked at whose rows or keys may wait? */
extern PGDLLIMPORT volatile sig_atomic_t aio_keys_wait;

/* does a statement get so few rows that it does not have their keys wait? */
extern PGDLLIMPORT bool aio_rows_are_few;

/* rows applied by logical replication that may have a backlog */
extern PGDLLIMPORT uint64 aio_rows_applied;

extern bool AioBufferRow(ModifyTableState *mtstate, ResultRelInfo *rri,
						 TupleTableSlot *slot, bool canSetTag);
extern void AioDrainStatement(EState *estate);
extern void AioDrainVisibleTo(Snapshot snapshot);
extern void AioInsertKeptRows(void);
extern void AioDrainForSearch(IndexScanDesc scan);
extern void AioDrainOpened(Relation rel);
extern Relation AioOpenQuietly(Relation (*open) (Oid, LOCKMODE), Oid relid,
							   LOCKMODE lockmode);
extern void AioDrainBeforeClosing(ResultRelInfo *rri);
extern void AioEndApply(void);
extern void AioEndApplyFor(int action);
extern void AioEndApplyForTrigger(const struct TriggerData *trigger);
extern void AioEndApplyBeforeRow(Relation rel);
extern void AioEndApplyBeforeLock(const LOCKTAG *tag, LOCKMODE mode,
								  bool session);
extern bool AioApplyHasLocks(void);
extern void AioLookAtQueries(void);
extern void AioLeftOutRow(PlanState *node);
extern void AioDrainKeysBeforeLock(const LOCKTAG *tag, LOCKMODE mode,
								   bool session);

/* upstream's CopyFrom(), for which guard.c has a stand-in */
extern uint64 upstream_CopyFrom(CopyFromState cstate);

#endif							/* AIO_BACKLOG_H */
