/*-------------------------------------------------------------------------
 *
 * lookup_loop.c
 *	  Loops over outer rows: take rows ahead, and probe the keys that will be
 *	  looked up with them.
 *
 * While a loop is open, a function of ours is put before the ExecProcNode of
 * the node that gives the outer rows.  It takes rows, copies them, has their
 * keys probed, and returns them one after the other; whoever asks for them does
 * not notice.  Rows are taken a few at a time.  While the leaves arrive that
 * the rows in the farther half of the window will need, the pages of the table
 * are on their way for those in the nearer one (lookup_probe.c).
 *
 * A nested loop takes rows of its outer node, which it puts into parameters of
 * its inner node.  A node with correlated subqueries in its target list or its
 * conditions takes rows of its own, and evaluates these later
 * (lookup_projection.c); so does one that looks at values which may be stored
 * out of line.  Of INSERT ... ON CONFLICT, and of MERGE, those are taken that
 * may be inserted (lookup_insert.c), and rows of any node, if they go to
 * somebody who wants to know such values (lookup_toast.c).
 *
 * INVARIANT-62: outer rows are taken ahead only if they are known to be wanted
 * (rows_wanted.c), and producing them has no side effects besides an error.
 * The error, whatever it is about, is raised when all rows before it have been
 * returned.  INVARIANT-96: nor are they if they could be other ones when it is
 * their turn (volatility.c).
 *
 * Rows ahead are copies, whose size is bounded by work_mem for all loops of the
 * statement.  They are forgotten when the node is rescanned, which its
 * expression context tells, and their memory is given back at the node's end.
 *
 * Tests: src/test/aio/lookup.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "aio/block.h"
#include "aio/error_point.h"
#include "aio/executor_run.h"
#include "aio/usage.h"
#include "common/hashfn.h"
#include "executor/execPartition.h"
#include "executor/executor.h"
#include "guard.h"
#include "lookup.h"
#include "miscadmin.h"
#include "utils/datum.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"

/* the part of a window whose rows are taken at a time */
#define ROWS_AT_A_TIME(distance)	(((distance) + 7) / 8)

static TupleTableSlot *next_row(void *arg);

/* keys that are remembered of a target, a power of 2 */
#define SEEN_KEYS	4096

/* a window so wide has opened in earnest */
#define DISTANCE_USEFUL		8

/* after so many rows in which there are no values out of line, none come */
#define ROWS_WITHOUT_VALUES_MAX		4096

/* after so many waits, a loop that has gained nothing is tried again */
#define WAITS_WANTED_MAX	1024

/* memory of copies that is kept when the node is rescanned */
#define MEMORY_KEPT		(32 * 1024)

/* targets of an inserted row that two steps are made for */
#define INSERT_STEPS	8

static inline uint32
rows_ahead(const AioLookupLoop *loop)
{
	return loop->nfilled - loop->ntaken;
}

static inline TupleTableSlot **
slot_of(AioLookupLoop *loop, uint32 row)
{
	return &loop->slots[row % loop->nslots];
}

/* Of a row that is ahead and one of its targets, AioAddProbe()'s 'begun'. */
static inline bool *
begun_of(AioLookupLoop *loop, uint32 row, int target)
{
	return &loop->begun[(row % loop->nslots) * loop->nsteps + target];
}

/*
 * Nothing is gained.  A loop that finds this out again and again, because it is
 * others who wait for pages of its tables, opens less and less often.
 */
static void
close_loop(AioLookupLoop *loop)
{
	Assert(rows_ahead(loop) == 0);
	AioLookupDetach(loop->outer, loop->layer);
	loop->open = false;
	loop->waits = 0;
	loop->waits_wanted = Min(2 * loop->waits_wanted, WAITS_WANTED_MAX);
}

/*
 * The value of a parameter that has not been needed yet would be computed by
 * whoever asks for it first.
 */
static bool
params_are_computed(const EState *estate)
{
	int			nparams = list_length(estate->es_plannedstmt->paramExecTypes);

	for (int i = 0; i < nparams; i++)
	{
		if (estate->es_param_exec_vals[i].execPlan != NULL)
			return false;
	}
	return true;
}

