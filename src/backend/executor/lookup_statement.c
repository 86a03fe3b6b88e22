/*-------------------------------------------------------------------------
 *
 * lookup_statement.c
 *	  Lookups of the statements of this session, and nodes whose ExecProcNode is
 *	  ours for a while.
 *
 * What is known of a statement lives as long as its EState.
 *
 * Tests: src/test/aio/lookup.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "common/hashfn.h"
#include "executor/executor.h"
#include "lookup.h"
#include "utils/memutils.h"

/* a node that has had a layer, in a statement's table of them */
typedef struct LayeredNode
{
	PlanState  *node;			/* the key */
	AioLookupNode *layers;
	char		status;			/* simplehash.h's */
} LayeredNode;

#define SH_PREFIX		layered
#define SH_ELEMENT_TYPE	LayeredNode
#define SH_KEY_TYPE		PlanState *
#define SH_KEY			node
#define SH_HASH_KEY(table, key)	((uint32) murmurhash64((uintptr_t) (key)))
#define SH_EQUAL(table, a, b)	((a) == (b))
#define SH_SCOPE		static inline
#define SH_DECLARE
#define SH_DEFINE
#include "lib/simplehash.h"

/* statements in which lookups have been searched for, the last one first */
static AioLookups *statements = NULL;

/* the node that was executed last */
static AioLookupNode *last_node = NULL;

/* MemoryContextCallback: an EState is being freed. */
static void
forget_statement(void *arg)
{
	AioLookups **link = &statements;

	while (*link != arg)
		link = &(*link)->next;
	*link = (*link)->next;
	last_node = NULL;
}

/* A statement that is known, or NULL. */
AioLookups *
AioNotedStatement(const EState *estate)
{
	for (AioLookups *one = statements; one != NULL; one = one->next)
	{
		if (one->estate == estate)
			return one;
	}
	return NULL;
}

/* A statement that is not known yet, with no lookups. */
AioLookups *
AioNoteStatement(EState *estate)
{
	AioLookups *lookups = MemoryContextAllocZero(estate->es_query_cxt,
												 sizeof(AioLookups));
	MemoryContextCallback *callback =
		MemoryContextAllocZero(estate->es_query_cxt,
							   sizeof(MemoryContextCallback));

	Assert(AioNotedStatement(estate) == NULL);
	lookups->estate = estate;
	lookups->next = statements;
	statements = lookups;
	callback->func = forget_statement;
	callback->arg = lookups;
	MemoryContextRegisterResetCallback(estate->es_query_cxt, callback);
	return lookups;
}

/* What a statement looks up.  Its plan is searched if that is not known yet. */
AioLookups *
AioLookupsOf(const QueryDesc *query)
{
	EState	   *estate = query->estate;
	AioLookups *lookups = AioNotedStatement(estate);
	AioLookups	found = {.estate = estate};
	MemoryContext old;

	if (lookups != NULL)
		return lookups;
	old = MemoryContextSwitchTo(estate->es_query_cxt);
	AioFindLookups(&found, query);
	MemoryContextSwitchTo(old);
	lookups = AioNoteStatement(estate);
	found.next = lookups->next;
	*lookups = found;
	return lookups;
}

static AioLookupNode *
find_node(PlanState *node)
{
	AioLookups *lookups;
	LayeredNode *found;

	if (last_node != NULL && last_node->node == node)
		return last_node;
	lookups = AioNotedStatement(node->state);
	if (lookups->nodes == NULL)
		return NULL;
	found = layered_lookup(lookups->nodes, node);
	if (found != NULL)
		last_node = found->layers;
	return found != NULL ? found->layers : NULL;
}

static TupleTableSlot *
execute_below(AioLookupNode *node, int layer)
{
	while (layer-- > 0)
	{
		if (node->next[layer] != NULL)
			return node->next[layer] (node->arg[layer]);
	}
	return node->real(node->node);
}

/* ExecProcNode of a node with a layer in front. */
static TupleTableSlot *
execute(PlanState *node)
{
	return execute_below(find_node(node), AIO_LOOKUP_LAYERS);
}

/* What a node returns next, but for that layer and those before it. */
TupleTableSlot *
AioLookupBelow(PlanState *node, AioLookupLayer layer)
{
	return execute_below(find_node(node), layer);
}

/*
 * From its next execution on, a node returns what this function returns, which
 * is called with 'arg' and calls AioLookupBelow().
 */
void
AioLookupAttach(PlanState *node, AioLookupLayer layer, AioLookupNext next,
				void *arg)
{
	AioLookups *lookups = AioNotedStatement(node->state);
	AioLookupNode *one = find_node(node);

	if (one == NULL)
	{
		MemoryContext old = MemoryContextSwitchTo(node->state->es_query_cxt);
		bool		exists;

		if (lookups->nodes == NULL)
			lookups->nodes = layered_create(node->state->es_query_cxt, 8, NULL);
		one = palloc0(sizeof(AioLookupNode));
		one->node = node;
		layered_insert(lookups->nodes, node, &exists)->layers = one;
		Assert(!exists);
		MemoryContextSwitchTo(old);
	}
	Assert(one->next[layer] == NULL);
	one->next[layer] = next;
	one->arg[layer] = arg;
	if (one->replaced)
		return;

	one->replaced = true;
	one->real = node->ExecProcNodeReal;
	node->ExecProcNodeReal = execute;

	/* else it is a wrapper that counts or checks, and calls the former */
	if (node->ExecProcNode == one->real)
		node->ExecProcNode = execute;
}

/* From its next execution on, it is not called any more. */
void
AioLookupDetach(PlanState *node, AioLookupLayer layer)
{
	AioLookupNode *one = find_node(node);

	Assert(one->next[layer] != NULL);
	one->next[layer] = NULL;
	for (int i = 0; i < AIO_LOOKUP_LAYERS; i++)
	{
		if (one->next[i] != NULL)
			return;
	}

	/* an extension that has put a function of its own before ours calls it */
	if (node->ExecProcNodeReal != execute)
		return;
	node->ExecProcNodeReal = one->real;
	if (node->ExecProcNode == execute)
		node->ExecProcNode = one->real;
	one->replaced = false;
}
