/*-------------------------------------------------------------------------
 *
 * lookup_tid.c
 *	  Rows that a loop looks up by their TIDs, without an index.
 *
 * A nested loop whose inner side is a TID scan looks up a row for each outer
 * row.  As with an index, these are taken ahead (lookup_loop.c).  A TID says
 * which page will be read, so nothing is probed: the page is read when the
 * outer row is taken.
 *
 * A TID can be anybody's.  Pages past the end of the table are not read.
 *
 * Tests: src/test/aio/lookup/t/005_tids.pl.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/sysattr.h"
#include "aio/read.h"
#include "aio/usage.h"
#include "catalog/catalog.h"
#include "executor/executor.h"
#include "guard.h"
#include "lookup.h"
#include "nodes/nodeFuncs.h"
#include "storage/bufmgr.h"
#include "utils/rel.h"

/* May pages of this table be read ahead, if a TID is all that is known? */
bool
AioTidsMayBeRead(Relation heap)
{
	return !RelationUsesLocalBuffers(heap) && !IsCatalogRelation(heap) &&
		AioIsHeap(heap);
}

/* What the TID of a row is compared with; NULL if it is not that simple. */
static Expr *
other_side(Expr *qual)
{
	Node	   *left;

	if (!is_opclause(qual))
		return NULL;
	left = get_leftop(qual);
	if (left != NULL && IsA(left, Var) &&
		castNode(Var, left)->varattno == SelfItemPointerAttributeNumber)
		return (Expr *) get_rightop(qual);
	return (Expr *) left;
}

/* Conditions of a TID scan that are compiled. */
typedef struct CompiledTids
{
	TidScanState *node;
	List	   *exprs;
	List	   *states;			/* of ExprState */
} CompiledTids;

/* AioCompileAgain() */
static void
compile_tids(void *arg)
{
	CompiledTids *tids = arg;

	foreach_ptr(Expr, expr, tids->exprs)
		tids->states = lappend(tids->states, ExecInitExpr(expr, &tids->node->ss.ps));
}

/*
 * What a TID scan looks up for each outer row; NULL if that cannot be had
 * before it is the row's turn.  Allocates in the current memory context.
 */
AioLookupTarget *
AioFindTids(TidScanState *node)
{
	Relation	heap = node->ss.ss_currentRelation;
	AioLookupTarget *target;
	List	   *tids = NIL;
	CompiledTids compiled = {.node = node};

	if (!AioTidsMayBeRead(heap))
		return NULL;
	foreach_ptr(Expr, qual, castNode(TidScan, node->ss.ps.plan)->tidquals)
	{
		Expr	   *tid = other_side(qual);

		if (tid == NULL || AioExpressionHasSideEffects((Node *) tid, AIO_NO_ERRORS))
			return NULL;
		tids = lappend(tids, tid);
	}
	compiled.exprs = tids;
	if (!AioCompileAgain(compile_tids, &compiled))
		return NULL;
	target = palloc0(sizeof(AioLookupTarget));
	target->node = &node->ss.ps;
	target->heap = heap;
	target->tids = compiled.states;
	return target;
}

/*
 * Begin to read the pages that are looked up with the parameters as set, so
 * many rows ahead.  Returns whether any read has begun, which the caller
 * submits.
 */
bool
AioReadTids(AioLookupTarget *target, ExprContext *econtext, int ahead)
{
	bool		any = false;

	foreach_ptr(ExprState, tid, target->tids)
	{
		bool		isnull;
		Datum		value = ExecEvalExpr(tid, econtext, &isnull);
		BlockNumber block;
		bool		has_read;

		if (isnull)
			continue;
		block = ItemPointerGetBlockNumberNoCheck(DatumGetItemPointer(value));
		if (block >= target->nblocks)
			target->nblocks = RelationGetNumberOfBlocks(target->heap);
		if (block >= target->nblocks)
			continue;
		has_read = AioBeginRead(target->heap, block);
		AioCountLookup(has_read, ahead);
		any |= has_read;
	}
	return any;
}