/*
 * Is a statement executed in parts?  Then WHERE CURRENT OF may ask a node which
 * row it is at.
 */
static bool
stops_at_rows(const EState *estate)
{
	const AioExecutorRun *run = AioRunning();

	return run == NULL || run->query->estate != estate || !run->to_end ||
		run->goes_on;
}

/* Would outer rows have any of these effects if they were produced ahead? */
static bool
rows_do(AioLookupLoop *loop, int demands)
{
	if (loop->projection == NULL)
		return AioRowsHaveSideEffects(loop->outer, demands);
	return AioPartialRowsHaveSideEffects(loop->node, loop->projection->early_quals,
										 demands);
}

/*
 * Is there anything that outer rows would do if they were produced ahead, or
 * could they be other ones then?  What a serializable transaction reads may
 * doom it, or another one.
 */
static bool
rows_have_side_effects(AioLookupLoop *loop)
{
	if (IsolationIsSerializable())
		return true;
	if (loop->projection != NULL && stops_at_rows(loop->node->state))
		return true;
	if (!rows_do(loop, AIO_FIXED))
		return false;
	loop->undisturbed = true;
	return loop->lookups->all_wanted ||
		!AioPlanChangesNothing(loop->lookups->top) ||
		rows_do(loop, AIO_AHEAD);
}

/*
 * The table that the loop looks up, if this is it or its index; any one of
 * those that it looks up if rel is NULL.  NULL if there is none.
 */
Relation
AioLoopReads(const AioLookupLoop *loop, Relation rel)
{
	if (loop->insert != NULL)
		return AioInsertReads(loop->insert, rel);
	if (loop->toast != NULL)
		return AioToastReads(loop->outer, rel);
	foreach_ptr(AioLookupTarget, target, loop->targets)
	{
		if (rel == NULL || target->index == rel || target->heap == rel)
			return target->heap;
	}
	return NULL;
}

/* Begin to take outer rows ahead, if that can be done. */
void
AioOpenLoop(AioLookups *lookups, AioLookupLoop *loop, int distance_max)
{
	EState	   *estate = loop->outer->state;

	Assert(!loop->open && !loop->closed_for_good);

	if (loop->context == NULL)
	{
		MemoryContext old;

		loop->lookups = lookups;
		if (rows_have_side_effects(loop))
		{
			loop->closed_for_good = true;
			return;
		}
		old = MemoryContextSwitchTo(estate->es_query_cxt);
		loop->path = AioFindRowsPath(lookups, loop->outer);
		MemoryContextSwitchTo(old);
		loop->context = AllocSetContextCreate(estate->es_query_cxt,
											  "outer rows ahead",
											  ALLOCSET_DEFAULT_SIZES);
		loop->row_context = AllocSetContextCreate(loop->context,
												  "copies of rows ahead",
												  ALLOCSET_SMALL_SIZES);
		loop->probe_context = AllocSetContextCreate(loop->context,
													"probes",
													ALLOCSET_DEFAULT_SIZES);
		loop->nslots = pg_nextpower2_32(distance_max + 2);
		loop->slots = MemoryContextAllocZero(loop->context,
											 loop->nslots * sizeof(TupleTableSlot *));
	}
	AioLookupAttach(loop->outer, loop->layer, next_row, loop);
	loop->open = true;
	loop->at_end = loop->error != NULL;
	loop->rows_without_values = 0;

	/* how many are wanted is asked whenever rows are taken */
	AioWindowOpen(&loop->window, Min(distance_max, loop->nslots - 2), AIO_ALL_ROWS);
}

/* AioCompileAgain() */
static void
compile(void *arg)
{
	AioLookupLoop *loop = arg;

	if (loop->projection != NULL)
		AioCompileProjection(loop->node, loop->projection);
	if (loop->projection != NULL && loop->insert != NULL)
		AioCompileInsert(loop->insert, loop->node, loop->projection);
	loop->econtext = CreateExprContext(loop->outer->state);
	if (loop->insert != NULL)
		AioCompileMerge(loop->insert, loop->econtext);
}

