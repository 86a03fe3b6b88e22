/*-------------------------------------------------------------------------
 *
 * index_am.c
 *	  The access methods that have said what may be done with their inserts.
 *
 * A list that grows: the built-in ones are registered when the server starts,
 * an extension's when its library is loaded, which is before the relation cache
 * knows any of its indexes.  Nothing is ever removed, as libraries stay loaded,
 * so that pointers into the list stay good.
 *
 * Tests: src/test/aio/index_am.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "aio/index_am.h"
#include "aio/index_policy.h"
#include "nodes/pg_list.h"
#include "utils/memutils.h"

/* of AioIndexAmOps, in TopMemoryContext */
static List *registered = NIL;

/* What the access method says of the function, or NULL if nothing is known. */
const AioIndexAmOps *
AioFindIndexAm(aminsert_function insert)
{
	foreach_ptr(const AioIndexAmOps, ops, registered)
	{
		if (ops->insert == insert)
			return ops;
	}
	return NULL;
}

/* Do the members fit together, as index_am.h asks for? */
static bool
is_consistent(const AioIndexAmOps *ops)
{
	bool		collects = ops->collect != NULL;

	if (ops->insert == NULL ||
		(ops->reads_first && ops->look_ahead == NULL))
		return false;
	if ((ops->begin_sort == NULL) != (ops->spread == NULL) ||
		(ops->begin_sort != NULL && ops->sort == NULL))
		return false;
	if (collects)
		return ops->may_collect != NULL && ops->drain != NULL;
	return ops->may_collect == NULL && ops->drain == NULL &&
		ops->in_order == NULL && ops->sort == NULL &&
		ops->check_again == NULL && ops->forget == NULL;
}

void
AioRegisterIndexAm(const AioIndexAmOps *ops)
{
	MemoryContext old;

	if (!is_consistent(ops))
		elog(ERROR, "what an index access method allows contradicts itself");
	if (AioFindIndexAm(ops->insert) != NULL)
		elog(ERROR, "index access method has been registered already");

	old = MemoryContextSwitchTo(TopMemoryContext);
	registered = lappend(registered, unconstify(AioIndexAmOps *, ops));
	MemoryContextSwitchTo(old);
	Assert(AioFindIndexAm(ops->insert) == ops);
}
