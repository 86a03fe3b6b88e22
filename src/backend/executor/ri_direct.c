/*-------------------------------------------------------------------------
 *
 * ri_direct.c
 *	  Which searches of foreign keys' triggers need no query.
 *
 * The server searches by a query, as the owner of the table in which it
 * searches.  A scan of an index finds the same rows, if neither a permission, a
 * policy, a rule nor a user's function could make a difference.  This is found
 * out once for a constraint, and again when anything has changed on which it
 * may depend.
 *
 * Tests: src/test/aio/ri.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_namespace_d.h"
#include "catalog/pg_operator.h"
#include "catalog/pg_proc_d.h"
#include "catalog/pg_type.h"
#include "guard.h"
#include "ri.h"
#include "utils/acl.h"
#include "utils/hsearch.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/syscache.h"

/* after so many checks in vain in a row, so many are left to queries */
#define IN_VAIN_MAX	8
#define PAUSE_MIN	16
#define PAUSE_MAX	1024

static HTAB *searches = NULL;
static MemoryContext search_context = NULL;

/*
 * Incremented by invalidation, which must not free what a caller still looks
 * at; and what it was when 'searches' was empty.
 */
uint64		aio_ri_generation = 1;
static uint64 searches_generation = 0;

/* more searches than that are not looked through for each invalidation */
#define SEARCHES_MAX	64

/* a search that is not among them yet, as it is found out how to make it */
static bool filling = false;

static void
relcache_changed(Datum arg, Oid relid)
{
	HASH_SEQ_STATUS status;
	AioRiDirect *direct;

	if (!OidIsValid(relid) || filling || searches == NULL ||
		hash_get_num_entries(searches) > SEARCHES_MAX)
	{
		aio_ri_generation++;
		return;
	}
	hash_seq_init(&status, searches);
	while ((direct = hash_seq_search(&status)) != NULL)
	{
		if (relid == direct->rel || relid == direct->table ||
			(direct->target != NULL && relid == direct->target->index))
			aio_ri_generation++;
	}
}

static void
catalog_changed(Datum arg, int cacheid, uint32 hashvalue)
{
	aio_ri_generation++;
}

