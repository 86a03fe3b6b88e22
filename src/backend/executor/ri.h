/*-------------------------------------------------------------------------
 *
 * ri.h
 *	  Referential integrity.  Private to src/backend/executor.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AIO_RI_PRIVATE_H
#define AIO_RI_PRIVATE_H

#include "access/skey.h"
#include "aio/ri.h"
#include "aio/trigger_queue.h"
#include "lookup.h"

/* An index in which rows of a table, or of a partition, are searched. */
typedef struct AioRiTarget
{
	Oid			table;
	Oid			index;
	int		   *key_of;			/* for each key of a scan, which one of the
								 * search's it is */
	AioLookupTarget lookup;		/* nkeys is 0 if there is no such index */
} AioRiTarget;

/*
 * A search that triggers of a foreign key make for rows of one table: for the
 * row in the other table that it refers to, or for those that refer to it.  Or
 * one that logical replication makes, for rows that have the key of the one
 * given, whose columns are the table's.
 */
typedef struct AioRiSearch
{
	Oid			table;			/* in which rows are searched */
	bool		partitioned;	/* in its partitions, rather */
	Oid			index;			/* in this index, if it is known, */
	bool		by_identity;	/* or in that of the replica identity */
	int			nkeys;
	AttrNumber	attnums[INDEX_MAX_KEYS];	/* of the table */
	Oid			operators[INDEX_MAX_KEYS];	/* table's column = row's column */
	AttrNumber	row_attnums[INDEX_MAX_KEYS];	/* of the row */
	Oid			row_types[INDEX_MAX_KEYS];

	/* as far as they are known */
	List	   *targets;		/* of AioRiTarget */
	bool		incomplete;		/* some table or index was locked */
	bool		leaves_known;
	List	   *leaves;
	uint32	   *seen;			/* hashes of keys that have been looked up */
} AioRiSearch;

/* How a search is made without a query. */
typedef struct AioRiDirect
{
	struct
	{
		Oid			constraint;
		uint32		of_parent;
	}			key;
	Oid			rel;			/* whose rows are given */
	Oid			table;			/* in which rows are searched */
	AioRiSearch *search;
	AioRiTarget *target;		/* NULL: only by a query */

	/* checks that needed the query after all */
	int			in_vain;		/* since one that did not */
	int			pause;			/* the last number of them after which... */
	int			left;			/* ... so many are left to the query */
} AioRiDirect;

/* targets of one search whose leaves are not awaited */
#define AIO_RI_STEPS_MAX	4

/* Which of them have a second step to make: AioAddProbe()'s 'begun' of each. */
typedef struct AioRiSteps
{
	bool		begun[AIO_RI_STEPS_MAX];
} AioRiSteps;

/* Keys that are probed together. */
typedef struct AioRiProbes
{
	List	   *probes;			/* AioAddProbe() */
	List	   *opened;			/* of AioRiTarget */
} AioRiProbes;

typedef struct AioRiAhead AioRiAhead;

/* Checks of a unique key, or an exclusion constraint, that come later. */
typedef struct AioRecheck AioRecheck;

/* What is kept for a queue of triggers. */
typedef struct AioTriggerQueue
{
	struct AioTriggerQueue *next;
	EState	   *estate;

	/* ri_check.c; closes what is open */
	List	   *checks;
	void		(*end_checks) (struct AioTriggerQueue *queue);

	/* ri_ahead.c; the queue is being freed */
	AioRiAhead *ahead;
	void		(*forget_ahead) (AioRiAhead *ahead);

	/* ri_usage.c */
	List	   *usages;
} AioTriggerQueue;

/* trigger_queue.c */
extern AioTriggerQueue *AioFindTriggerQueue(const EState *estate);
extern AioTriggerQueue *AioTriggerQueueOf(EState *estate);

/* ri_search.c */
extern AioRiSearch *AioRiMakeSearch(const AioRiConstraint *constraint,
									bool of_parent, Relation rel);
extern AioRiTarget *AioRiGetTarget(AioRiSearch *search, Oid relid);
extern List *AioRiFindTargets(AioRiSearch *search, TupleTableSlot *row);
extern bool AioRiSearchesIn(const AioRiSearch *search, Oid relid);
extern bool AioRiIsKnown(AioRiSearch *search, TupleTableSlot *row);
extern void AioRiForgetKeys(AioRiSearch *search);
extern bool AioRiSetKeys(const AioRiSearch *search, const AioRiTarget *target,
						 TupleTableSlot *row, bool copy, ScanKey keys);
extern bool AioRiOpenTarget(AioRiTarget *target);
extern void AioRiCloseTarget(AioRiTarget *target);

/* ri_probe.c */
extern bool AioRiAddProbes(AioRiProbes *probes, AioRiSearch *search,
						   TupleTableSlot *row, int ahead, AioRiSteps *steps,
						   bool again, bool near);
extern bool AioRiOpenForProbes(AioRiProbes *probes, AioRiTarget *target);
extern void AioRiEndProbes(AioRiProbes *probes);

/* unique_recheck.c */
extern AioRecheck *AioMakeRecheck(Relation rel, Oid indexid);
extern bool AioRecheckReads(const AioRecheck *recheck, Oid relid);
extern bool AioAddRecheckProbe(AioRiProbes *probes, AioRecheck *recheck,
							   TupleTableSlot *row, int ahead,
							   AioRiSteps *steps, bool again, bool near);

/* ri_batch.c */
typedef struct AioRiBatch AioRiBatch;

extern AioRiBatch *AioRiMakeBatch(const AioRiSearch *search,
								  const AioRiTarget *target,
								  Relation table, Relation index,
								  bool of_parent, uint64 missed,
								  AioTriggerUsage *usage);
extern void AioRiFreeBatch(AioRiBatch *batch);
extern ItemPointer AioRiFindPlace(AioRiBatch *batch, Relation rel);
extern void AioRiReadAhead(AioRiBatch *batch, Relation rel);
extern Buffer AioRiRecentBuffer(AioRiBatch *batch, BlockNumber block);
extern void AioRiRememberBuffer(AioRiBatch *batch, BlockNumber block,
								Buffer buffer);

/* ri_usage.c */
extern AioTriggerUsage *AioTriggerUsageIn(AioTriggerQueue *queue, Oid trigger);
extern void AioCountDirectCheck(AioTriggerUsage *usage);
extern void AioCountKeysAhead(AioTriggerUsage *usage, uint32 n);

/* ri_check.c */
extern bool AioRiFindsInBatches(const AioTriggerQueue *queue, Oid trigger);

/* ri_direct.c */
extern uint64 aio_ri_generation;

extern AioRiDirect *AioRiGetDirect(Oid constraint, bool of_parent,
								   Relation rel, Relation other);
extern AioRiDirect *AioRiKnownDirect(Oid constraint, bool of_parent);
extern bool AioRiPauses(AioRiDirect *direct);
extern void AioRiNoteDirect(AioRiDirect *direct, bool in_vain);

#endif							/* AIO_RI_PRIVATE_H */