/*
 * Before the first row is taken ahead.  This is not done when the loop is
 * opened, because then its node is at work.  Returns false if nothing can be
 * looked up.
 */
static bool
prepare(AioLookupLoop *loop)
{
	int			nsubplans = list_length(loop->node->subPlan);
	MemoryContext old;
	bool		well;

	if (loop->begun != NULL)
		return true;
	old = MemoryContextSwitchTo(loop->outer->state->es_query_cxt);
	well = AioCompileAgain(compile, loop);

	/* the same plans again, which whoever walks over the node knows already */
	loop->node->subPlan = list_truncate(loop->node->subPlan, nsubplans);
	if (!well)
	{
		MemoryContextSwitchTo(old);
		return false;
	}

	/* a copy is not counted by a resource owner */
	loop->desc = CreateTupleDescCopy(loop->projection != NULL ?
									 loop->projection->desc :
									 ExecGetResultType(loop->outer));
	if (loop->projection != NULL && loop->projection->values != NIL)
		AioSetToastColumns(loop->toast, AioProjectedColumns(loop->projection));
	MemoryContextSwitchTo(old);

	if (loop->insert != NULL)
		loop->nsteps = INSERT_STEPS;
	else if (loop->toast != NULL)
		loop->nsteps = AioToastSize(loop->toast);
	else
		loop->nsteps = list_length(loop->targets);
	loop->begun = MemoryContextAllocZero(loop->context, loop->nslots *
										 loop->nsteps * sizeof(bool));
	return true;
}

/*
 * The memory that copies of rows use in all loops of the statement, this one's
 * as it is now.
 */
static Size
memory_used(AioLookupLoop *loop)
{
	Size		now = MemoryContextMemAllocated(loop->row_context, false);

	loop->lookups->memory += now - loop->memory;
	loop->memory = now;
	return loop->lookups->memory;
}

/*
 * Give back the memory of copies.  The one that was returned last is not looked
 * at any more.
 */
static void
free_rows(AioLookupLoop *loop)
{
	Assert(rows_ahead(loop) == 0);

	MemoryContextReset(loop->row_context);
	MemSet(loop->slots, 0, loop->nslots * sizeof(TupleTableSlot *));
	MemoryContextReset(loop->probe_context);
	(void) memory_used(loop);
}

/* The node is rescanned, or ends: rows ahead are not wanted any more. */
static void
forget_rows(Datum arg)
{
	AioLookupLoop *loop = (AioLookupLoop *) DatumGetPointer(arg);

	loop->watches_rescan = false;
	aio_usage[AIO_KIND_LOOKUP].cancelled +=
		rows_ahead(loop) * Max(list_length(loop->targets), 1);
	loop->ntaken = loop->nfilled;
	loop->nprobed = 0;

	/* what has failed is not executed again */
	loop->at_end = loop->error != NULL;
	if (loop->memory > MEMORY_KEPT)
		free_rows(loop);

	/*
	 * The node may be executed by another function from now on.  But a scan
	 * with keys that are computed begins with a rescan of its own.
	 */
	if (loop->projection != NULL && !loop->taking)
		AioProjectLater(loop->node, loop->projection, false);

	/* what is memoized may be thrown away, too */
	foreach_ptr(AioLookupTarget, target, loop->targets)
	{
		if (target->seen != NULL)
			MemSet(target->seen, 0, SEEN_KEYS * sizeof(uint32));
	}
}

static void
watch_rescan(AioLookupLoop *loop)
{
	/* an insert is executed once, and so is what is not below other nodes */
	if (loop->watches_rescan || loop->node->ps_ExprContext == NULL || loop->is_top)
		return;
	RegisterExprContextCallback(loop->node->ps_ExprContext, forget_rows,
								PointerGetDatum(loop));
	loop->watches_rescan = true;
}

