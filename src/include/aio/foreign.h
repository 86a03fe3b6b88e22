/*-------------------------------------------------------------------------
 *
 * foreign.h
 *	  Batches of rows that foreign servers insert while we go on.
 *
 * For foreign data wrappers.  One whose ExecForeignBatchInsert can send rows
 * without waiting for the answer does so, calls AioDeferForeignInsert(), and
 * returns as if all had been inserted.  When the answer is there, or because it
 * has been told to finish, it calls AioForeignInsertDone(), or it calls
 * AioForeignInsertFailed() with the error that the server has reported, and
 * raises that.  Others need not do anything.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AIO_FOREIGN_H
#define AIO_FOREIGN_H

#include "lib/ilist.h"
#include "nodes/execnodes.h"
#include "utils/relcache.h"

/*
 * Wait until the insert is complete, and report that by AioForeignInsertDone().
 * Others of the same server may be finished on the way.  May raise.
 */
typedef void (*AioForeignFinish) (void *arg);

/* A batch that has been sent.  It is gone when it is done. */
typedef struct AioForeignInsert
{
	dlist_node	node;			/* in order of sending */
	EState	   *estate;			/* of the statement */
	uint64	   *processed;		/* counts its rows, or NULL */
	bool	   *relname_only;	/* set while an error is not about a line */
	int			nslots;			/* rows that were counted there */
	int			nest_level;		/* of the transaction */
	AioForeignFinish finish;
	void	   *arg;
	ErrorData  *error;			/* of the server, or NULL */
} AioForeignInsert;

/* aio.await_foreign_inserts */
extern PGDLLIMPORT bool aio_await_foreign_inserts;

/* are there any? */
extern PGDLLIMPORT bool aio_foreign_inserts_pending;

extern AioForeignInsert *AioDeferForeignInsert(Relation rel,
											   AioForeignFinish finish, void *arg);
extern bool AioMayDeferForeignInsert(Relation rel);
extern void AioForeignInsertFailed(AioForeignInsert *insert, ErrorData *error);
extern void AioForeignInsertDone(AioForeignInsert *insert, int ninserted);

/* called by seams, and at startup */
extern TupleTableSlot **AioForeignBatchInsert(EState *estate,
											  ResultRelInfo *rri,
											  TupleTableSlot **slots,
											  TupleTableSlot **planSlots,
											  int *nslots, uint64 *processed,
											  bool *relname_only);
extern void AioFinishForeignInserts(EState *estate);
extern void AioForeignInitialize(void);

#endif							/* AIO_FOREIGN_H */
