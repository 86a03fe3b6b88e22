/*-------------------------------------------------------------------------
 *
 * explain.c
 *	  EXPLAIN (ANALYZE, AIO): what each node, and the triggers after it, have
 *	  started and waited for, how collected index entries were inserted, and how
 *	  triggers have checked foreign keys.
 *
 * An option of our own, through upstream's interface for those of extensions;
 * nothing is added to the output without it, unless aio.explain is on.
 *
 * Tests: src/test/aio/index/t/001_backlog.pl,
 *		  src/test/aio/stats/t/002_explain.pl, src/test/aio/ri/t/005_explain.pl.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "aio/backlog.h"
#include "aio/executor_run.h"
#include "aio/explain.h"
#include "aio/index_backlog.h"
#include "aio/node_usage.h"
#include "aio/parallel_insert.h"
#include "aio/ri.h"
#include "commands/defrem.h"
#include "commands/explain.h"
#include "commands/explain_format.h"
#include "commands/explain_state.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/rel.h"

/* where ExplainState keeps our option: NULL if it was not given */
static int	extension_id;

/* what it points to */
static bool option_on = true;
static bool option_off = false;

/*
 * The statement that has ended last, and the place of its AFTER triggers among
 * the nodes that are counted.
 */
static const PlannedStmt *ended;
static Instrumentation at_end;
static bool is_ending = false;

static void
set_option(ExplainState *es, DefElem *opt, ParseState *pstate)
{
	SetExplainExtensionState(es, extension_id,
							 defGetBoolean(opt) ? &option_on : &option_off);
}

static bool
wanted(const ExplainState *es)
{
	const bool *option = GetExplainExtensionState(unconstify(ExplainState *, es),
												  extension_id);

	return option == NULL ? aio_explain && es->analyze : *option;
}

/* ParseExplainOptionList(): all options are known */
void
AioExplainOptions(ExplainState *es)
{
	if (!wanted(es))
		return;
	AioCountNodes();
	if (!es->analyze)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("EXPLAIN option %s requires ANALYZE", "AIO")));
}

static void
show_index(const AioIndexBacklog *backlog, ExplainState *es)
{
	const AioBacklogCounts *counts = &backlog->counts;
	const char *index = RelationGetRelationName(backlog->batch.index);

	/* no batch is empty */
	Assert(counts->batches <= counts->entries);
	Assert(backlog->batch.in_flight_max == 0 || counts->batches > 0);

	if (es->format == EXPLAIN_FORMAT_TEXT)
	{
		ExplainIndentText(es);
		appendStringInfo(es->str, "Index %s: entries=%" PRIu64 " batches=%" PRIu64
						 " leaves=%" PRIu64 " suspended=%" PRIu64 " max in flight=%d",
						 quote_identifier(index), counts->entries, counts->batches,
						 counts->leaf_visits, counts->suspended,
						 backlog->batch.in_flight_max);
		if (counts->spilled > 0)
			appendStringInfo(es->str, " spilled=%" PRIu64 "kB",
							 (counts->spilled + 1023) / 1024);
		appendStringInfoChar(es->str, '\n');
		return;
	}
	ExplainOpenGroup("Collected Index", NULL, true, es);
	ExplainPropertyText("Index Name", index, es);
	ExplainPropertyUInteger("Entries", NULL, counts->entries, es);
	ExplainPropertyUInteger("Batches", NULL, counts->batches, es);
	ExplainPropertyUInteger("Leaf Visits", NULL, counts->leaf_visits, es);
	ExplainPropertyUInteger("Tasks Suspended", NULL, counts->suspended, es);
	ExplainPropertyInteger("Max Reads In Flight", NULL, backlog->batch.in_flight_max, es);
	ExplainPropertyUInteger("Spilled", "kB", (counts->spilled + 1023) / 1024, es);
	ExplainCloseGroup("Collected Index", NULL, true, es);
}

