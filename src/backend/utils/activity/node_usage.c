/*-------------------------------------------------------------------------
 *
 * node_usage.c
 *	  What each node of a plan has started and waited for.
 *
 * Nodes are entered and left like calls of functions, so what the process had
 * counted when a node was entered waits on a stack.  What has been counted
 * since is added to the node's usage when it is left; hence a node's usage
 * includes that of the nodes below it, as it does for buffers.  An error
 * leaves nodes without calling us; the end of the subtransaction removes them
 * from the stack.
 *
 * A node's usage is found by the address of upstream's instrumentation, in a
 * table that lives as long as the transaction.  A node that has used nothing is
 * not in it.  Parallel workers do the same, and put what they find into shared
 * memory of the parallel plan when they end.
 *
 * Tests: src/test/aio/stats/t/002_explain.pl.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/parallel.h"
#include "access/xact.h"
#include "aio/node_usage.h"
#include "common/hashfn.h"
#include "executor/executor.h"
#include "nodes/nodeFuncs.h"
#include "utils/memutils.h"

/* aio.explain */
bool		aio_explain = false;

bool		aio_nodes_counted = false;

/* A node that has been entered, and not left yet. */
typedef struct Frame
{
	Instrumentation *instr;
	int			nest_level;		/* of transactions */
	AioKindUsage before[AIO_KINDS];
} Frame;

typedef struct NodeEntry
{
	const Instrumentation *instr;
	char		status;
	AioKindUsage usage[AIO_KINDS];
} NodeEntry;

#define SH_PREFIX nodes
#define SH_ELEMENT_TYPE NodeEntry
#define SH_KEY_TYPE const Instrumentation *
#define SH_KEY instr
#define SH_HASH_KEY(tb, key) murmurhash64((uint64) (uintptr_t) (key))
#define SH_EQUAL(tb, a, b) ((a) == (b))
#define SH_SCOPE static inline
#define SH_DECLARE
#define SH_DEFINE
#include "lib/simplehash.h"

static nodes_hash * nodes = NULL;

static Frame *frames = NULL;
static int	nframes = 0;
static int	frames_allocated = 0;

/* what workers have used for this process, beside its own usage */
static AioKindUsage used_by_workers[AIO_KINDS];

/* In the shared memory of a parallel plan, a node that has used something. */
typedef struct SharedNode
{
	int			plan_node_id;
	AioKindUsage usage[AIO_KINDS];
} SharedNode;

typedef struct WorkerUsage
{
	AioKindUsage total[AIO_KINDS];	/* not counted by the leader yet */
	int			nnodes;
	SharedNode	nodes[FLEXIBLE_ARRAY_MEMBER];
} WorkerUsage;

/* What is there, before each worker's usage. */
typedef struct SharedUsage
{
	int			nworkers;
	Size		stride;			/* bytes of a worker's usage */
} SharedUsage;

#define PARALLEL_KEY_USAGE	UINT64CONST(0xA100000000000002)

/* in a worker: what it had counted when it began */
static AioKindUsage at_start[AIO_KINDS];

static bool
differs(const AioKindUsage *now, const AioKindUsage *before)
{
	return now->started != before->started ||
		now->suspended != before->suspended || now->waited != before->waited;
}

static void
add_usage(AioKindUsage *sum, const AioKindUsage *usage)
{
	sum->started += usage->started;
	sum->completed_inline += usage->completed_inline;
	sum->suspended += usage->suspended;
	sum->waited += usage->waited;
	sum->cancelled += usage->cancelled;
	sum->bytes += usage->bytes;
	sum->batches += usage->batches;
	sum->depth += usage->depth;
	INSTR_TIME_ADD(sum->wait_time, usage->wait_time);
	sum->in_flight_max = Max(sum->in_flight_max, usage->in_flight_max);
}

static void
add_difference(AioKindUsage *sum, const AioKindUsage *now,
			   const AioKindUsage *before)
{
	AioKindUsage difference = *now;

	Assert(now->started >= before->started && now->waited >= before->waited);
	difference.started -= before->started;
	difference.completed_inline -= before->completed_inline;
	difference.suspended -= before->suspended;
	difference.waited -= before->waited;
	difference.cancelled -= before->cancelled;
	difference.bytes -= before->bytes;
	difference.batches -= before->batches;
	difference.depth -= before->depth;
	INSTR_TIME_SUBTRACT(difference.wait_time, before->wait_time);
	add_usage(sum, &difference);
}

/* What the process has counted, and its workers. */
static void
usage_now(AioKindUsage *usage)
{
	AioUsageNow(usage);
	for (int kind = 0; kind < AIO_KINDS; kind++)
		add_usage(&usage[kind], &used_by_workers[kind]);
}

/* Where a node's usage is summed up.  May raise: out of memory. */
static AioKindUsage *
usage_of(const Instrumentation *instr)
{
	NodeEntry  *entry;
	bool		found;

	if (nodes == NULL)
		nodes = nodes_create(TopTransactionContext, 64, NULL);
	entry = nodes_insert(nodes, instr, &found);
	if (!found)
		MemSet(entry->usage, 0, sizeof(entry->usage));
	return entry->usage;
}

