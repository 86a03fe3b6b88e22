/*-------------------------------------------------------------------------
 *
 * async_fdw.h
 *	  postgres_fdw: what its files call, and what ours share.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AIO_ASYNC_FDW_H
#define AIO_ASYNC_FDW_H

#include "datatype/timestamp.h"
#include "libpq-fe.h"
#include "nodes/execnodes.h"

struct PgFdwModifyState;
struct PgFdwConnState;

/* upstream's, for which async_pending.c has a stand-in */
extern void upstream_process_pending_request(AsyncRequest *areq);

/* async_pending.c, which is included at the end of postgres_fdw.c */
extern void AioFdwFreeConnection(struct PgFdwConnState *state);
extern bool AioFdwIsAsyncCapable(Oid foreigntableid);

/* async_insert.c, likewise */
extern void AioFdwMakeReady(struct PgFdwModifyState *fmstate, CmdType operation);
extern void AioFdwDeallocate(struct PgFdwModifyState *fmstate);
extern void AioFdwPrepare(struct PgFdwModifyState *fmstate);
extern bool AioFdwSent(struct PgFdwModifyState *fmstate);
extern void AioFdwForgetPipeline(PGconn *conn, struct PgFdwConnState *state);
extern void AioFdwLeavePipeline(PGconn *conn, TimestampTz endtime,
								TimestampTz cancel_at);

/* async_scan.c, likewise */
extern void AioFdwScanBegins(ForeignScanState *node);
extern void AioFdwFetchMore(ForeignScanState *node);
extern PGresult *AioFdwFetched(ForeignScanState *node, PGconn *conn);
extern void AioFdwSizeFetch(ForeignScanState *node);
extern void AioFdwRescan(ForeignScanState *node);
extern void AioFdwInitialize(void);

#endif							/* AIO_ASYNC_FDW_H */
