/*-------------------------------------------------------------------------
 *
 * index_policy.c
 *	  Decide once per table how each of its indexes may be inserted into.
 *
 * Two questions are asked.  What may be done with inserts of the access method?
 * That is for it to say (aio/index_am.h); one that has not said anything is
 * inserted into as ever.  And could user code run in a task?  Support functions
 * must be built in or written in C; a table with an index predicate or
 * expression that calls anything else is left to upstream as a whole, because
 * such functions may look at the table between rows.
 *
 * Answers are cached per table until anything they depend on may have
 * changed, as single-row inserts ask for each row.
 *
 * Tests: src/test/aio/sql, src/test/aio/index_am.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/amapi.h"
#include "access/htup_details.h"
#include "access/transam.h"
#include "aio/index_policy.h"
#include "aio/quick_io.h"
#include "aio/task.h"
#include "executor/instrument.h"
#include "nodes/nodeFuncs.h"
#include "storage/aio.h"
#include "utils/hsearch.h"
#include "utils/inval.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/syscache.h"

/*
 * A table does without tasks once the entries of so many rows, one after the
 * other, needed no read.  Then the next read is waited for, and tasks are back:
 * once in so many rows that is less, on any device, than they would cost.
 */
#define ROWS_WITHOUT_READS_MAX	1000

uint64		aio_policy_generation = 0;

static HTAB *policies = NULL;
static MemoryContext policy_context = NULL;

/* the answer given last, as loads ask about one table again and again */
static AioTablePolicy *last_policy = NULL;

/* set by invalidation, which must not free what a caller still looks at */
static bool policies_stale = false;

/* policies kept at most; of dropped tables, some are never asked for again */
#define POLICIES_MAX 10000

static void
relcache_changed(Datum arg, Oid relid)
{
	AioTablePolicy *policy;

	if (!OidIsValid(relid))
		policies_stale = true;
	else if (policies != NULL)
	{
		/* an index's own definition never changes */
		policy = hash_search(policies, &relid, HASH_FIND, NULL);
		if (policy != NULL)
			policy->stale = true;
	}
}

static void
function_changed(Datum arg, int cacheid, uint32 hashvalue)
{
	policies_stale = true;
}

