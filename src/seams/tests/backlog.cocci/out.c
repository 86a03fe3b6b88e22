uint64
CopyFrom(CopyFromState c)
{
	EState *state = make();

	rows(state);
	AioRowsInserted(state);
	ExecASInsertTriggers(state, c->target, c->capture);
	return 0;
}

static TupleTableSlot *
ExecModifyTable(PlanState *node)
{
	EState *estate = node->state;

	while (more(node))
		insert(estate);
	AioRowsInserted(estate);
	fireASTriggers(node);
	return NULL;
}

void
standard_ExecutorRun(QueryDesc *queryDesc)
{
	EState *estate;

	check(queryDesc);
	estate = queryDesc->estate;
	AioBeforeQuery(estate->es_snapshot);
	run(estate);
}

void
other(QueryDesc *queryDesc)
{
	EState *estate;

	estate = queryDesc->estate;
	fireASTriggers(estate);
}
