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

#include "aio/index_am.h"
#include "nodes/parsenodes.h"

typedef struct AioIndexPolicy
{
	Oid			indexid;
	const AioIndexAmOps *ops;	/* NULL if entries are inserted as ever:
								 * unknown access method, or user code */
	bool		looks;			/* its code may be anybody's, and look into
								 * other indexes */
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
extern bool AioTasksHelp(const AioTablePolicy *policy,
						 const ResultRelInfo *rri);
extern void AioNoteReads(AioTablePolicy *policy, uint64 generation, int nrows,
						 int64 reads_before);

/* type_code.c */
extern List *AioFunctionsOfAggregate(Oid funcid);
extern bool AioFunctionIsUserCode(Oid funcid);
extern bool AioFunctionIsAnybodys(Oid funcid);
extern bool AioFunctionIsTrusted(Oid funcid);
extern bool AioSupportIsAnybodys(Oid funcid);
extern bool AioFamilyHas(Oid family, bool (*test) (Oid funcid));
extern bool AioComparingRunsUserCode(Oid type);
extern bool AioClassesRunUserCode(Oid type);
extern bool AioInputRunsUserCode(Oid type);
extern bool AioInputOfRowRunsUserCode(const TupleDesc row);
extern bool AioIndexRunsUserCode(Relation index);
extern bool AioIndexIsTrusted(Relation index);

/* unnamed.c */
extern bool AioNodeCallsUnnamedCode(Node *node);

/* index_am.c */
extern const AioIndexAmOps *AioFindIndexAm(aminsert_function insert);

#endif							/* AIO_INDEX_POLICY_H */
