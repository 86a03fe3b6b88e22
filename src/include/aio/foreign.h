/*-------------------------------------------------------------------------
 *
 * foreign.h
 *	  What foreign data wrappers can do for us besides upstream's FdwRoutine.
 *
 * Nothing here is required: a wrapper that knows upstream's callbacks only,
 * ForeignAsyncRequest() and its companions among them, works as it does there.
 *
 * Inserts.  A wrapper whose ExecForeignBatchInsert() can send rows without
 * waiting for the answer does so, calls AioDeferForeignInsert(), and returns as
 * if all had been inserted.  When the answer is there, or because it has been
 * told to finish, it calls AioForeignInsertDone(), or it calls
 * AioForeignInsertFailed() with the error that the server has reported, and
 * raises that.  What has been sent on one connection is one stream, with the
 * same routine and argument; the statement waits for all its streams at once.
 *
 * Scans.  A wrapper that can send a scan's query and collect the first rows
 * later registers an AioFdwRoutine.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AIO_FOREIGN_H
#define AIO_FOREIGN_H

#include "foreign/fdwapi.h"
#include "lib/ilist.h"
#include "nodes/execnodes.h"
#include "utils/relcache.h"

struct WaitEventSet;
struct WaitEvent;

/* ------------------------------------------------------------------------
 * Inserts
 * ------------------------------------------------------------------------
 */

/* How a stream of inserts is awaited. */
typedef struct AioForeignInsertRoutine
{
	/*
	 * Wait until all inserts of the stream are complete, and report that by
	 * AioForeignInsertDone().  May raise.
	 */
	void		(*Finish) (void *arg);

	/*
	 * Optional, as the next one: on which socket, and for which events (of
	 * WaitEventSets), is it to be waited for?  If nothing more is sent before
	 * that, 'last' is true, and whatever has the server answer is sent.  May
	 * raise, and may find that all is complete.  PGINVALID_SOCKET: it cannot
	 * be waited for together with others.
	 */
	pgsocket	(*ConfigureWait) (void *arg, bool last, uint32 *events);

	/*
	 * That socket is ready: take the answers that are there, as Finish()
	 * does, without waiting for others.  May raise.
	 */
	void		(*Notify) (void *arg);
} AioForeignInsertRoutine;

/* A batch that has been sent.  It is gone when it is done. */
typedef struct AioForeignInsert
{
	dlist_node	node;			/* in order of sending */
	EState	   *estate;			/* of the statement */
	uint64	   *processed;		/* counts its rows, or NULL */
	bool	   *relname_only;	/* set while an error is not about a line */
	int			nslots;			/* rows that were counted there */
	int			nest_level;		/* of the transaction */
	struct AioForeignStream *stream;	/* NULL when it has failed */
	ErrorData  *error;			/* of the server, or NULL */
} AioForeignInsert;

/* aio.await_foreign_inserts */
typedef enum AioAwaitForeign
{
	AIO_AWAIT_FOREIGN_OFF,
	AIO_AWAIT_FOREIGN_ASYNC_CAPABLE,
	AIO_AWAIT_FOREIGN_ON,
} AioAwaitForeign;

extern PGDLLIMPORT int aio_await_foreign_inserts;

/* are there any? */
extern PGDLLIMPORT bool aio_foreign_inserts_pending;

extern bool AioMayDeferForeignInsert(Relation rel);
extern AioForeignInsert *AioDeferForeignInsert(Relation rel,
											   const AioForeignInsertRoutine *routine,
											   void *arg);
extern void AioAwaitSomeForeignInserts(void);
extern void AioForeignInsertFailed(AioForeignInsert *insert, ErrorData *error);
extern void AioForeignInsertDone(AioForeignInsert *insert, int ninserted);

/* ------------------------------------------------------------------------
 * Scans
 * ------------------------------------------------------------------------
 */

typedef struct AioFdwRoutine
{
	/* of the wrapper's FdwRoutine: these tell whose scan, or insert, it is */
	IterateForeignScan_function IterateForeignScan;
	ExecForeignBatchInsert_function ExecForeignBatchInsert; /* or NULL */

	/*
	 * This scan, which has not been executed since it began, is going to be,
	 * after others: send its query if that is possible without waiting for
	 * what others have sent.  May raise what IterateForeignScan() may.
	 */
	void		(*ReadAhead) (ForeignScanState *node);
} AioFdwRoutine;

/* aio.foreign_read_ahead */
extern PGDLLIMPORT bool aio_foreign_read_ahead;

extern void AioRegisterFdw(const AioFdwRoutine *routine);
extern bool AioAnyFdw(void);
extern const AioFdwRoutine *AioFindFdw(const FdwRoutine *fdw);
extern bool AioMayFetchMany(ForeignScanState *node);
extern bool AioMayReadAhead(ForeignScanState *node);

/* ------------------------------------------------------------------------
 * Called by seams, and at startup
 * ------------------------------------------------------------------------
 */

extern TupleTableSlot **AioForeignBatchInsert(uint64 *processed,
											  bool *relname_only,
											  EState *estate,
											  ResultRelInfo *rri,
											  TupleTableSlot **slots,
											  TupleTableSlot **planSlots,
											  int *nslots);
extern void AioFinishForeignInserts(EState *estate);
extern int	AioForeignStreams(void);
extern int	AioWaitForAppend(struct WaitEventSet *set, long timeout,
							 struct WaitEvent *events, int nevents,
							 uint32 wait_event_info);
extern void AioForeignInitialize(void);
extern void AioAppendBegun(AppendState *node);
extern void AioMergeAppendBegins(MergeAppendState *node);
extern bool AioAppendPoll(AppendState *node);

/*
 * ExecAppend(): a child that others cannot overtake has given a row; have
 * servers answered meanwhile?
 */
static inline bool
AioAppendShouldPoll(AppendState *node)
{
	return node->as_nasyncremain > 0 && AioAppendPoll(node);
}

#endif							/* AIO_FOREIGN_H */
