/*-------------------------------------------------------------------------
 *
 * index_policy.h
 *	  How each index of a table may be inserted into.  Private to
 *	  src/backend/executor.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AIO_INDEX_POLICY_H
#define AIO_INDEX_POLICY_H

#include "nodes/execnodes.h"
#include "nodes/parsenodes.h"

typedef enum AioIndexMode
{
	/* on the backend's own stack: unknown access method, or user code */
	AIO_INDEX_INLINE,
	/* any number of tasks at a time */
	AIO_INDEX_CONCURRENT,
	/* likewise, but each with an IndexInfo of its own */
	AIO_INDEX_LANES,
	/* one task at a time */
	AIO_INDEX_SERIAL,
	/* a task that reads first and does not suspend once it changes anything */
	AIO_INDEX_HASH,
	/* as CONCURRENT */
	AIO_INDEX_GIN,
	/* as CONCURRENT, and the btree's pages are watched for coming splits */
	AIO_INDEX_BTREE,
} AioIndexMode;

typedef struct AioIndexPolicy
{
	Oid			indexid;
	AioIndexMode mode;
} AioIndexPolicy;

typedef struct AioTablePolicy
{
	Oid			relid;			/* hash key */
	int			nindexes;
	bool		stale;			/* something may have changed */
	bool		user_code;		/* some predicate or expression calls user
								 * code */
	int			rows_without_reads; /* inserted since anything was read */
	AioIndexPolicy *indexes;	/* in the order of ri_IndexRelationDescs */
} AioTablePolicy;

/* changes whenever policies may have been freed */
extern uint64 aio_policy_generation;

extern AioTablePolicy *AioGetTablePolicy(ResultRelInfo *rri);
extern bool AioQueryCallsUserCode(Query *query);

#endif							/* AIO_INDEX_POLICY_H */
