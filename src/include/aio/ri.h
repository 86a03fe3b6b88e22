/*-------------------------------------------------------------------------
 *
 * ri.h
 *	  Referential integrity: foreign keys, and how their rows are found.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AIO_RI_H
#define AIO_RI_H

#include "access/attnum.h"
#include "commands/trigger.h"
#include "executor/tuptable.h"
#include "nodes/execnodes.h"
#include "utils/relcache.h"

/* aio.direct_foreign_key_checks */
extern PGDLLIMPORT bool aio_direct_foreign_key_checks;

/* A foreign key, as the server's own triggers know it. */
typedef struct AioRiConstraint
{
	Oid			pk_relid;		/* referenced table */
	Oid			fk_relid;		/* referencing table */
	bool		has_period;
	int			nkeys;
	AttrNumber	pk_attnums[INDEX_MAX_KEYS];
	AttrNumber	fk_attnums[INDEX_MAX_KEYS];
	Oid			pf_eq_oprs[INDEX_MAX_KEYS]; /* PK = FK */
} AioRiConstraint;

/* What a trigger of a statement has done, and what was looked up for it. */
typedef struct AioTriggerUsage
{
	Oid			trigger;
	uint64		direct;			/* checks of foreign keys without a query */
	uint64		queries;		/* checks, and actions, by a query */
	uint64		ahead;			/* keys that were looked up ahead */
} AioTriggerUsage;

/* ri_triggers_internals.c */
extern void AioRiGetConstraint(Oid id, AioRiConstraint *constraint);

/* ri_check.c */
extern bool AioRiHasParent(const TriggerData *trigger, Oid constraint,
						   Relation pk_rel, TupleTableSlot *row);
extern bool AioRiHasNoChild(const TriggerData *trigger, Oid constraint,
							Relation fk_rel, TupleTableSlot *row);
extern void AioRiCloseTables(void);
extern void AioRiInitialize(void);

/* ri_usage.c */
extern void AioRiCountQuery(const TriggerData *trigger);
extern const AioTriggerUsage *AioTriggerUsageOf(const ResultRelInfo *rri,
												Oid trigger);

/* ri_ahead.c */
extern PGDLLIMPORT int aio_ri_nahead;
extern PGDLLIMPORT uint64 aio_ri_missed;
extern void AioRiEventDue(bool first);

/* ri_validate.c */
typedef struct AioRiValidation AioRiValidation;

extern AioRiValidation *AioRiBeginValidation(Relation rel, Oid constraint_id,
											 struct TableScanDescData *scan);
extern bool AioRiNextRow(AioRiValidation *validation, TupleTableSlot *slot);
extern void AioRiEndValidation(AioRiValidation *validation);

#endif							/* AIO_RI_H */