static void
init_searches(void)
{
	HASHCTL		ctl;

	if (search_context == NULL)
	{
		search_context = AllocSetContextCreate(TopMemoryContext,
											   "foreign keys",
											   ALLOCSET_SMALL_SIZES);
		CacheRegisterRelcacheCallback(relcache_changed, (Datum) 0);
		CacheRegisterSyscacheCallback(CONSTROID, catalog_changed, (Datum) 0);
		CacheRegisterSyscacheCallback(PROCOID, catalog_changed, (Datum) 0);
		CacheRegisterSyscacheCallback(NAMESPACEOID, catalog_changed, (Datum) 0);
		CacheRegisterSyscacheCallback(OPEROID, catalog_changed, (Datum) 0);
		CacheRegisterSyscacheCallback(TYPEOID, catalog_changed, (Datum) 0);
		CacheRegisterSyscacheCallback(CLAOID, catalog_changed, (Datum) 0);
		CacheRegisterSyscacheCallback(AMOPSTRATEGY, catalog_changed, (Datum) 0);
		CacheRegisterSyscacheCallback(AMPROCNUM, catalog_changed, (Datum) 0);
		CacheRegisterSyscacheCallback(AUTHOID, catalog_changed, (Datum) 0);
		CacheRegisterSyscacheCallback(AUTHMEMROLEMEM, catalog_changed, (Datum) 0);

		/* its owner is a member of pg_database_owner */
		CacheRegisterSyscacheCallback(DATABASEOID, catalog_changed, (Datum) 0);
	}
	searches = NULL;
	MemoryContextReset(search_context);

	ctl.keysize = sizeof(((AioRiDirect *) 0)->key);
	ctl.entrysize = sizeof(AioRiDirect);
	ctl.hcxt = search_context;
	searches = hash_create("foreign keys", 16, &ctl,
						   HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	searches_generation = aio_ri_generation;
}

/* May a role name objects of this schema? */
static bool
may_use_schema(Oid namespace, Oid role)
{
	return object_aclcheck(NamespaceRelationId, namespace, role,
						   ACL_USAGE) == ACLCHECK_OK;
}

/* May it name this type, to which a query has to cast? */
static bool
may_name_type(Oid type, Oid role)
{
	HeapTuple	tuple = SearchSysCache1(TYPEOID, ObjectIdGetDatum(type));
	Oid			namespace;

	if (!HeapTupleIsValid(tuple))
		return false;
	namespace = ((Form_pg_type) GETSTRUCT(tuple))->typnamespace;
	ReleaseSysCache(tuple);
	return may_use_schema(namespace, role);
}

/* May it name this operator, cast to its types, and execute its function? */
static bool
may_use_operator(Oid operator, Oid role)
{
	HeapTuple	tuple = SearchSysCache1(OPEROID, ObjectIdGetDatum(operator));
	FormData_pg_operator form;

	if (!HeapTupleIsValid(tuple))
		return false;
	form = *(Form_pg_operator) GETSTRUCT(tuple);
	ReleaseSysCache(tuple);
	return may_use_schema(form.oprnamespace, role) &&
		may_name_type(form.oprleft, role) &&
		may_name_type(form.oprright, role) &&
		object_aclcheck(ProcedureRelationId, form.oprcode, role,
						ACL_EXECUTE) == ACLCHECK_OK;
}

/*
 * May the owner of the table, as whom the query runs, execute it?  Its
 * operators are those of the constraint, and an index may be searched with
 * their commutators.  Whoever may see, or lock, some columns only is left to
 * the query.
 */
static bool
owner_may_query(Relation table, const AioRiConstraint *constraint)
{
	Oid			owner = table->rd_rel->relowner;
	Oid			relid = RelationGetRelid(table);

	for (int i = 0; i < constraint->nkeys; i++)
	{
		Oid			operator = constraint->pf_eq_oprs[i];
		Oid			commutator = get_commutator(operator);

		if (!may_use_operator(operator, owner) ||
			(OidIsValid(commutator) && !may_use_operator(commutator, owner)))
			return false;
	}
	return pg_class_aclcheck(relid, owner, ACL_SELECT) == ACLCHECK_OK &&
		pg_class_aclcheck(relid, owner, ACL_UPDATE) == ACLCHECK_OK &&
		may_use_schema(RelationGetNamespace(table), owner);
}

/* How the search in 'table' for rows of 'rel' is made, if it needs no query. */
static void
find_target(AioRiDirect *direct, Relation rel, Relation table)
{
	AioRiConstraint constraint;
	AioRiTarget *target;

	direct->target = NULL;
	AioRiGetConstraint(direct->key.constraint, &constraint);
	if (constraint.has_period || !AioIsHeap(table) ||
		table->rd_rel->relrowsecurity || table->rd_rel->relhasrules)
		return;
	direct->search = AioRiMakeSearch(&constraint, direct->key.of_parent, rel);
	target = AioRiGetTarget(direct->search, RelationGetRelid(table));

	/*
	 * Other columns of the key would have to be compared with all rows that
	 * have some.  With NO ACTION, the referenced table is queried, too.
	 */
	if (target->lookup.nkeys == constraint.nkeys &&
		owner_may_query(table, &constraint) &&
		(direct->key.of_parent || owner_may_query(rel, &constraint)))
		direct->target = target;
}

/* What AioRiGetDirect() would return, if that is known; or NULL. */
AioRiDirect *
AioRiKnownDirect(Oid constraint, bool of_parent)
{
	AioRiDirect wanted = {0};

	if (searches_generation != aio_ri_generation)
		return NULL;
	wanted.key.constraint = constraint;
	wanted.key.of_parent = of_parent;
	return hash_search(searches, &wanted.key, HASH_FIND, NULL);
}

/*
 * Have so many checks of this foreign key needed a query after all, one after
 * the other, that this one is left to it?  So it is if somebody has updated the
 * rows that are referred to, or if all rows fail.
 */
bool
AioRiPauses(AioRiDirect *direct)
{
	if (likely(direct->left == 0))
		return false;
	direct->left--;
	return true;
}

/* A check has been made; in vain, if it needs a query. */
void
AioRiNoteDirect(AioRiDirect *direct, bool in_vain)
{
	if (likely(!in_vain))
	{
		direct->in_vain = 0;
		direct->pause = 0;
		return;
	}
	if (++direct->in_vain < IN_VAIN_MAX)
		return;
	direct->pause = Min(Max(2 * direct->pause, PAUSE_MIN), PAUSE_MAX);
	direct->left = direct->pause;
}

/*
 * How the triggers of a foreign key search in 'table' for rows of 'rel': for
 * the one that these refer to, if of_parent, otherwise for those that refer to
 * them.  Both are locked by the caller.  Valid as long as aio_ri_generation is
 * what it was before the call.  May look up catalogs, and so raise.
 */
AioRiDirect *
AioRiGetDirect(Oid constraint, bool of_parent, Relation rel, Relation table)
{
	AioRiDirect fresh = {0};
	AioRiDirect *direct;
	MemoryContext old;

	if (searches_generation != aio_ri_generation)
		init_searches();
	fresh.key.constraint = constraint;
	fresh.key.of_parent = of_parent;
	direct = hash_search(searches, &fresh.key, HASH_FIND, NULL);
	if (direct != NULL)
		return direct;

	/* looking up catalogs may raise, and may make all of it stale again */
	old = MemoryContextSwitchTo(search_context);
	fresh.rel = RelationGetRelid(rel);
	fresh.table = RelationGetRelid(table);
	filling = true;
	PG_TRY();
	{
		find_target(&fresh, rel, table);
	}
	PG_FINALLY();
	{
		filling = false;
	}
	PG_END_TRY();
	MemoryContextSwitchTo(old);
	direct = hash_search(searches, &fresh.key, HASH_ENTER, NULL);
	*direct = fresh;

	/* ask again next time, when the index may not be locked any more */
	if (direct->search != NULL && direct->search->incomplete)
		aio_ri_generation++;
	return direct;
}