static TupleTableSlot *
make_slot(AioLookupLoop *loop)
{
	const TupleTableSlotOps *ops = &TTSOpsVirtual;
	MemoryContext old = MemoryContextSwitchTo(loop->row_context);
	TupleTableSlot *slot;

	/* expressions may have been compiled for a certain kind */
	if (loop->projection == NULL || loop->projection->rows == NULL)
	{
		bool		is_fixed;

		ops = ExecGetResultSlotOps(loop->outer, &is_fixed);
		if (!is_fixed)
			ops = &TTSOpsMinimalTuple;
	}
	slot = MakeSingleTupleTableSlot(loop->desc, ops);
	MemoryContextSwitchTo(old);
	return slot;
}

/* Take one more row from upstream's node.  Returns false at the end. */
static bool
take_row(AioLookupLoop *loop)
{
	TupleTableSlot *row;
	TupleTableSlot **slot;

	/* an error has left the nodes below in the middle of something */
	Assert(!loop->at_end && loop->error == NULL);
	row = AioLookupBelow(loop->outer, loop->layer);
	if (TupIsNull(row))
	{
		loop->at_end = true;
		return false;
	}
	slot = slot_of(loop, loop->nfilled);
	if (*slot == NULL)
		*slot = make_slot(loop);
	ExecCopySlot(*slot, row);
	ExecMaterializeSlot(*slot);
	(*slot)->tts_tableOid = row->tts_tableOid;
	loop->nfilled++;
	return true;
}

/*
 * Take rows until there are 'wanted' ahead.  The caller needs the first of them
 * at once; an error in producing others is kept until they are needed.  They
 * will be, if nothing else ends the statement: so what the nodes below have
 * acquired is released by the abort of the transaction, but for what others may
 * wait for meanwhile, this process included; and they are not executed again.
 */
static void
take_rows(AioLookupLoop *loop, uint32 wanted)
{
	int			nest_level = GetCurrentTransactionNestLevel();
	AioErrorPoint point;

	if (rows_ahead(loop) == 0 && !take_row(loop))
		return;

	AioMarkErrorPoint(&point);
	PG_TRY();
	{
		while (rows_ahead(loop) < wanted &&
			   memory_used(loop) <= (Size) work_mem * 1024 && take_row(loop))
			;
	}
	PG_CATCH();
	{
		if (!AioErrorIsOfWork(geterrcode()) || AioErrorIsOfOthers(&point) ||
			GetCurrentTransactionNestLevel() != nest_level)
			PG_RE_THROW();
		MemoryContextSwitchTo(loop->outer->state->es_query_cxt);
		loop->error = CopyErrorData();
		AioReturnToErrorPoint(&point);
		loop->at_end = true;
	}
	PG_END_TRY();
}

/*
 * The keys of a lookup, with the values of the row whose parameters are set.
 * NULL if one of them is null: nothing is looked up then.
 */
static ScanKey
make_keys(AioLookupLoop *loop, const AioLookupTarget *target)
{
	ScanKey		keys = palloc_array(ScanKeyData, target->nkeys);

	memcpy(keys, target->keys, target->nkeys * sizeof(ScanKeyData));
	for (int i = 0; i < target->nruntime_keys; i++)
	{
		const IndexRuntimeKeyInfo *info = &target->runtime_keys[i];
		ScanKey		key = &keys[info->scan_key - target->keys];
		bool		isnull;

		key->sk_argument = ExecEvalExpr(info->key_expr, loop->econtext, &isnull);
		if (isnull)
			return NULL;
		if (info->key_toastable)
			key->sk_argument = PointerGetDatum(PG_DETOAST_DATUM(key->sk_argument));
		key->sk_flags &= ~SK_ISNULL;
	}
	return keys;
}

/* Keys that are tried. */
typedef struct TriedKeys
{
	AioLookupLoop *loop;
	const AioLookupTarget *target;
	ScanKey		keys;
} TriedKeys;

static void
make_tried_keys(void *arg)
{
	TriedKeys  *tried = arg;

	if (tried->target->predicate == NULL ||
		ExecQual(tried->target->predicate, tried->loop->econtext))
		tried->keys = make_keys(tried->loop, tried->target);
}

