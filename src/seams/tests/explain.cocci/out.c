static void
report_triggers(Table *rInfo, State *es)
{
	void	   *trig;
	void	   *instr;

	while ((trig = next(rInfo, &instr)) != NULL)
	{
		open(es);
		AioExplainTrigger(rInfo, trig, instr, es);
		ExplainCloseGroup("Trigger", NULL, true, es);
	}
}

static void
other(State *es)
{
	ExplainCloseGroup("Trigger", NULL, true, es);
}

void
ExplainNode(PlanState *planstate, State *es)
{
	if (es->workers_state)
		flush(es);
	AioExplainNode(planstate, es);
	if (explain_per_node_hook)
		(*explain_per_node_hook) (planstate, es);
	if (planstate->initPlan)
		other(es);
}

void
ExplainOnePlan(PlannedStmt *plannedstmt, IntoClause *into, State *es)
{
	print(es);
	AioExplainPlan(plannedstmt, into, es);
	if (explain_per_plan_hook)
		(*explain_per_plan_hook) (plannedstmt, into, es);
	end(es);
}

void
ParseExplainOptionList(State *es, List *options)
{
	AioExplainOptions(es);
	if (explain_validate_options_hook)
		(*explain_validate_options_hook) (es, options);
}