/* What one node, with those below it, has used of one kind of future. */
static void
show_usage(AioFutureKind kind, const AioKindUsage *usage, ExplainState *es)
{
	const char *name = AioFutureKindName(kind);
	double		average = usage->started == 0 ? 0 :
		(double) usage->depth / usage->started;
	double		wait_time = INSTR_TIME_GET_MILLISEC(usage->wait_time);

	/* each is in flight itself when it is started */
	Assert(kind == AIO_KIND_TASK || usage->depth >= usage->started);

	if (es->format == EXPLAIN_FORMAT_TEXT)
	{
		ExplainIndentText(es);
		appendStringInfo(es->str, "AIO %s: started=%" PRIu64, name, usage->started);
		if (usage->completed_inline > 0)
			appendStringInfo(es->str, " inline=%" PRIu64, usage->completed_inline);
		if (usage->suspended > 0)
			appendStringInfo(es->str, " suspended=%" PRIu64, usage->suspended);
		if (usage->waited > 0)
			appendStringInfo(es->str, " waited=%" PRIu64 " time=%.3f", usage->waited, wait_time);
		appendStringInfo(es->str, " max in flight=%d", usage->in_flight_max);
		if (average > 0)
			appendStringInfo(es->str, " avg=%.1f", average);
		appendStringInfoChar(es->str, '\n');
		return;
	}
	ExplainOpenGroup("Kind", NULL, true, es);
	ExplainPropertyText("Kind", name, es);
	ExplainPropertyUInteger("Started", NULL, usage->started, es);
	ExplainPropertyUInteger("Completed Inline", NULL, usage->completed_inline, es);
	ExplainPropertyUInteger("Suspended", NULL, usage->suspended, es);
	ExplainPropertyInteger("Max In Flight", NULL, usage->in_flight_max, es);
	if (kind != AIO_KIND_TASK)
	{
		ExplainPropertyFloat("Average In Flight", NULL, average, 1, es);
		ExplainPropertyUInteger("Waited", NULL, usage->waited, es);
		ExplainPropertyFloat("Wait Time", "ms", wait_time, 3, es);
	}
	if (kind != AIO_KIND_TASK && kind < AIO_KIND_WAL_FLUSH)
	{
		ExplainPropertyUInteger("Bytes", NULL, usage->bytes, es);
		ExplainPropertyUInteger("Batches", NULL, usage->batches, es);
	}
	ExplainCloseGroup("Kind", NULL, true, es);
}

static void
show_usages(const AioKindUsage *usage, ExplainState *es)
{
	ExplainOpenGroup("AIO", "AIO", false, es);
	for (int kind = AIO_KIND_NONE + 1; kind < AIO_KINDS; kind++)
	{
		if (usage[kind].started > 0 || usage[kind].suspended > 0 || usage[kind].waited > 0)
			show_usage(kind, &usage[kind], es);
	}
	ExplainCloseGroup("AIO", "AIO", false, es);
}

static void
show_node_usage(PlanState *planstate, ExplainState *es)
{
	const AioKindUsage *usage = AioNodeUsage(planstate->instrument);

	if (usage != NULL)
		show_usages(usage, es);
}

static pg_noinline void
finish_counted(QueryDesc *query)
{
	is_ending = true;
	PG_TRY();
	{
		AioForgetNodes(&at_end, 1);
		AioStartNode(&at_end);
		upstream_standard_ExecutorFinish(query);
		AioStopNode(&at_end);
		ended = query->plannedstmt;
	}
	PG_FINALLY();
	{
		is_ending = false;
	}
	PG_END_TRY();
}

/*
 * In place of upstream's: AFTER triggers are fired, and what they look up is
 * looked up ahead for all of them together.
 */
void
standard_ExecutorFinish(QueryDesc *query)
{
	if (query->instrument_options == 0 || is_ending ||
		!(aio_nodes_counted || aio_explain))
		upstream_standard_ExecutorFinish(query);
	else
		finish_counted(query);
}

