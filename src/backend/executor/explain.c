/*-------------------------------------------------------------------------
 *
 * explain.c
 *	  EXPLAIN (ANALYZE, AIO): what has become of index entries that waited.
 *
 * An option of our own, through upstream's interface for those of extensions;
 * nothing is added to the output without it.
 *
 * Tests: src/test/aio/t/007_backlog.pl.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "aio/backlog.h"
#include "aio/parallel_insert.h"
#include "backlog.h"
#include "commands/defrem.h"
#include "commands/explain.h"
#include "commands/explain_format.h"
#include "commands/explain_state.h"
#include "utils/builtins.h"
#include "utils/rel.h"

/* where ExplainState keeps our option: not NULL if it is on */
static int	extension_id;

static explain_per_node_hook_type prev_per_node_hook;
static explain_per_plan_hook_type prev_per_plan_hook;
static explain_validate_options_hook_type prev_validate_hook;

static void
set_option(ExplainState *es, DefElem *opt, ParseState *pstate)
{
	SetExplainExtensionState(es, extension_id, defGetBoolean(opt) ? es : NULL);
}

static void
validate_options(ExplainState *es, List *options, ParseState *pstate)
{
	if (prev_validate_hook)
		prev_validate_hook(es, options, pstate);
	if (!es->analyze && GetExplainExtensionState(es, extension_id) != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("EXPLAIN option %s requires ANALYZE", "AIO")));
}

static void
show_index(const AioIndexBacklog *backlog, ExplainState *es)
{
	const AioBacklogCounts *counts = &backlog->counts;
	const char *index = RelationGetRelationName(backlog->index);

	if (es->format == EXPLAIN_FORMAT_TEXT)
	{
		ExplainIndentText(es);
		appendStringInfo(es->str, "Index %s: entries=%" PRIu64 " batches=%" PRIu64
						 " leaves=%" PRIu64 " suspended=%" PRIu64 " max in flight=%d\n",
						 quote_identifier(index), counts->entries, counts->batches,
						 counts->leaf_visits, counts->suspended,
						 counts->in_flight_max);
		return;
	}
	ExplainOpenGroup("Gathered Index", NULL, true, es);
	ExplainPropertyText("Index Name", index, es);
	ExplainPropertyUInteger("Entries", NULL, counts->entries, es);
	ExplainPropertyUInteger("Batches", NULL, counts->batches, es);
	ExplainPropertyUInteger("Leaf Visits", NULL, counts->leaf_visits, es);
	ExplainPropertyUInteger("Tasks Suspended", NULL, counts->suspended, es);
	ExplainPropertyInteger("Max Reads In Flight", NULL, counts->in_flight_max, es);
	ExplainCloseGroup("Gathered Index", NULL, true, es);
}

static void
show_node(PlanState *planstate, List *ancestors, const char *relationship,
		  const char *plan_name, ExplainState *es)
{
	if (prev_per_node_hook)
		prev_per_node_hook(planstate, ancestors, relationship, plan_name, es);
	if (GetExplainExtensionState(es, extension_id) == NULL ||
		!IsA(planstate, ModifyTableState))
		return;

	ExplainOpenGroup("Gathered Indexes", "Gathered Indexes", false, es);
	for (AioTableBacklog *table = AioGetTableBacklogs(planstate->state);
		 table != NULL; table = table->next)
	{
		for (int i = 0; i < table->nindexes; i++)
		{
			if (table->indexes[i].counts.entries > 0)
				show_index(&table->indexes[i], es);
		}
	}
	ExplainCloseGroup("Gathered Indexes", "Gathered Indexes", false, es);
}

/* Say that workers insert, in a plan whose rows go to a new table. */
static void
show_plan(PlannedStmt *plan, IntoClause *into, ExplainState *es,
		  const char *query_string, ParamListInfo params,
		  QueryEnvironment *environment)
{
	if (prev_per_plan_hook)
		prev_per_plan_hook(plan, into, es, query_string, params, environment);
	if (AioMayInsertInto(into) && AioInsertsInParallel(plan))
		ExplainPropertyBool("Parallel Insert", true, es);
}

/* Add the option, once per server. */
void
AioExplainInitialize(void)
{
	extension_id = GetExplainExtensionId("pgawait");
	RegisterExtensionExplainOption("aio", set_option);
	prev_per_node_hook = explain_per_node_hook;
	explain_per_node_hook = show_node;
	prev_per_plan_hook = explain_per_plan_hook;
	explain_per_plan_hook = show_plan;
	prev_validate_hook = explain_validate_options_hook;
	explain_validate_options_hook = validate_options;
}