/*
 * The process counts from now on what each node uses, until the transaction
 * ends.
 */
void
AioCountNodes(void)
{
	aio_nodes_counted = true;
}

/* InstrStartNode().  May raise: out of memory. */
void
AioEnterNode(Instrumentation *instr)
{
	Frame	   *frame;

	Assert(nframes <= frames_allocated);
	if (nframes == frames_allocated)
	{
		int			n = Max(16, frames_allocated * 2);

		if (frames == NULL)
			frames = MemoryContextAlloc(TopTransactionContext, n * sizeof(Frame));
		else
			frames = repalloc_array(frames, Frame, n);
		frames_allocated = n;
	}
	frame = &frames[nframes++];
	frame->instr = instr;
	frame->nest_level = GetCurrentTransactionNestLevel();
	Assert(nframes == 1 || frame[-1].nest_level <= frame->nest_level);
	usage_now(frame->before);

	/* the most in flight is that of this node, for now */
	for (int kind = 0; kind < AIO_KINDS; kind++)
		aio_usage[kind].in_flight_max = aio_usage[kind].in_flight;
}

/* The most in flight since a node was entered is also that of those above. */
static void
forget_maximum(const Frame *frame)
{
	for (int kind = 0; kind < AIO_KINDS; kind++)
		aio_usage[kind].in_flight_max = Max(aio_usage[kind].in_flight_max,
											frame->before[kind].in_flight_max);
}

/* Nodes that will not be left, because of an error: keep so many frames. */
static void
forget_frames(int keep)
{
	Assert(keep >= 0 && keep <= nframes);
	while (nframes > keep)
		forget_maximum(&frames[--nframes]);
}

/* InstrStopNode().  May raise: out of memory. */
void
AioLeaveNode(Instrumentation *instr)
{
	AioKindUsage now[AIO_KINDS];
	AioKindUsage *sums = NULL;
	Frame	   *frame;

	int			i = nframes - 1;

	while (i >= 0 && frames[i].instr != instr)
		i--;
	if (i < 0)
		return;					/* counting began after it had been entered */
	forget_frames(i + 1);
	frame = &frames[--nframes];

	usage_now(now);
	for (int kind = 0; kind < AIO_KINDS; kind++)
	{
		if (differs(&now[kind], &frame->before[kind]))
		{
			if (sums == NULL)
				sums = usage_of(instr);
			add_difference(&sums[kind], &now[kind], &frame->before[kind]);
		}
	}
	forget_maximum(frame);
}

/* InstrAlloc() */
void
AioForgetInstrumentation(Instrumentation *instr, int n)
{
	for (int i = 0; nodes != NULL && i < n; i++)
		(void) nodes_delete(nodes, &instr[i]);
}

/*
 * What a node has used, an array of AIO_KINDS; NULL if nothing.  It is valid
 * until another node is left.
 */
const AioKindUsage *
AioNodeUsage(const Instrumentation *instr)
{
	NodeEntry  *entry = nodes == NULL || instr == NULL ? NULL :
		nodes_lookup(nodes, instr);

	return entry == NULL ? NULL : entry->usage;
}

/* ------------------------------------------------------------------------
 * Parallel plans
 * ------------------------------------------------------------------------
 */

static bool
count_node(PlanState *planstate, void *n)
{
	(*(int *) n)++;
	return planstate_tree_walker(planstate, count_node, n);
}

/*
 * How much shared memory a parallel plan needs to tell what its workers use;
 * 0 if nobody wants to know.
 */
Size
AioSharedUsageSize(const ParallelContext *pcxt, PlanState *planstate)
{
	int			nnodes = 0;
	Size		worker_size;

	if (!(aio_nodes_counted || aio_explain) ||
		planstate->state->es_instrument == 0)
		return 0;
	(void) count_node(planstate, &nnodes);
	worker_size = add_size(offsetof(WorkerUsage, nodes),
						   mul_size(sizeof(SharedNode), nnodes));
	return add_size(MAXALIGN(sizeof(SharedUsage)),
					mul_size(MAXALIGN(worker_size), pcxt->nworkers));
}

/* Make it, of that size, in the leader, before workers are started. */
void
AioShareUsage(ParallelContext *pcxt, Size size)
{
	SharedUsage *shared;

	if (size == 0)
		return;
	shared = shm_toc_allocate(pcxt->toc, size);
	MemSet(shared, 0, size);
	shared->nworkers = pcxt->nworkers;
	if (shared->nworkers > 0)
		shared->stride = (size - MAXALIGN(sizeof(SharedUsage))) / shared->nworkers;
	shm_toc_insert(pcxt->toc, PARALLEL_KEY_USAGE, shared);
}