/* How a trigger has checked its rows. */
static void
show_checks(const AioTriggerUsage *usage, ExplainState *es)
{
	if (es->format == EXPLAIN_FORMAT_TEXT)
	{
		ExplainIndentText(es);
		appendStringInfoString(es->str, "Checks:");
		if (usage->direct > 0)
			appendStringInfo(es->str, " direct=%" PRIu64, usage->direct);
		if (usage->queries > 0)
			appendStringInfo(es->str, " queries=%" PRIu64, usage->queries);
		if (usage->ahead > 0)
			appendStringInfo(es->str, " ahead=%" PRIu64, usage->ahead);
		appendStringInfoChar(es->str, '\n');
		return;
	}
	ExplainPropertyUInteger("Direct Checks", NULL, usage->direct, es);
	ExplainPropertyUInteger("Queries", NULL, usage->queries, es);
	ExplainPropertyUInteger("Keys Ahead", NULL, usage->ahead, es);
}

/*
 * report_triggers(): what one of a table's triggers has done, and used while it
 * was fired.
 */
void
AioExplainTrigger(const ResultRelInfo *rri, const Trigger *trigger,
				  const Instrumentation *instr, ExplainState *es)
{
	const AioTriggerUsage *checks = AioTriggerUsageOf(rri, trigger->tgoid);
	const AioKindUsage *usage = AioNodeUsage(instr);

	if (!wanted(es))
		return;

	/* lines of text stand below the trigger's, properties beside its others */
	if (es->format == EXPLAIN_FORMAT_TEXT)
		es->indent++;
	if (checks != NULL)
		show_checks(checks, es);
	if (usage != NULL)
		show_usages(usage, es);
	if (es->format == EXPLAIN_FORMAT_TEXT)
		es->indent--;
}

/* What AFTER triggers have used. */
static void
show_triggers(const PlannedStmt *plan, ExplainState *es)
{
	const AioKindUsage *usage = plan == ended ? AioNodeUsage(&at_end) : NULL;

	ended = NULL;
	if (usage == NULL)
		return;
	ExplainOpenGroup("AFTER Triggers", "AFTER Triggers", true, es);
	if (es->format == EXPLAIN_FORMAT_TEXT)
	{
		ExplainIndentText(es);
		appendStringInfoString(es->str, "AFTER Triggers:\n");
	}
	es->indent++;
	show_usages(usage, es);
	es->indent--;
	ExplainCloseGroup("AFTER Triggers", "AFTER Triggers", true, es);
}

/* ExplainNode(): what a node has used has been shown */
void
AioExplainNode(PlanState *planstate, ExplainState *es)
{
	if (!wanted(es))
		return;
	show_node_usage(planstate, es);
	if (!IsA(planstate, ModifyTableState))
		return;

	ExplainOpenGroup("Collected Indexes", "Collected Indexes", false, es);
	for (AioTableBacklog *table = AioGetTableBacklogs(planstate->state);
		 table != NULL; table = table->next)
	{
		Assert(table->statement->estate == planstate->state);
		for (int i = 0; i < table->nindexes; i++)
		{
			if (table->indexes[i].counts.entries > 0)
				show_index(&table->indexes[i], es);
		}
	}
	ExplainCloseGroup("Collected Indexes", "Collected Indexes", false, es);
}

/*
 * ExplainOnePlan(): what triggers have used; and say that workers insert, in a
 * plan whose rows go to a new table.
 */
void
AioExplainPlan(PlannedStmt *plan, IntoClause *into, ExplainState *es)
{
	if (wanted(es))
		show_triggers(plan, es);
	if (AioMayInsertInto(into) && AioInsertsInParallel(plan))
		ExplainPropertyBool("Parallel Insert", true, es);
}

/* Add the option, once per server. */
void
AioExplainInitialize(void)
{
	Assert(process_shared_preload_libraries_in_progress);
	extension_id = GetExplainExtensionId("pgawait");
	RegisterExtensionExplainOption("aio", set_option);
}
