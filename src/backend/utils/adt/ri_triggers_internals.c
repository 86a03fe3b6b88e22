/*-------------------------------------------------------------------------
 *
 * ri_triggers_internals.c
 *	  Included at the end of utils/adt/ri_triggers.c: what it knows of a
 *	  foreign key.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "aio/ri.h"

/* Look up a foreign key.  Raises an error if there is none. */
void
AioRiGetConstraint(Oid id, AioRiConstraint *constraint)
{
	const RI_ConstraintInfo *riinfo = ri_LoadConstraintInfo(id);

	constraint->pk_relid = riinfo->pk_relid;
	constraint->fk_relid = riinfo->fk_relid;
	constraint->has_period = riinfo->hasperiod;
	constraint->nkeys = riinfo->nkeys;
	for (int i = 0; i < riinfo->nkeys; i++)
	{
		constraint->pk_attnums[i] = riinfo->pk_attnums[i];
		constraint->fk_attnums[i] = riinfo->fk_attnums[i];
		constraint->pf_eq_oprs[i] = riinfo->pf_eq_oprs[i];
	}
}