static WorkerUsage *
worker_usage(SharedUsage *shared, int worker)
{
	Assert(worker >= 0 && worker < shared->nworkers);
	Assert(shared->stride >= offsetof(WorkerUsage, nodes));
	return (WorkerUsage *) ((char *) shared + MAXALIGN(sizeof(SharedUsage)) +
							worker * shared->stride);
}

/* A worker begins: count, if the leader wants to know. */
void
AioCountNodesOfWorker(shm_toc *toc)
{
	if (shm_toc_lookup(toc, PARALLEL_KEY_USAGE, true) != NULL)
		AioCountNodes();
}

/*
 * ParallelQueryMain(): it has prepared for its part of the plan, which does not
 * count, as upstream's usage of buffers does not.
 */
void
AioStartUsageOfWorker(void)
{
	Assert(IsParallelWorker());
	usage_now(at_start);
}

/* Add a node's usage to what this worker says of it. */
static bool
report_node(PlanState *planstate, void *arg)
{
	WorkerUsage *mine = arg;
	const AioKindUsage *usage = AioNodeUsage(planstate->instrument);

	if (usage != NULL)
	{
		int			i = 0;

		/* there may have been a worker before, if the plan is rescanned */
		while (i < mine->nnodes &&
			   mine->nodes[i].plan_node_id != planstate->plan->plan_node_id)
			i++;
		mine->nnodes = Max(mine->nnodes, i + 1);
		mine->nodes[i].plan_node_id = planstate->plan->plan_node_id;
		for (int kind = 0; kind < AIO_KINDS; kind++)
			add_usage(&mine->nodes[i].usage[kind], &usage[kind]);
	}
	return planstate_tree_walker(planstate, report_node, arg);
}

/* ParallelQueryMain(): a worker has executed its part of the plan. */
void
AioReportNodeUsage(shm_toc *toc, PlanState *planstate)
{
	SharedUsage *shared = shm_toc_lookup(toc, PARALLEL_KEY_USAGE, true);
	WorkerUsage *mine;
	AioKindUsage now[AIO_KINDS];

	if (shared == NULL)
		return;
	mine = worker_usage(shared, ParallelWorkerNumber);
	usage_now(now);
	for (int kind = 0; kind < AIO_KINDS; kind++)
		add_difference(&mine->total[kind], &now[kind], &at_start[kind]);
	(void) report_node(planstate, mine);
}

/*
 * The leader's workers have ended: what they have used counts for the node that
 * has waited for them, and for those above it.
 */
void
AioAddUsageOfWorkers(ParallelContext *pcxt)
{
	SharedUsage *shared = shm_toc_lookup(pcxt->toc, PARALLEL_KEY_USAGE, true);

	for (int worker = 0; shared != NULL && worker < shared->nworkers; worker++)
	{
		WorkerUsage *theirs = worker_usage(shared, worker);

		for (int kind = 0; kind < AIO_KINDS; kind++)
			add_usage(&used_by_workers[kind], &theirs->total[kind]);
		MemSet(theirs->total, 0, sizeof(theirs->total));
	}
}

static bool
collect_node(PlanState *planstate, void *arg)
{
	const WorkerUsage *theirs = arg;

	for (int i = 0; i < theirs->nnodes && planstate->instrument != NULL; i++)
	{
		AioKindUsage *usage;

		if (theirs->nodes[i].plan_node_id != planstate->plan->plan_node_id)
			continue;
		usage = usage_of(planstate->instrument);
		for (int kind = 0; kind < AIO_KINDS; kind++)
			add_usage(&usage[kind], &theirs->nodes[i].usage[kind]);
	}
	return planstate_tree_walker(planstate, collect_node, arg);
}

/*
 * ExecParallelCleanup(): add what workers have said of their nodes to the
 * leader's.  May raise: out of memory.
 */
void
AioCollectNodeUsage(shm_toc *toc, PlanState *planstate)
{
	SharedUsage *shared = shm_toc_lookup(toc, PARALLEL_KEY_USAGE, true);

	for (int worker = 0; shared != NULL && worker < shared->nworkers; worker++)
		(void) collect_node(planstate, worker_usage(shared, worker));
}

static void
at_xact_event(XactEvent event, void *arg)
{
	switch (event)
	{
		case XACT_EVENT_COMMIT:
		case XACT_EVENT_ABORT:
		case XACT_EVENT_PREPARE:
			aio_nodes_counted = false;
			nodes = NULL;
			forget_frames(0);
			frames = NULL;
			frames_allocated = 0;
			break;
		default:
			break;
	}
}

static void
at_subxact_event(SubXactEvent event, SubTransactionId mySubid,
				 SubTransactionId parentSubid, void *arg)
{
	int			keep = nframes;

	if (event != SUBXACT_EVENT_ABORT_SUB)
		return;
	while (keep > 0 && frames[keep - 1].nest_level >= GetCurrentTransactionNestLevel())
		keep--;
	forget_frames(keep);
}

/* While libraries are preloaded. */
void
AioNodeUsageInitialize(void)
{
	RegisterSubXactCallback(at_subxact_event, NULL);
	RegisterXactCallback(at_xact_event, NULL);
}