/*
 * Likewise, if evaluating them may raise an error.  Whoever inserts the row
 * evaluates the same and will meet it; so the key is not looked up, nor are
 * others of this target.
 */
static ScanKey
try_keys(AioLookupLoop *loop, AioLookupTarget *target)
{
	TriedKeys	tried = {.loop = loop,.target = target};

	target->has_failed = !AioTry(make_tried_keys, &tried, NULL, NULL);
	return target->has_failed ? NULL : tried.keys;
}

/*
 * Is a value stored elsewhere, or compressed?  To get it may raise an error.
 */
static bool
is_toasted(Datum value)
{
	return VARATT_IS_EXTERNAL(DatumGetPointer(value)) ||
		VARATT_IS_COMPRESSED(DatumGetPointer(value));
}

static bool
has_toasted_key(AioLookupLoop *loop, const AioLookupTarget *target)
{
	for (int i = 0; i < target->nruntime_keys; i++)
	{
		const IndexRuntimeKeyInfo *info = &target->runtime_keys[i];
		bool		isnull;
		Datum		key;

		if (!info->key_toastable)
			continue;
		key = ExecEvalExpr(info->key_expr, loop->econtext, &isnull);
		if (!isnull && is_toasted(key))
			return true;
	}
	return false;
}

static ScanKey
get_keys(AioLookupLoop *loop, AioLookupTarget *target)
{
	if (target->has_failed)
		return NULL;
	if (target->may_fail ||
		(loop->insert != NULL && has_toasted_key(loop, target)))
		return try_keys(loop, target);
	return make_keys(loop, target);
}

/* What is looked up for the row whose parameters are set. */
static List *
targets_of_row(AioLookupLoop *loop)
{
	return loop->insert == NULL ? loop->targets :
		AioInsertTargets(loop->insert, loop->econtext->ecxt_scantuple);
}

/* Will run-time pruning leave this partition, with the parameters as set? */
static bool
is_scanned(const AioLookupTarget *target, const AppendState **pruned,
		   Bitmapset **left)
{
	if (target->append == NULL)
		return true;
	if (*pruned != target->append)
	{
		*left = ExecFindMatchingSubPlans(target->append->as_prune_state, false,
										 NULL);
		*pruned = target->append;
	}
	if (target->first_only)
		return target->child == bms_next_member(*left, -1);
	return bms_is_member(target->child, *left);
}

/*
 * Has this key been probed before, and are results memoized above the scan?
 * Then they are not looked up again, unless memory has been too small for them.
 */
static bool
is_memoized(AioLookupLoop *loop, AioLookupTarget *target)
{
	MemoizeState *memoize = target->memoize;
	uint32		hash = 1;
	uint32	   *seen;

	if (memoize == NULL || memoize->stats.cache_evictions > 0)
		return false;
	for (int i = 0; i < memoize->nkeys; i++)
	{
		bool		isnull;
		Datum		key = ExecEvalExpr(memoize->param_exprs[i], loop->econtext,
									   &isnull);
		uint32		one = 0;

		if (!isnull && memoize->binary_mode)
		{
			CompactAttribute *attr =
				TupleDescCompactAttr(memoize->hashkeydesc, i);

			one = datum_image_hash(key, attr->attbyval, attr->attlen);
		}
		else if (!isnull)
			one = DatumGetUInt32(FunctionCall1Coll(&memoize->hashfunctions[i],
												   memoize->collations[i], key));
		hash = hash_combine(hash, one);
	}
	if (target->seen == NULL)
		target->seen = MemoryContextAllocZero(loop->context,
											  SEEN_KEYS * sizeof(uint32));
	seen = &target->seen[hash % SEEN_KEYS];
	if (*seen == hash)
		return true;
	*seen = hash;
	return false;
}

