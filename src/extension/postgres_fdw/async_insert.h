/*-------------------------------------------------------------------------
 *
 * async_insert.h
 *	  postgres_fdw: batches of rows that are sent without waiting.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AIO_ASYNC_INSERT_H
#define AIO_ASYNC_INSERT_H

#include "libpq-fe.h"
#include "nodes/execnodes.h"

struct PgFdwModifyState;
struct PgFdwConnState;

/* async_insert.c, included at the end of postgres_fdw.c */
extern void AioFdwMakeReady(struct PgFdwModifyState *fmstate, CmdType operation);
extern void AioFdwDeallocate(struct PgFdwModifyState *fmstate);
extern void AioFdwPrepare(struct PgFdwModifyState *fmstate);
extern bool AioFdwSent(struct PgFdwModifyState *fmstate);
extern void AioFdwProcessPending(AsyncRequest *areq);
extern void AioFdwLeavePipeline(PGconn *conn, struct PgFdwConnState *state);

#endif							/* AIO_ASYNC_INSERT_H */