static void
init_policies(void)
{
	HASHCTL		ctl;

	if (policy_context == NULL)
	{
		policy_context = AllocSetContextCreate(TopMemoryContext,
											   "index insert policies",
											   ALLOCSET_SMALL_SIZES);
		CacheRegisterRelcacheCallback(relcache_changed, (Datum) 0);
		CacheRegisterSyscacheCallback(PROCOID, function_changed, (Datum) 0);
		/* types get operator classes, and families members */
		CacheRegisterSyscacheCallback(CLAOID, function_changed, (Datum) 0);
		CacheRegisterSyscacheCallback(AMOPSTRATEGY, function_changed, (Datum) 0);
		CacheRegisterSyscacheCallback(AMPROCNUM, function_changed, (Datum) 0);
	}
	last_policy = NULL;
	policies = NULL;
	aio_policy_generation++;
	MemoryContextReset(policy_context);
	policies_stale = false;

	Assert(MemoryContextIsEmpty(policy_context));
	ctl.keysize = sizeof(Oid);
	ctl.entrysize = sizeof(AioTablePolicy);
	ctl.hcxt = policy_context;
	policies = hash_create("index insert policies", 16, &ctl,
						   HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
}

static bool
trust_checker(Oid funcid, void *context)
{
	return !AioFunctionIsTrusted(funcid);
}

/* What is made of JSON is read as text is. */
static bool
calls_unnamed_code(Node *node)
{
	switch (nodeTag(node))
	{
		case T_JsonExpr:
			return AioInputRunsUserCode(((JsonExpr *) node)->returning->typid);
		case T_JsonBehavior:
			return false;
		default:
			return AioNodeCallsUnnamedCode(node);
	}
}

static bool
calls_user_code(Node *node, void *context)
{
	if (node == NULL)
		return false;
	if (IsA(node, Query))
		return query_tree_walker((Query *) node, calls_user_code, NULL, 0);

	if (calls_unnamed_code(node) ||
		check_functions_in_node(node, trust_checker, NULL))
		return true;
	return expression_tree_walker(node, calls_user_code, NULL);
}

static void
fill_policy(AioTablePolicy *policy, ResultRelInfo *rri)
{
	policy->nindexes = rri->ri_NumIndices;
	policy->user_code = false;
	policy->indexes = MemoryContextAllocZero(policy_context,
											 sizeof(AioIndexPolicy) * rri->ri_NumIndices);
	for (int i = 0; i < rri->ri_NumIndices; i++)
	{
		Relation	index = rri->ri_IndexRelationDescs[i];
		IndexInfo  *info = rri->ri_IndexRelationInfo[i];
		AioIndexPolicy *p = &policy->indexes[i];
		bool		trusted;

		if (index == NULL)
			continue;
		Assert(index->rd_indam->aminsert != NULL);
		trusted = AioIndexIsTrusted(index);
		p->indexid = RelationGetRelid(index);
		p->ops = trusted ? AioFindIndexAm(index->rd_indam->aminsert) : NULL;
		p->looks = !trusted || !AioFunctionIsTrusted(index->rd_amhandler);
		if (calls_user_code((Node *) info->ii_Expressions, NULL) ||
			calls_user_code((Node *) info->ii_Predicate, NULL))
			policy->user_code = true;
	}
}

/* Is the policy up to date, and about these indexes? */
static bool
policy_fits(const AioTablePolicy *policy, ResultRelInfo *rri)
{
	if (policy->stale || policy->nindexes != rri->ri_NumIndices)
		return false;
	for (int i = 0; i < policy->nindexes; i++)
	{
		Relation	index = rri->ri_IndexRelationDescs[i];

		if (policy->indexes[i].indexid !=
			(index ? RelationGetRelid(index) : InvalidOid))
			return false;
	}
	return true;
}

/*
 * The policy for a result relation whose indexes are open.  Valid while
 * aio_policy_generation stays as it is.  May look up catalogs, and so raise.
 */
AioTablePolicy *
AioGetTablePolicy(ResultRelInfo *rri)
{
	Oid			relid = RelationGetRelid(rri->ri_RelationDesc);
	AioTablePolicy *policy;
	bool		found;

	if (likely(last_policy != NULL && !policies_stale &&
			   last_policy->relid == relid && policy_fits(last_policy, rri)))
		return last_policy;

	Assert(rri->ri_NumIndices == 0 || rri->ri_IndexRelationDescs != NULL);
	if (policies == NULL || policies_stale)
		init_policies();

	last_policy = NULL;
	policy = hash_search(policies, &relid, HASH_FIND, &found);
	if (policy != NULL && !policy_fits(policy, rri))
	{
		aio_policy_generation++;
		pfree(policy->indexes);
		hash_search(policies, &relid, HASH_REMOVE, NULL);
		policy = NULL;
	}
	if (policy == NULL)
	{
		AioTablePolicy fresh;

		if (hash_get_num_entries(policies) >= POLICIES_MAX)
			init_policies();

		/* catalog look-ups may raise, and may make the cache stale again */
		fill_policy(&fresh, rri);
		policy = hash_search(policies, &relid, HASH_ENTER, &found);
		policy->nindexes = fresh.nindexes;
		policy->user_code = fresh.user_code;
		policy->indexes = fresh.indexes;
		policy->stale = false;
		policy->rows_without_reads = 0;
	}
	Assert(policy->relid == relid && policy_fits(policy, rri));
	last_policy = policy;
	return policy;
}

/* Have the indexes been in memory for so long that nothing will be read? */
static bool
in_memory(const AioTablePolicy *policy)
{
	return policy->rows_without_reads >= ROWS_WITHOUT_READS_MAX &&
		!aio_debug_suspend;
}

/* Are reads of all indexes quick?  They may be in different tablespaces. */
static bool
reads_are_quick(const ResultRelInfo *rri)
{
	for (int i = 0; i < rri->ri_NumIndices; i++)
	{
		Relation	index = rri->ri_IndexRelationDescs[i];

		if (index != NULL && !AioReadIsQuick(index->rd_locator.spcOid))
			return false;
	}
	return true;
}

/*
 * Could tasks help to insert this table's entries?  They could not where they
 * would not be suspended, as reads are quick.
 */
bool
AioTasksHelp(const AioTablePolicy *policy, const ResultRelInfo *rri)
{
	return policy != NULL && !in_memory(policy) &&
		io_method != IOMETHOD_SYNC && AioTasksCanSuspend() &&
		AioTaskLimit() >= 2 && !reads_are_quick(rri);
}

/*
 * Rows were inserted under a policy: note whether there was anything to read,
 * given its generation and the number of reads before.
 */
void
AioNoteReads(AioTablePolicy *policy, uint64 generation, int nrows,
			 int64 reads_before)
{
	if (generation != aio_policy_generation)
		return;
	Assert(pgBufferUsage.shared_blks_read >= reads_before);
	if (pgBufferUsage.shared_blks_read != reads_before)
		policy->rows_without_reads = 0;
	else if (policy->rows_without_reads < ROWS_WITHOUT_READS_MAX)
		policy->rows_without_reads += nrows;
}