/* What keys are made of: set the parameters that the loop sets for this row. */
static void
set_params(AioLookupLoop *loop, TupleTableSlot *row)
{
	ParamExecData *values = loop->outer->state->es_param_exec_vals;

	if (loop->insert != NULL)
		row = AioInsertColumns(loop->insert, row);
	loop->econtext->ecxt_outertuple = row;
	loop->econtext->ecxt_scantuple = row;
	foreach_ptr(AioLoopParam, param, loop->params)
	{
		ParamExecData *value = &values[param->paramno];

		if (param->attno != 0)
			value->value = slot_getattr(row, param->attno, &value->isnull);
		else
			value->value = ExecEvalExpr(param->value, loop->econtext,
										&value->isnull);
	}
}

/* A row to look ahead for. */
typedef struct RowAhead
{
	AioLookupLoop *loop;
	uint32		row;
	bool		is_new;
	bool		near;
	bool		tried;			/* may raise an error */
	List	   *probes;
} RowAhead;

static void
add_new_row(RowAhead *ahead)
{
	AioLookupLoop *loop = ahead->loop;
	uint32		row = ahead->row;
	const AppendState *pruned = NULL;
	Bitmapset  *left = NULL;

	MemSet(begun_of(loop, row, 0), 0, loop->nsteps * sizeof(bool));
	if (loop->toast != NULL)
	{
		ahead->probes = AioAddValues(ahead->probes, loop->toast,
									 *slot_of(loop, row), row - loop->ntaken,
									 begun_of(loop, row, 0), false, ahead->near);
		return;
	}
	set_params(loop, *slot_of(loop, row));
	foreach_ptr(AioLookupTarget, target, targets_of_row(loop))
	{
		int			i = foreach_current_index(target);
		bool	   *begun = ahead->near || i >= loop->nsteps ? NULL :
			begun_of(loop, row, i);
		ScanKey		keys;

		if (!is_scanned(target, &pruned, &left) || is_memoized(loop, target))
			continue;
		if (target->tids != NIL)
		{
			/* reads would end with the attempt */
			if (!ahead->tried)
				loop->has_read |= AioReadTids(target, loop->econtext,
											  row - loop->ntaken);
			continue;
		}
		keys = get_keys(loop, target);
		if (keys != NULL)
			ahead->probes = AioAddProbe(ahead->probes, target, keys,
										row - loop->ntaken, begun);
	}
}

static void
add_row_again(RowAhead *ahead)
{
	AioLookupLoop *loop = ahead->loop;
	uint32		row = ahead->row;
	bool	   *begun = begun_of(loop, row, 0);

	if (memchr(begun, true, loop->nsteps * sizeof(bool)) == NULL)
		return;
	if (loop->toast != NULL)
	{
		ahead->probes = AioAddValues(ahead->probes, loop->toast,
									 *slot_of(loop, row), row - loop->ntaken,
									 begun, true, true);
		return;
	}
	set_params(loop, *slot_of(loop, row));
	foreach_ptr(AioLookupTarget, target, targets_of_row(loop))
	{
		int			i = foreach_current_index(target);
		ScanKey		keys;

		if (i >= loop->nsteps || !begun[i])
			continue;
		keys = get_keys(loop, target);
		if (keys != NULL)
			ahead->probes = AioAddProbe(ahead->probes, target, keys,
										row - loop->ntaken, &begun[i]);
	}
}

static void
add_row(void *arg)
{
	RowAhead   *ahead = arg;

	if (ahead->is_new)
		add_new_row(ahead);
	else
		add_row_again(ahead);
}

/*
 * May what comes of a row that is ahead raise an error: its parameters, what
 * prunes partitions by them, or a hash of keys?  (Whoever inserts a row
 * computes these again, so it is left to get_keys() there.)
 */
static bool
may_raise(AioLookupLoop *loop, TupleTableSlot *row)
{
	if (loop->insert != NULL || loop->toast != NULL)
		return false;
	foreach_ptr(AioLoopParam, param, loop->params)
	{
		bool		isnull;
		Datum		value;

		if (param->attno == 0)
		{
			if (!IsA(param->arg, Var) ||
				TypeIsToastable(castNode(Var, param->arg)->vartype))
				return true;
			continue;
		}
		if (param->attno < 0 ||
			TupleDescCompactAttr(loop->desc, param->attno - 1)->attlen != -1)
			continue;
		value = slot_getattr(row, param->attno, &isnull);
		if (!isnull && is_toasted(value))
			return true;
	}
	return false;
}

/*
 * Add what to probe for a row.  What raises an error is not looked up: whoever
 * comes to the row will meet the error, if anybody does.
 */
static List *
try_row(List *probes, AioLookupLoop *loop, uint32 row, bool is_new, bool near)
{
	RowAhead	ahead = {
		.loop = loop,
		.row = row,
		.is_new = is_new,
		.near = near,
		.tried = may_raise(loop, *slot_of(loop, row)),
		.probes = probes,
	};

	if (ahead.tried)
		(void) AioTry(add_row, &ahead, NULL, NULL);
	else
		add_row(&ahead);
	return ahead.probes;
}

/*
 * What to probe for the rows ahead, of which those from 'first' on are new, and
 * so many are in the nearer half of the window.  The parameters that the loop
 * sets before what it does for each row are left as they are for one of these.
 */
static List *
add_rows(AioLookupLoop *loop, uint32 first, uint32 near)
{
	uint32		known = first - loop->ntaken;
	List	   *probes = NIL;

	for (uint32 ahead = loop->nprobed; ahead < rows_ahead(loop); ahead++)
	{
		bool		is_near = ahead < near;

		if (ahead >= known)
			probes = try_row(probes, loop, loop->ntaken + ahead, true, is_near);
		else if (is_near)
			probes = try_row(probes, loop, loop->ntaken + ahead, false, true);
	}
	loop->nprobed = Max(loop->nprobed, Min(near, rows_ahead(loop)));
	return probes;
}

/*
 * So many rows are looked up, in which there is so much to probe.  Those that
 * have no values out of line do not tell whether others are in memory.
 */
static void
adjust_window(AioLookupLoop *loop, int nrows, int nprobes, bool has_read)
{
	if (loop->toast == NULL || nprobes > 0)
	{
		loop->rows_without_values = 0;
		AioWindowLooked(&loop->window, nrows, has_read);
		return;
	}
	loop->rows_without_values += nrows;
	if (loop->rows_without_values > ROWS_WITHOUT_VALUES_MAX && nrows > 0)
		AioWindowAdjust(&loop->window, false);
}

/* Probe the keys of rows ahead, of which those from 'first' on are new. */
static void
probe(AioLookupLoop *loop, uint32 first)
{
	uint32		near = loop->window.distance / 2 + 1;
	ParamExecData *values = loop->outer->state->es_param_exec_vals;
	ParamExecData *saved;
	List	   *probes;
	MemoryContext old;
	bool		has_read;
	bool		alone;
	int			nprobes;
	int			i = 0;

	if (first == loop->nfilled &&
		loop->nprobed >= Min(near, rows_ahead(loop)))
		return;
	if (!AioScopeAllowed())
	{
		loop->nprobed = rows_ahead(loop);
		return;
	}

	MemoryContextReset(loop->probe_context);
	ResetExprContext(loop->econtext);
	old = MemoryContextSwitchTo(loop->probe_context);
	saved = palloc_array(ParamExecData, list_length(loop->params));
	foreach_ptr(AioLoopParam, param, loop->params)
		saved[i++] = values[param->paramno];
	loop->has_read = false;
	probes = add_rows(loop, first, near);
	i = 0;
	foreach_ptr(AioLoopParam, param, loop->params)
		values[param->paramno] = saved[i++];
	nprobes = list_length(probes);

	/* one lookup that is due at once has nothing to be made beside */
	alone = rows_ahead(loop) == 1 && nprobes <= 1;
	has_read = !alone && AioRunProbes(probes);
	if (loop->has_read)
	{
		AioSubmitBatch();
		has_read = true;
	}
	if (loop->toast != NULL)
		AioCloseToast(loop->toast);
	MemoryContextSwitchTo(old);

	if (!alone)
		adjust_window(loop, loop->nfilled - first, nprobes, has_read);
	if (loop->window.distance >= DISTANCE_USEFUL)
		loop->waits_wanted = AIO_WAITS_BEFORE_OPENING;
}

/*
 * May more rows be taken than the one that is needed now?  This may differ from
 * one scan of the node to the next, and from one run to the next.
 */
static bool
may_take_ahead(const AioLookupLoop *loop)
{
	const EState *estate = loop->outer->state;

	/* of the topmost node, no more are taken than are returned at a time */
	if (loop->undisturbed &&
		(loop->is_top ? AioRowsGoToExtension(estate) : AioSomebodyIsBetween(estate)))
		return false;
	return params_are_computed(loop->outer->state);
}

/* Have as many rows ahead as the window allows, and their keys probed. */
static void
look_ahead(AioLookupLoop *loop)
{
	uint32		first = loop->nfilled;

	if (loop->projection != NULL)
		AioProjectLater(loop->node, loop->projection, true);

	if (may_take_ahead(loop))
	{
		if (!loop->at_end)
		{
			loop->taking = true;
			take_rows(loop, (uint32) Min(AioRowsOfPath(loop->path, loop->layer),
										 (uint64) loop->window.distance + 1));
			loop->taking = false;
		}
		probe(loop, first);
	}
	else if (rows_ahead(loop) == 0 && !loop->at_end)
	{
		loop->taking = true;
		take_rows(loop, 1);
		loop->taking = false;
	}

	/* such a rescan has been noticed, too */
	watch_rescan(loop);
}

/*
 * Is it time to take rows, or to make second steps for rows that have come
 * near?  Both are done for some rows at a time.
 */
static bool
is_to_look_ahead(const AioLookupLoop *loop)
{
	uint32		distance = loop->window.distance;
	uint32		rows = ROWS_AT_A_TIME(distance);

	if (distance == 0)
		return false;
	if (!loop->at_end)
		return rows_ahead(loop) + rows <= distance;
	return loop->nprobed < rows_ahead(loop) &&
		loop->nprobed + rows <= Max(distance / 2, rows);
}

/* The next row that is ahead, or has to be taken; NULL at the end. */
static TupleTableSlot *
next_ahead(AioLookupLoop *loop)
{
	if (is_to_look_ahead(loop))
		look_ahead(loop);
	if (rows_ahead(loop) > 0)
	{
		if (loop->nprobed > 0)
			loop->nprobed--;
		return *slot_of(loop, loop->ntaken++);
	}
	if (loop->error != NULL)
		ReThrowError(loop->error);
	return NULL;
}

/* AioLookupNext: the next outer row. */
static TupleTableSlot *
next_row(void *arg)
{
	AioLookupLoop *loop = arg;
	AioLookupWindow *window = &loop->window;

	Assert(loop->open);

	/* a cursor moves back: it has been given all rows that were ahead */
	if (loop->is_top && !ScanDirectionIsForward(loop->outer->state->es_direction))
	{
		Assert(rows_ahead(loop) == 0);
		return AioLookupBelow(loop->outer, loop->layer);
	}
	for (;;)
	{
		TupleTableSlot *row;

		watch_rescan(loop);
		if (rows_ahead(loop) == 0 && !loop->at_end &&
			(window->distance == 0 ||
			 AioRowsOfPath(loop->path, loop->layer) == 1))
		{
			/* no other row is wanted, or everything is in memory */
			if (loop->projection != NULL)
				AioProjectLater(loop->node, loop->projection, false);
			if (window->distance == 0)
				close_loop(loop);
			return AioLookupBelow(loop->outer, loop->layer);
		}
		if (!prepare(loop))
		{
			close_loop(loop);
			loop->closed_for_good = true;
			return AioLookupBelow(loop->outer, loop->layer);
		}
		row = next_ahead(loop);
		if (row == NULL)
			free_rows(loop);

		/* a cursor may move back, and begin again */
		if (row == NULL && loop->is_top)
			loop->at_end = false;
		if (row != NULL && loop->projection != NULL)
		{
			row = AioProject(loop->node, loop->projection, row);
			if (row == NULL)
				continue;
		}
		return row;
	}
}
